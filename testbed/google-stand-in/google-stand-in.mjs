// A stand-in for Google's login and the Directory API of Google Workspace in tests, written from
// their public description. It has what a login needs: the page, the exchange of a code, who logged
// in, the login of a service account, and the users and groups of an organisation.
//
//   google-stand-in FILE
//
// FILE is JSON: `port`, `certificate` and `key` (PEM), `client` ({id, secret, redirect}), `domain`,
// `admin` (the administrator's address), `account` ({email, publicKey (PEM)}), `people` by the part
// of their address before the domain: {id, name, suspended, domain}, and `groups` by the same part:
// {id, name, members: [addresses]}. `isLimited` makes the directory refuse everything for now.
// Another `epoch` than before ends all tokens, and the epoch `none` each at once. The file is read
// anew at each request. Listens on loopback only, and prints a line once it does.

import { createHash, createVerify, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";

const file = process.argv[2];
const read = () => JSON.parse(readFileSync(file, "utf8"));
const { port, certificate, key, client, domain, admin, account } = read();
const base = `https://127.0.0.1:${port}`;
const JWT_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SCOPES = ["user", "group"].map(
  (kind) => `https://www.googleapis.com/auth/admin.directory.${kind}.readonly`,
);

/** Groups of a page, whatever is requested, so that lists have pages here. */
const PER_PAGE_MAX = 2;

/** Code to who logged in, and with what the exchange must fit. Each is good once. */
const codes = new Map();
/** Access token to the name of a person; that of the service account has none. */
const tokens = new Map();
let epoch;

const random = () => randomBytes(24).toString("base64url");
const address = (name) => `${name}@${domain}`;

function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json; charset=UTF-8" });
  response.end(JSON.stringify(body));
}

function page(response, status, text) {
  response.writeHead(status, { "content-type": "text/html; charset=utf-8" });
  response.end(`<!doctype html><title>Google stand-in</title>${text}`);
}

/** The page where people log in; a form without an address goes back to it. */
function authorize(request, response, url, body) {
  const query = url.searchParams;
  if (query.get("client_id") !== client.id || query.get("redirect_uri") !== client.redirect) {
    return page(response, 400, "<p>Error 400: redirect_uri_mismatch</p>");
  }
  if (request.method === "GET") {
    const field = '<input name="login"><input name="password" type="password">';
    return page(response, 200, `<form method="post">${field}<button>Next</button></form>`);
  }
  const login = new URLSearchParams(body).get("login");
  if (!read().people[login]) return page(response, 200, "<p>Couldn't find your account</p>");
  const code = `4/${random()}`;
  codes.set(code, { login, challenge: query.get("code_challenge") });
  const back = new URL(client.redirect);
  back.searchParams.set("state", query.get("state") ?? "");
  back.searchParams.set("code", code);
  back.searchParams.set("scope", query.get("scope"));
  response.writeHead(302, { location: back.href });
  response.end();
}

/** Why a signature of the service account gets no token, if it gets none. */
function refusedAssertion(assertion) {
  const [header, payload, signature] = assertion.split(".");
  const verify = createVerify("RSA-SHA256").update(`${header}.${payload}`);
  const claims = JSON.parse(Buffer.from(payload, "base64url"));
  const now = Date.now() / 1000;
  if (!verify.verify(account.publicKey, signature, "base64url")) {
    return ["invalid_grant", "Invalid JWT Signature."];
  }
  if (claims.iss !== account.email || claims.aud !== `${base}/token`) {
    return ["invalid_grant", "Invalid JWT: audience or issuer."];
  }
  if (claims.exp < now || claims.exp - claims.iat > 3600 || claims.iat > now + 60) {
    return ["invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes)."];
  }
  if (claims.sub !== admin) return ["invalid_grant", "Invalid email or User ID"];
  if (claims.scope.split(" ").some((scope) => !SCOPES.includes(scope))) {
    return ["unauthorized_client", "Client is unauthorized for the scopes requested."];
  }
  return undefined;
}

function token(response, body) {
  const given = new URLSearchParams(body);
  const refuse = (error, error_description, status = 400) =>
    send(response, status, { error, error_description });
  const issued = `ya29.${random()}`;
  const reply = { access_token: issued, expires_in: 3599, token_type: "Bearer" };
  if (given.get("grant_type") === JWT_GRANT) {
    const refused = refusedAssertion(given.get("assertion"));
    if (refused) return refuse(...refused);
    tokens.set(issued, undefined);
    return send(response, 200, reply);
  }
  if (given.get("client_id") !== client.id || given.get("client_secret") !== client.secret) {
    return refuse("invalid_client", "The provided client secret is invalid.", 401);
  }
  const known = codes.get(given.get("code"));
  codes.delete(given.get("code"));
  const verifier = given.get("code_verifier") ?? "";
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  if (!known || known.challenge !== challenge || given.get("redirect_uri") !== client.redirect) {
    return refuse("invalid_grant", "Bad Request");
  }
  tokens.set(issued, known.login);
  send(response, 200, reply);
}

