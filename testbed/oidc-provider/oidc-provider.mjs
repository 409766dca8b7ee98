// A provider of OpenID Connect for tests: the certified implementation of that name, with the
// people of a file.
//
//   oidc-provider FILE
//
// FILE is JSON: `port`, `certificate` and `key` (PEM; without them it listens without TLS), `client`
// ({id, secret, redirect}), and `people`: claims by login name. The people are read anew at each
// request, so that a test can change them. Any password will do. Listens on loopback only, and
// prints a line once it does.

import { readFileSync } from "node:fs";
import { createServer as createPlainServer } from "node:http";
import { createServer } from "node:https";
import Provider from "oidc-provider";

const file = process.argv[2];
const read = () => JSON.parse(readFileSync(file, "utf8"));
const { port, certificate, key, client } = read();
const issuer = `${certificate ? "https" : "http"}://127.0.0.1:${port}`;

/** The person with this login name; who is not in the file does not exist. */
function findAccount(_context, name) {
  const claims = read().people[name];
  if (!claims) return undefined;
  return { accountId: name, claims: () => ({ sub: name, ...claims }) };
}

const provider = new Provider(issuer, {
  claims: {
    openid: ["sub"],
    profile: ["name", "preferred_username"],
    email: ["email"],
    groups: ["groups"],
  },
  clients: [
    {
      client_id: client.id,
      client_secret: client.secret,
      redirect_uris: [client.redirect],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    },
  ],
  cookies: { keys: ["of a test"] },
  findAccount,
  issueRefreshToken: async () => true,
  pkce: { required: () => true },
  ttl: { AccessToken: 600, IdToken: 600, RefreshToken: 3600, Session: 3600, Grant: 3600 },
});

const server = certificate
  ? createServer({ cert: certificate, key }, provider.callback())
  : createPlainServer(provider.callback());
server.listen(port, "127.0.0.1", () => console.log(`listening at ${issuer}`));
