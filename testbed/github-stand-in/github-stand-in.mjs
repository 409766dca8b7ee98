// A stand-in for GitHub Enterprise in tests, written from the public description of its OAuth pages
// and REST API. It has what a login needs: the pages, the exchange of a code, and the user with
// organisations and teams.
//
//   github-stand-in FILE
//
// FILE is JSON: `port`, `certificate` and `key` (PEM), `client` ({id, secret, redirect}), and
// `people` by login name: {id, name, orgs: [{id, login}], teams: [{id, name, organization}]}, with
// `suspended` for who may not log in. `isLimited` makes the API refuse everything for now. The file
// is read anew at each request. Listens on loopback only, and prints a line once it does.

import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";

const file = process.argv[2];
const read = () => JSON.parse(readFileSync(file, "utf8"));
const { port, certificate, key, client } = read();
const base = `https://127.0.0.1:${port}`;

/** Objects of a page, whatever is requested: GitHub's own limit, so that lists have pages here. */
const PER_PAGE_MAX = 2;

/** Code to who logged in, and with what the exchange must fit. Each is good once. */
const codes = new Map();
/** Access token to login name. */
const tokens = new Map();

const random = () => randomBytes(20).toString("hex");

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
  response.end(JSON.stringify(body));
}

function form(response, status, text) {
  response.writeHead(status, { "content-type": "text/html; charset=utf-8" });
  response.end(`<!doctype html><title>GitHub stand-in</title>${text}`);
}

/** The page where people log in; a form without an address goes back to it. */
function authorize(request, response, url, body) {
  const query = url.searchParams;
  const redirect = query.get("redirect_uri") ?? client.redirect;
  if (query.get("client_id") !== client.id || redirect !== client.redirect) {
    return form(response, 404, "<p>There is no such application, or no such callback.</p>");
  }
  if (request.method === "GET") {
    const field = '<input name="login"><input name="password" type="password">';
    return form(response, 200, `<form method="post">${field}<button>Sign in</button></form>`);
  }
  const login = new URLSearchParams(body).get("login");
  if (!read().people[login]) return form(response, 401, "<p>Incorrect username or password.</p>");
  const code = random();
  codes.set(code, { login, redirect, challenge: query.get("code_challenge") });
  const back = new URL(redirect);
  back.searchParams.set("code", code);
  back.searchParams.set("state", query.get("state") ?? "");
  response.writeHead(302, { location: back.href });
  response.end();
}

/** The exchange. A refusal has status 200. */
function accessToken(response, body) {
  const given = new URLSearchParams(body);
  const refuse = (error, error_description) => send(response, 200, { error, error_description });
  if (given.get("client_id") !== client.id || given.get("client_secret") !== client.secret) {
    const text = "The client_id and/or client_secret passed are incorrect.";
    return refuse("incorrect_client_credentials", text);
  }
  const known = codes.get(given.get("code"));
  codes.delete(given.get("code"));
  const verifier = given.get("code_verifier") ?? "";
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  if (!known || (known.challenge && known.challenge !== challenge)) {
    return refuse("bad_verification_code", "The code passed is incorrect or expired.");
  }
  if ((given.get("redirect_uri") ?? client.redirect) !== known.redirect) {
    return refuse("redirect_uri_mismatch", "The redirect_uri must match the callback URL.");
  }
  const token = `gho_${random()}`;
  tokens.set(token, known.login);
  send(response, 200, { access_token: token, scope: "read:org", token_type: "bearer" });
}

/** One page of a list, with the address of the next in `Link`. */
function list(response, url, all) {
  const page = Number(url.searchParams.get("page") ?? 1);
  const size = Math.min(Number(url.searchParams.get("per_page") ?? 30), PER_PAGE_MAX);
  const headers = {};
  if (page * size < all.length) {
    const next = new URL(url);
    next.searchParams.set("page", page + 1);
    headers.link = `<${next.href}>; rel="next"`;
  }
  send(response, 200, all.slice((page - 1) * size, page * size), headers);
}

function api(request, response, url) {
  const { people, isLimited } = read();
  const path = url.pathname.replace("/api/v3", "");
  if (isLimited) {
    const headers = { "x-ratelimit-remaining": "0" };
    return send(response, 403, { message: "API rate limit exceeded" }, headers);
  }
  const token = request.headers.authorization?.replace(/^Bearer /, "");
  const login = tokens.get(token);
  const me = people[login];
  // Who is deleted has no tokens any more.
  if (token && !me) return send(response, 401, { message: "Bad credentials" });
  if (me?.suspended) return send(response, 403, { message: "Sorry. Your account was suspended." });
  const user = ([name, person]) => ({ login: name, id: person.id, type: "User", name: person.name });
  const organisations = Object.values(people).flatMap(({ orgs }) => orgs ?? []);
  const teams = Object.values(people).flatMap(({ teams }) => teams ?? []);
  const organisation = (org) => ({ ...org, type: "Organization" });
  const one = (found) =>
    found ? send(response, 200, found) : send(response, 404, { message: "Not Found" });
  const [, kind, id] = /^\/(user|organizations|teams)\/(\d+)$/.exec(path) ?? [];
  const isMeant = (found) => found.id === Number(id);
  if (kind === "user") return one(Object.entries(people).map(user).find(isMeant));
  if (kind === "organizations") return one(organisations.map(organisation).find(isMeant));
  if (kind === "teams") return one(teams.find(isMeant));
  if (path === "/search/users") {
    const [text, ...terms] = (url.searchParams.get("q") ?? "").split(" ");
    const all = [...Object.entries(people).map(user), ...organisations.map(organisation)];
    const type = terms.includes("type:user") ? "User" : terms.includes("type:org") ? "Org" : "";
    const items = all.filter((one) => one.login.includes(text) && one.type.startsWith(type));
    const unique = [...new Map(items.map((item) => [item.login, item])).values()];
    return send(response, 200, { total_count: unique.length, items: unique });
  }
  if (!me) return send(response, 401, { message: "Requires authentication" });
  if (path === "/user") return send(response, 200, user([login, me]));
  if (path === "/user/orgs") return list(response, url, me.orgs ?? []);
  if (path === "/user/teams") return list(response, url, me.teams ?? []);
  send(response, 404, { message: "Not Found" });
}

const server = createServer({ cert: certificate, key }, (request, response) => {
  const url = new URL(request.url, base);
  let body = "";
  request.on("data", (bytes) => {
    body += bytes;
  });
  request.on("end", () => {
    if (url.pathname === "/login/oauth/authorize") authorize(request, response, url, body);
    else if (url.pathname === "/login/oauth/access_token") accessToken(response, body);
    else if (url.pathname.startsWith("/api/v3/")) api(request, response, url);
    else send(response, 404, { message: "Not Found" });
  });
});
server.listen(port, "127.0.0.1", () => console.log(`listening at ${base}`));
