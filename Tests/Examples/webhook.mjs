// Takes limited-login's webhooks and verifies them by hand (Standard Webhooks; Node 18 or newer).
//   WEBHOOK_SECRET=whsec_... node webhook.mjs PORT
// With the public library (npm `standardwebhooks`) `verify` is `new Webhook(secret).verify(body, headers)`.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const toleranceSeconds = 300;

/** The event; throws if the webhook is not the service's, or is too old. */
export function verify(secret, headers, body) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds)) throw new Error("too old");
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  for (const signature of signatures.split(" ")) {
    const [version, digits] = signature.split(",");
    const sent = Buffer.from(digits ?? "", "base64");
    if (version === "v1" && sent.length === expected.length && timingSafeEqual(sent, expected)) return JSON.parse(body);
  }
  throw new Error("no signature fits");
}

/** Put the work into a queue here and return at once. The queue should drop an identifier that it knows. */
function handle(id, { type, data }) {
  if (type === "login.deauthorized" || type === "login.revoked") console.log("log out", data.app_id, data.user_id, id);
  if (type === "user.data_deletion_requested") console.log("delete", data.app_id, data.user_id, data.confirmation_code, id);
}

if (!process.argv[2] || !process.env.WEBHOOK_SECRET) {
  console.error("usage: WEBHOOK_SECRET=whsec_... node webhook.mjs PORT");
  process.exit(64);
}

createServer(async (request, response) => {
  try {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const event = verify(process.env.WEBHOOK_SECRET, request.headers, Buffer.concat(chunks));
    handle(request.headers["webhook-id"], event);
    response.writeHead(204).end();
  } catch {
    response.writeHead(400).end();
  }
}).listen(Number(process.argv[2]), "127.0.0.1");
