// A web page with an id token: Facebook's dialog by redirect, with a code and PKCE (Node 18 or newer). No script runs in
// the page, no token reaches the browser, and the app's secret is not needed.
//   APP_ID=... ORIGIN=https://app.example VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... PORT=3000 node code-flow.mjs
// Enter ORIGIN/login/callback in the App Dashboard as a valid OAuth redirect URI.
//
// Sessions are in this process's memory.
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";

const {
  APP_ID, ORIGIN = "http://127.0.0.1:3000", VERIFY_URL = "http://127.0.0.1:8080", VERIFY_KEY = "", PORT = "3000",
  DIALOG = "https://www.facebook.com/v26.0/dialog/oauth",
  EXCHANGE = "https://graph.facebook.com/v26.0/oauth/access_token",
} = process.env;
const sessionLimits = { milliseconds: 3_600_000, count: 100_000 };
const redirectURI = `${ORIGIN}/login/callback`;
const secret = () => randomBytes(32).toString("base64url");

class Failure extends Error {
  constructor(status, code) {
    super(code);
    this.status = status;
  }
}

async function asked(url, options = {}) {
  try {
    const answer = await fetch(url, { ...options, redirect: "error", signal: AbortSignal.timeout(10_000) });
    return { status: answer.status, said: await answer.json() };
  } catch (error) {
    console.error("no answer:", error.message);
    throw new Failure(503, "try_again");
  }
}

/** Asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503. */
async function ask(path, members) {
  const headers = { "Content-Type": "application/json", "X-Api-Key": VERIFY_KEY };
  const { status, said } = await asked(VERIFY_URL + path, { method: "POST", headers, body: JSON.stringify(members) });
  if (status === 200) return said;
  // `unauthorized_client` is about this server's own key, not about the token.
  if ([400, 401].includes(status) && said.code !== "unauthorized_client") throw new Failure(status, said.code);
  console.error("limited-login cannot tell:", said.code);
  throw new Failure(503, "try_again");
}

const sessions = new Map();

/** Replaces the session with one under a new id, which no other client can know. */
function renew(oldID, content, response) {
  for (const [id, { until }] of sessions) {
    if (until > Date.now()) break;
    sessions.delete(id);
  }
  sessions.delete(oldID);
  if (sessions.size >= sessionLimits.count) throw new Failure(503, "too_many_sessions");
  const id = secret();
  sessions.set(id, { ...content, until: Date.now() + sessionLimits.milliseconds });
  // Lax: the browser sends the cookie with Facebook's redirect, but not with requests of other pages.
  response.setHeader("Set-Cookie", `__Host-session=${id}; Path=/; HttpOnly; Secure; SameSite=Lax`);
}

const routes = {
  async "/"(session) {
    return session.user ? `logged in as ${session.user}` : null;
  },

  async "/login"(session, query, renewed, response) {
    const { nonce } = await ask("/nonces", { app_id: APP_ID, tracking: "enabled", permissions: ["email"] });
    const [state, verifier] = [secret(), secret()];
    // All three stay in the session. The browser sees the state, the nonce and the hash of the verifier.
    renewed({ user: session.user, state, verifier, nonce });
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const parameters = {
      client_id: APP_ID, redirect_uri: redirectURI, response_type: "code", scope: "openid,public_profile,email", state,
      nonce, code_challenge: challenge, code_challenge_method: "S256",
    };
    response.writeHead(302, { Location: `${DIALOG}?${new URLSearchParams(parameters)}`, "Cache-Control": "no-store" });
    response.end();
  },

  async "/login/callback"(session, query, renewed) {
    const { user, state, verifier, nonce } = session;
    if (!state || query.get("state") !== state) throw new Failure(401, "login_not_begun");
    // A login takes one answer: the state and the verifier are used up even if it fails.
    renewed({ user });
    const code = query.get("code");
    if (!code) throw new Failure(401, "not_logged_in");
    const parameters = { client_id: APP_ID, redirect_uri: redirectURI, code, code_verifier: verifier };
    const { status, said } = await asked(`${EXCHANGE}?${new URLSearchParams(parameters)}`);
    if (status >= 500 || status === 429) throw new Failure(503, "try_again");
    if (status !== 200) throw new Failure(401, "code_refused");
    // Facebook may send no id token (without `openid` it does not), and an access token alone is tied to no login.
    if (!said.id_token) throw new Failure(401, "no_id_token");
    const token = { id_token: said.id_token, access_token: said.access_token };
    // The nonce comes from the session. limited-login compares it with the token's, and takes it once.
    const { profile } = await ask("/verify", { ...token, app_id: APP_ID, nonce });
    renewed({ user: profile.user_id });
    return `logged in as ${profile.user_id}`;
  },
};

const page = (text) => `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Log in</title>
<p id="outcome" role="status">${text ?? "not logged in"}</p>
<p><a id="log-in" href="/login">Log in with Facebook</a></p>
</html>
`;

createServer(async (request, response) => {
  let status = 200, text;
  try {
    const url = new URL(request.url, ORIGIN);
    const route = request.method === "GET" && Object.hasOwn(routes, url.pathname) && routes[url.pathname];
    if (!route) throw new Failure(404, "not_found");
    let id = /(?:^|; )__Host-session=([\w-]{43})(?:;|$)/.exec(request.headers.cookie)?.[1];
    const session = sessions.get(id);
    const isLive = session && session.until > Date.now();
    const renewed = (content) => {
      renew(id, content, response);
      id = [...sessions.keys()].at(-1);
    };
    text = await route(isLive ? session : {}, url.searchParams, renewed, response);
  } catch (error) {
    if (!(error instanceof Failure)) console.error(error);
    [status, text] = error instanceof Failure ? [error.status, `refused: ${error.message}`] : [500, "refused: internal"];
  }
  if (response.headersSent) return;
  response.writeHead(status, {
    "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
  });
  response.end(page(text));
}).listen(Number(PORT), "127.0.0.1");
