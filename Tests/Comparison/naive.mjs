// A login in Node as a first search result writes it: the signature, the app and the hour, and no more. Never copy it.
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { createRemoteJWKSet, jwtVerify } from "jose";

const keys = createRemoteJWKSet(new URL(process.env.JWKS_URL));

createServer(async (request, response) => {
  try {
    const { payload } = await jwtVerify((await json(request)).id_token, keys, { audience: process.env.APP_ID });
    response.end(JSON.stringify({ user: payload.sub }));
  } catch {
    response.writeHead(401).end();
  }
}).listen(process.env.PORT, "127.0.0.1");
