// An OpenID provider as a process of its own: node provider.mjs HOST, forked by whoever needs one.
//
// It tells its issuer at once, and begins when it is told where people are to be sent back to. Somebody who signs in
// as `ada` has the e-mail ada@example.com, at every provider.
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
