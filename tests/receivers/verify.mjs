// Verifies a delivery with the standard's own library: node verify.mjs SECRET ID TIMESTAMP SIGNATURE < body
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const [secret, id, timestamp, signature] = process.argv.slice(2);
new Webhook(secret).verify(readFileSync(0), {
  "webhook-id": id,
  "webhook-timestamp": timestamp,
  "webhook-signature": signature,
});
