// Asks limited-login about an id token with a nonce from POST /nonces, about an id token that the session of USER refreshed,
// or about an access token (Node 18 or newer).
//   VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... node verify.mjs TOKEN [USER]
// Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.

const base = process.env.VERIFY_URL ?? "http://127.0.0.1:8080";

/** The token is refused; `code` is stable. Any other error means that there is no verdict now. */
export class Refused extends Error {
  constructor({ code, detail }) {
    super(`${code}: ${detail}`);
    this.code = code;
  }
}

/** The answer to a good token. For a refresh, `user` comes from the session, never from the client. */
export async function verify(token, user) {
  const headers = { "Content-Type": "application/json" };
  if (process.env.VERIFY_KEY) headers["X-Api-Key"] = process.env.VERIFY_KEY;
  const members = token.startsWith("eyJ") ? { id_token: token } : { access_token: token };
  if (user) members.subject = user;
  else if (members.id_token) members.issued_nonce = true;
  const response = await fetch(`${base}/verify`, {
    method: "POST",
    headers,
    body: JSON.stringify(members),
    signal: AbortSignal.timeout(10_000),
  });
  const answer = await response.json();
  if (response.ok) return answer;
  // This server's own key is missing or wrong: an outage, not a refusal.
  if (answer.code === "unauthorized_client") throw new Error("set VERIFY_KEY to a key that the service knows");
  if (response.status === 401 && answer.code) throw new Refused(answer);
  throw new Error(`${answer.code}: ${answer.detail}`);
}

const [token, user] = process.argv.slice(2);
if (token) {
  try {
    const { profile } = await verify(token, user);
    console.log(profile.user_id, profile.name ?? "");
  } catch (error) {
    console.error(error.message, error.cause?.code ?? "");
    process.exitCode = error instanceof Refused ? 1 : 3;
  }
} else {
  console.error("usage: verify.mjs TOKEN [USER]");
  process.exitCode = 64;
}
