// An OpenID provider in its own process: node provider.mjs HOST. Tests fork it.
//
// It sends its issuer to the parent at once and starts when it receives the callback URL. A user who signs in as `ada`
// has the e-mail address ada@example.com, at every provider.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const [host] = process.argv.slice(2);
let answer = (_request, response) => response.writeHead(503).end();
const server = createServer((request, response) => answer(request, response));

server.listen(0, host, () => {
  const issuer = `http://${host}:${server.address().port}`;
  process.send({ issuer });
  process.once("message", ({ callback }) => {
    answer = new Provider(issuer, settings(callback)).callback();
    process.send({ ready: true });
  });
});
process.on("disconnect", () => process.exit());

function settings(callback) {
  return {
    clients: [
      {
        client_id: "web-runtime",
        client_secret: "a-secret-between-the-two",
        redirect_uris: [callback],
        grant_types: ["authorization_code"],
        response_types: ["code"],
      },
    ],
    pkce: { required: () => true },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, name: `${id} of ${host}` }),
    }),
    cookies: { keys: ["only-for-tests"] },
  };
}
