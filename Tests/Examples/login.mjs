// A login server. The app begins a login here, logs in at Facebook with the nonce from here, and sends the id token.
// It needs Node 18 or newer, and `npm install express cookie-parser` (Express 4 or 5).
//   VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... SESSION_SECRET=... PORT=3000 node login.mjs
//
// The signed cookie holds the session, and each change sets a new cookie. A client may send an old cookie again, so
// limited-login takes each nonce only once.
import { randomBytes } from "node:crypto";
import cookieParser from "cookie-parser";
import express from "express";

const { VERIFY_URL = "http://127.0.0.1:8080", VERIFY_KEY = "", SESSION_SECRET, PORT = "3000" } = process.env;
const hour = 3_600_000;

const failure = (status, code) => Object.assign(new Error(code), { status });

/** Asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503. */
async function ask(path, members) {
  let answer;
  try {
    const headers = { "Content-Type": "application/json", "X-Api-Key": VERIFY_KEY };
    const signal = AbortSignal.timeout(10_000);
    const response = await fetch(VERIFY_URL + path, { method: "POST", headers, body: JSON.stringify(members), signal });
    answer = await response.json();
    if (response.ok) return answer;
  } catch (error) {
    answer = { code: error.message };
  }
  // `unauthorized_client` is about this server's own key, not about the token.
  if ([400, 401].includes(answer.status) && answer.code !== "unauthorized_client") throw failure(answer.status, answer.code);
  console.error("limited-login cannot tell:", answer.code, answer.hint ?? "");
  throw failure(503, "try_again");
}

function sessionOf(request) {
  const session = request.signedCookies["__Host-session"];
  return session?.until > Date.now() ? session : {};
}

function save(session, response) {
  const flags = { signed: true, secure: true, httpOnly: true, sameSite: "lax", maxAge: hour };
  response.cookie("__Host-session", { ...session, until: Date.now() + hour }, flags);
}

function userOf(request) {
  const { user } = sessionOf(request);
  if (!user) throw failure(401, "not_logged_in");
  return user;
}

// Express 4 does not wait for a promise.
const awaited = (handler) => (request, response, next) => handler(request, response).catch(next);
const app = express().use(express.json({ limit: "40kb" }), cookieParser(SESSION_SECRET));

app.post("/login/begin", awaited(async (request, response) => {
  const { nonce } = await ask("/nonces", {});
  const login = randomBytes(16).toString("base64url");
  save({ user: sessionOf(request).user, login, nonce }, response);
  response.json({ login, nonce });
}));

app.post("/login", awaited(async (request, response) => {
  const session = sessionOf(request);
  if (!session.login || request.body?.login !== session.login) throw failure(401, "login_not_begun");
  const { authentication_token, profile } = await ask("/verify", { id_token: request.body.id_token, issued_nonce: true });
  // The token must have this session's nonce: another login's token has a good nonce too.
  if (authentication_token.nonce !== session.nonce) throw failure(401, "another_login");
  save({ user: profile.user_id }, response);
  response.json({ user: profile.user_id, name: profile.name });
}));

app.post("/refresh", awaited(async (request, response) => {
  // The user comes from the session, never from the client.
  await ask("/verify", { id_token: request.body?.id_token, subject: userOf(request) });
  response.json({ user: userOf(request) });
}));

app.get("/me", (request, response) => response.json({ user: userOf(request) }));

app.use((error, request, response, next) => {
  if (!error.status) console.error(error);
  response.status(error.status ?? 500).json({ error: error.status ? error.message : "internal" });
});
app.listen(Number(PORT), "127.0.0.1");
