// Judges the token on standard input with jose, as the page of `jwtVerify` says; `judge.py` has the exit codes.
import { text } from "node:stream/consumers";
import { createRemoteJWKSet, jwtVerify } from "jose";

const keys = createRemoteJWKSet(new URL(process.env.JWKS_URL));
try {
  await jwtVerify(await text(process.stdin), keys, { issuer: process.env.ISSUER, audience: process.env.APP_ID });
  process.exit(0);
} catch (error) {
  // The connection that fetched the keys would keep the program alive for seconds.
  process.exit(error.code?.startsWith("ERR_J") ? 1 : 70);
}