function userInfo(request, response) {
  const login = tokens.get(request.headers.authorization?.replace(/^Bearer /, ""));
  const person = read().people[login];
  if (!person) return send(response, 401, { error: "invalid_request" });
  const of = person.domain ?? domain;
  const info = { sub: person.id, name: person.name, email: `${login}@${of}`, email_verified: true };
  // An account without an organisation has no domain.
  send(response, 200, of === "gmail.com" ? info : { ...info, hd: of });
}

function user([name, person]) {
  const [givenName, familyName = ""] = person.name.split(" ");
  return {
    id: person.id,
    primaryEmail: address(name),
    name: { fullName: person.name, givenName, familyName },
    suspended: person.suspended ?? false,
  };
}

/** What a search such as `email:'a*'` matches; none for another search. */
function found(objects, query, fields) {
  const [, field, text] = /^(\w+):'([^'*]*)\*'$/.exec(query ?? "") ?? [];
  if (!fields[field]) return undefined;
  const begins = (one) => fields[field](one).toLowerCase().startsWith(text.toLowerCase());
  return objects.filter(begins);
}

function directory(request, response, url) {
  const { people, groups, isLimited, epoch: now } = read();
  if (now !== epoch || now === "none") tokens.clear();
  epoch = now;
  const error = (code, reason) => send(response, code, { error: { code, errors: [{ reason }] } });
  if (isLimited) return error(403, "userRateLimitExceeded");
  const given = request.headers.authorization?.replace(/^Bearer /, "");
  if (!tokens.has(given)) return error(401, "authError");
  if (tokens.get(given) !== undefined) return error(403, "forbidden");
  const users = Object.entries(people).filter(([, one]) => !one.domain).map(user);
  const all = Object.entries(groups).map(([name, group]) => ({
    kind: "admin#directory#group",
    id: group.id,
    email: address(name),
    name: group.name,
    members: group.members,
  }));
  const shown = ({ members, ...group }) => group;
  const query = url.searchParams;
  const path = url.pathname.replace("/admin/directory/v1/", "");
  const [, kind, id] = /^(users|groups)\/([^/]+)$/.exec(path) ?? [];
  const isMeant = (one) => one.id === id;
  if (kind) {
    const one = kind === "users" ? users.find(isMeant) : all.filter(isMeant).map(shown)[0];
    return one ? send(response, 200, one) : error(404, "notFound");
  }
  if (path === "users") {
    const fields = {
      email: (one) => one.primaryEmail,
      givenName: (one) => one.name.givenName,
      familyName: (one) => one.name.familyName,
    };
    const matches = found(users, query.get("query"), fields);
    // A list without users has no field for them.
    if (!matches || query.get("domain") !== domain) return error(400, "invalid");
    return send(response, 200, matches.length > 0 ? { users: matches } : {});
  }
  if (path !== "groups") return error(404, "notFound");
  const member = query.get("userKey");
  const fields = { email: (one) => one.email, name: (one) => one.name };
  const matches = member
    ? all.filter(({ members }) => members.includes(member))
    : found(all, query.get("query"), fields);
  if (!matches) return error(400, "invalid");
  const start = Number(query.get("pageToken") ?? 0);
  const size = Math.min(Number(query.get("maxResults") ?? 200), PER_PAGE_MAX);
  const next = start + size < matches.length ? { nextPageToken: String(start + size) } : {};
  const part = matches.slice(start, start + size).map(shown);
  send(response, 200, part.length > 0 ? { groups: part, ...next } : {});
}

const server = createServer({ cert: certificate, key }, (request, response) => {
  const url = new URL(request.url, base);
  let body = "";
  request.on("data", (bytes) => {
    body += bytes;
  });
  request.on("end", () => {
    if (url.pathname === "/o/oauth2/v2/auth") authorize(request, response, url, body);
    else if (url.pathname === "/token") token(response, body);
    else if (url.pathname === "/v1/userinfo") userInfo(request, response);
    else if (url.pathname.startsWith("/admin/directory/v1/")) directory(request, response, url);
    else send(response, 404, { error: "not found" });
  });
});
server.listen(port, "127.0.0.1", () => console.log(`listening at ${base}`));
