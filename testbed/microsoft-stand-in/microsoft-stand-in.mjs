// A stand-in for Microsoft Entra ID and Microsoft Graph in tests, written from their public
// description. It has what a login needs: the page, the exchange of a code, the login of an
// application, and users with their groups.
//
//   microsoft-stand-in FILE
//
// FILE is JSON: `port`, `certificate` and `key` (PEM), `client` ({id, secret, redirect}), `people` by
// login name: {id, displayName, accountEnabled, groups: [group ids]}, and `groups` by id:
// {displayName, memberOf: [group ids]}. `isLimited` makes Graph refuse everything for now, and
// `isDenied` says that the application has no permission. Another `epoch` than before ends all
// tokens, and the epoch `none` each at once. The file is read anew at each request. Listens on
// loopback only, and prints a line once it does.

import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";

const file = process.argv[2];
const read = () => JSON.parse(readFileSync(file, "utf8"));
const { port, certificate, key, client } = read();
const base = `https://127.0.0.1:${port}`;
const TENANT = "11111111-2222-3333-4444-555555555555";

/** Objects of a page, whatever is requested, so that lists have pages here. */
const PER_PAGE_MAX = 100;
/** Groups in a token; a token of a member of more has none. */
const TOKEN_GROUPS_MAX = 200;

/** Code to who logged in, and with what the exchange must fit. Each is good once. */
const codes = new Map();
/** Access token to login name; that of the application has none. */
const tokens = new Map();
let epoch;

const random = () => randomBytes(24).toString("base64url");

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
  response.end(JSON.stringify(body));
}

function page(response, status, text) {
  response.writeHead(status, { "content-type": "text/html; charset=utf-8" });
  response.end(`<!doctype html><title>Microsoft stand-in</title>${text}`);
}

/** All groups that somebody is in, also by other groups. */
function groupsOf(direct, groups) {
  const all = new Set();
  const waiting = [...(direct ?? [])];
  while (waiting.length > 0) {
    const id = waiting.pop();
    if (!groups[id] || all.has(id)) continue;
    all.add(id);
    waiting.push(...(groups[id].memberOf ?? []));
  }
  return [...all].sort();
}

/** The page where people log in; a form without an address goes back to it. */
function authorize(request, response, url, body) {
  const query = url.searchParams;
  if (query.get("client_id") !== client.id || query.get("redirect_uri") !== client.redirect) {
    return page(response, 400, "<p>AADSTS50011: The redirect URI does not match.</p>");
  }
  if (request.method === "GET") {
    const field = '<input name="login"><input name="password" type="password">';
    return page(response, 200, `<form method="post">${field}<button>Sign in</button></form>`);
  }
  const login = new URLSearchParams(body).get("login");
  const person = read().people[login];
  if (!person) return page(response, 200, "<p>This account does not exist.</p>");
  if (person.accountEnabled === false) return page(response, 200, "<p>AADSTS50057</p>");
  const code = random();
  codes.set(code, { login, challenge: query.get("code_challenge") });
  const back = new URL(client.redirect);
  back.searchParams.set("code", code);
  back.searchParams.set("state", query.get("state") ?? "");
  back.searchParams.set("session_state", random());
  response.writeHead(302, { location: back.href });
  response.end();
}

