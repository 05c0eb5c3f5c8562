// Asks limited-login about an id token, or without a nonce about an access token (Node 18 or newer).
//   VERIFY_URL=http://127.0.0.1:8080 node verify.mjs TOKEN [NONCE]      exit code 0 accepted, 1 refused, 3 try again

const base = process.env.VERIFY_URL ?? "http://127.0.0.1:8080";

/** The answer to a good token; throws the problem of a refusal, with its `status` and stable `code`. */
export async function verify(token, nonce) {
  const headers = { "Content-Type": "application/json" };
  if (process.env.VERIFY_KEY) headers["X-Api-Key"] = process.env.VERIFY_KEY;
  const response = await fetch(`${base}/verify`, {
    method: "POST",
    headers,
    body: JSON.stringify(nonce ? { id_token: token, nonce } : { access_token: token }),
    signal: AbortSignal.timeout(10_000),
  });
  const answer = await response.json();
  if (!response.ok) throw answer;
  return answer;
}

const [token, nonce] = process.argv.slice(2);
try {
  const { profile } = await verify(token, nonce);
  console.log(profile.user_id, profile.name ?? "");
} catch (problem) {
  console.error(problem.code, problem.detail ?? problem.message);
  // Nobody can tell in an outage (5xx, and 429 of Facebook) whether the token is good, so nobody is logged out for it.
  process.exitCode = problem.status >= 400 && problem.status < 500 && problem.status !== 429 ? 1 : 3;
}
