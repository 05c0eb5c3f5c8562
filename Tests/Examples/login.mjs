// A login server. The app begins a login here, logs in at Facebook with the nonce that it gets, and sends the id token
// (Node 18 or newer).
//   VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... PORT=3000 node login.mjs
//
// Sessions are in this process's memory, since Node has none of its own. With Express take `express-session`, and its
// `request.session.regenerate` in place of `renew`.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";

const { VERIFY_URL = "http://127.0.0.1:8080", VERIFY_KEY = "", PORT = "3000" } = process.env;
const sessionLimits = { milliseconds: 3_600_000, count: 100_000 };
const bodyLimitBytes = 40_960;

class Failure extends Error {
  constructor(status, code) {
    super(code);
    this.status = status;
  }
}

/** Asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503. */
async function ask(path, members) {
  let status = 503, said;
  try {
    const headers = { "Content-Type": "application/json", "X-Api-Key": VERIFY_KEY };
    const signal = AbortSignal.timeout(10_000);
    const answer = await fetch(VERIFY_URL + path, { method: "POST", headers, body: JSON.stringify(members), signal });
    said = await answer.json();
    if (answer.ok) return said;
    // `unauthorized_client` is about this server's own key: no fault of the person's.
    if ([400, 401].includes(answer.status) && said.code !== "unauthorized_client") status = answer.status;
  } catch (error) {
    said = { code: error.message };
  }
  if (status === 503) console.error("limited-login cannot tell:", said?.code);
  throw new Failure(status, status === 503 ? "try_again" : said.code);
}

const sessions = new Map();

/** Puts a session with a new id in place of the one before: nobody knew this id earlier. */
function renew(oldID, content, response) {
  for (const [id, { until }] of sessions) {
    if (until > Date.now()) break;
    sessions.delete(id);
  }
  sessions.delete(oldID);
  if (sessions.size >= sessionLimits.count) throw new Failure(503, "too_many_sessions");
  const id = randomBytes(32).toString("base64url");
  sessions.set(id, { ...content, until: Date.now() + sessionLimits.milliseconds });
  response.setHeader("Set-Cookie", `__Host-session=${id}; Path=/; HttpOnly; Secure; SameSite=Lax`);
}

const routes = {
  async "POST /login/begin"(session, body, renewed) {
    const { nonce } = await ask("/nonces", {});
    const login = randomBytes(16).toString("base64url");
    renewed({ user: session.user, login, nonce });
    return { login, nonce };
  },

  async "POST /login"(session, body, renewed) {
    if (!session.login || body.login !== session.login) throw new Failure(401, "login_not_begun");
    const answer = await ask("/verify", { id_token: String(body.id_token), issued_nonce: true });
    // The nonce is this session's own. Another login's token has a good nonce too, but another one.
    if (answer.authentication_token.nonce !== session.nonce) throw new Failure(401, "another_login");
    renewed({ user: answer.profile.user_id });
    return { user: answer.profile.user_id, name: answer.profile.name };
  },

  async "POST /refresh"(session, body) {
    if (!session.user) throw new Failure(401, "not_logged_in");
    // The person is the session's, whatever the client says.
    await ask("/verify", { id_token: String(body.id_token), subject: session.user });
    return { user: session.user };
  },

  async "GET /me"(session) {
    if (!session.user) throw new Failure(401, "not_logged_in");
    return { user: session.user };
  },
};

async function bodyOf(request) {
  const chunks = [];
  let count = 0;
  for await (const chunk of request) {
    if ((count += chunk.length) > bodyLimitBytes) throw new Failure(413, "body_too_large");
    chunks.push(chunk);
  }
  try {
    return Object(JSON.parse(Buffer.concat(chunks).toString() || "{}"));
  } catch {
    throw new Failure(400, "invalid_request");
  }
}

createServer(async (request, response) => {
  let status = 200, answer;
  try {
    const route = routes[`${request.method} ${request.url}`];
    if (!route) throw new Failure(404, "not_found");
    const body = await bodyOf(request);
    const id = /(?:^|; )__Host-session=([\w-]{43})(?:;|$)/.exec(request.headers.cookie)?.[1];
    const session = sessions.get(id);
    const isLive = session && session.until > Date.now();
    answer = await route(isLive ? session : {}, body, (content) => renew(id, content, response));
  } catch (error) {
    if (!(error instanceof Failure)) console.error(error);
    [status, answer] = error instanceof Failure ? [error.status, { error: error.message }] : [500, { error: "internal" }];
  }
  response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  response.end(JSON.stringify(answer));
}).listen(Number(PORT), "127.0.0.1");