/** An ID token. Nobody here checks its signature; its groups are what matters. */
function idToken(login) {
  const { people, groups } = read();
  const all = groupsOf(people[login].groups, groups);
  const claims = { iss: `${base}/${TENANT}/v2.0`, aud: client.id, oid: people[login].id };
  if (all.length > TOKEN_GROUPS_MAX) {
    claims._claim_names = { groups: "src1" };
    claims._claim_sources = { src1: { endpoint: `${base}/users/${people[login].id}` } };
  } else {
    claims.groups = all;
  }
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "RS256", typ: "JWT" })}.${part(claims)}.${random()}`;
}

function token(response, body) {
  const given = new URLSearchParams(body);
  const refuse = (error, error_description) => send(response, 400, { error, error_description });
  if (given.get("client_id") !== client.id) {
    const text = `AADSTS700016: Application with identifier '${given.get("client_id")}' was not found.`;
    return refuse("unauthorized_client", text);
  }
  if (given.get("client_secret") !== client.secret) {
    const error_description = "AADSTS7000215: Invalid client secret provided.\r\nTrace ID: 0";
    return send(response, 401, { error: "invalid_client", error_description });
  }
  if (given.has("resource")) {
    return refuse("invalid_request", "AADSTS901002: The 'resource' parameter is not supported.");
  }
  const issued = random();
  const reply = { token_type: "Bearer", expires_in: 3599, access_token: issued };
  if (given.get("grant_type") === "client_credentials") {
    if (given.get("scope") !== `${base}/.default`) {
      return refuse("invalid_scope", "AADSTS1002012: The provided scope is not valid.");
    }
    tokens.set(issued, undefined);
    return send(response, 200, reply);
  }
  const known = codes.get(given.get("code"));
  codes.delete(given.get("code"));
  const verifier = given.get("code_verifier") ?? "";
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  if (!known || known.challenge !== challenge || given.get("redirect_uri") !== client.redirect) {
    return refuse("invalid_grant", "AADSTS54005: OAuth2 Authorization code was already redeemed.");
  }
  tokens.set(issued, known.login);
  send(response, 200, { ...reply, scope: "User.Read", id_token: idToken(known.login) });
}

/** One page of a list, with the address of the next. */
function list(response, url, all) {
  const start = Number(url.searchParams.get("$skiptoken") ?? 0);
  const top = Number(url.searchParams.get("$top") ?? PER_PAGE_MAX);
  const size = Math.min(top, PER_PAGE_MAX);
  const body = { value: all.slice(start, start + size) };
  if (start + size < all.length) {
    const next = new URL(url);
    next.searchParams.set("$skiptoken", start + size);
    body["@odata.nextLink"] = next.href;
  }
  send(response, 200, body);
}

/** What a filter of `startswith` terms matches; none for another filter. */
function filtered(objects, filter) {
  const terms = (filter ?? "").split(" or ").map((term) => {
    const [, field, text] = /^startswith\((\w+),'((?:[^']|'')*)'\)$/.exec(term) ?? [];
    return field && [field, text.replaceAll("''", "'").toLowerCase()];
  });
  if (!terms.every(Boolean)) return undefined;
  const matches = (one) => ([field, text]) => one[field]?.toLowerCase().startsWith(text);
  return objects.filter((one) => terms.some(matches(one)));
}

function graph(request, response, url) {
  const { people, groups, isLimited, isDenied, epoch: now } = read();
  if (now !== epoch || now === "none") tokens.clear();
  epoch = now;
  const error = (status, code, headers) => send(response, status, { error: { code } }, headers);
  if (isLimited) return error(429, "TooManyRequests", { "retry-after": "1" });
  const given = request.headers.authorization?.replace(/^Bearer /, "");
  if (!tokens.has(given)) return error(401, "InvalidAuthenticationToken");
  const user = ([login, person]) => ({
    id: person.id,
    displayName: person.displayName ?? null,
    userPrincipalName: login,
    accountEnabled: person.accountEnabled ?? true,
  });
  const group = ([id, { displayName }]) => ({ id, displayName });
  const path = url.pathname.replace("/v1.0", "");
  const login = tokens.get(given);
  if (login !== undefined) {
    // A user's token reads its user only.
    if (path !== "/me") return error(403, "Authorization_RequestDenied");
    return people[login] ? send(response, 200, user([login, people[login]])) : error(404, "NotFound");
  }
  if (isDenied) return error(403, "Authorization_RequestDenied");
  const one = (found) => (found ? send(response, 200, found) : error(404, "ResourceNotFound"));
  const [, kind, id, rest] = /^\/(users|groups)\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  const isMeant = (found) => found.id === id;
  if (kind === "groups") return one(Object.entries(groups).map(group).find(isMeant));
  if (kind === "users" && !rest) return one(Object.entries(people).map(user).find(isMeant));
  if (kind === "users" && rest === "/transitiveMemberOf/microsoft.graph.group") {
    if (request.headers.consistencylevel !== "eventual") return error(400, "Request_UnsupportedQuery");
    const person = Object.values(people).find(isMeant);
    if (!person) return error(404, "ResourceNotFound");
    const all = groupsOf(person.groups, groups);
    return list(response, url, all.map((id) => group([id, groups[id]])));
  }
  const objects = { "/users": Object.entries(people).map(user), "/groups": Object.entries(groups).map(group) };
  const found = objects[path] && filtered(objects[path], url.searchParams.get("$filter"));
  if (!objects[path]) return error(404, "ResourceNotFound");
  return found ? list(response, url, found) : error(400, "Request_UnsupportedQuery");
}

const server = createServer({ cert: certificate, key }, (request, response) => {
  const url = new URL(request.url, base);
  let body = "";
  request.on("data", (bytes) => {
    body += bytes;
  });
  request.on("end", () => {
    if (url.pathname === `/${TENANT}/oauth2/v2.0/authorize`) authorize(request, response, url, body);
    else if (url.pathname === `/${TENANT}/oauth2/v2.0/token`) token(response, body);
    else if (url.pathname.startsWith("/v1.0/")) graph(request, response, url);
    else send(response, 400, { error: "invalid_tenant", error_description: "AADSTS90002: Tenant not found." });
  });
});
server.listen(port, "127.0.0.1", () => console.log(`listening at ${base}`));
