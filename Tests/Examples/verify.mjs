// Asks limited-login about a login, whose nonce comes from your session (Node 18 or newer):
//   VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... node verify.mjs TOKEN nonce NONCE
// `verify.mjs TOKEN subject USER` asks about the refreshed token of your session's user; `verify.mjs TOKEN` about an access token.
// Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.

const base = process.env.VERIFY_URL ?? "http://127.0.0.1:8080";

/** The token is refused; `code` is stable. Any other error means that there is no verdict now. */
export class Refused extends Error {
  constructor({ code, detail }) {
    super(`${code}: ${detail}`);
    this.code = code;
  }
}

/** The answer to a good token. The binding, `{ nonce }` or `{ subject }`, comes from the session, never from the client. */
export async function verify(token, binding = {}) {
  const headers = { "Content-Type": "application/json" };
  if (process.env.VERIFY_KEY) headers["X-Api-Key"] = process.env.VERIFY_KEY;
  const members = { [token.startsWith("eyJ") ? "id_token" : "access_token"]: token, ...binding };
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

const [token, member, value] = process.argv.slice(2);
if (token && (member === undefined) === (value === undefined)) {
  try {
    const { profile } = await verify(token, member && { [member]: value });
    console.log(profile.user_id, profile.name ?? "");
  } catch (error) {
    console.error(error.message, error.cause?.code ?? "");
    process.exitCode = error instanceof Refused ? 1 : 3;
  }
} else {
  console.error("usage: verify.mjs TOKEN [nonce NONCE | subject USER]");
  process.exitCode = 64;
}
