// A login server. The app begins a login here, logs in at Facebook with the nonce from here, and sends the id token.
// It needs Node 18 or newer, Express 4 or 5, and cookie-parser; README.md has the command that installs and starts it.
//
// The signed cookie holds the session, and each change sets a new cookie. A client may send an old cookie again, so
// limited-login takes each nonce only once.
import { randomBytes } from "node:crypto";
import cookieParser from "cookie-parser";
import express from "express";

/** A session ends so many milliseconds after its login or its last refresh. */
const lifetime = 3_600_000;

function setting(name, pattern, meaning) {
  const value = process.env[name] ?? "";
  if (pattern.test(value)) return value;
  console.error(`${name} must be ${meaning}.`);
  process.exit(1);
}

const verifyURL = setting("VERIFY_URL", /^https?:\/\/.*[^/]$/, "the address of limited-login, such as http://127.0.0.1:8080");
const verifyKey = setting("VERIFY_KEY", /./, "this server's key at limited-login");
const sessionSecret = setting("SESSION_SECRET", /^.{32,}$/, "a secret of at least 32 random characters");

const failure = (status, code) => Object.assign(new Error(code), { status });

/** Asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503. */
async function ask(path, members) {
  let answer;
  try {
    const headers = { "Content-Type": "application/json", "X-Api-Key": verifyKey };
    const signal = AbortSignal.timeout(10_000);
    const response = await fetch(verifyURL + path, { method: "POST", headers, body: JSON.stringify(members), signal });
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

const flags = { secure: true, httpOnly: true, sameSite: "lax" };
const sessionOf = (request) => request.signedCookies["__Host-session"] || {};
const save = (session, response) =>
  response.cookie("__Host-session", session, { ...flags, signed: true, maxAge: lifetime });

function userOf(request) {
  const { user, until } = sessionOf(request);
  if (until > Date.now()) return user;
  throw failure(401, "not_logged_in");
}

// Express 4 does not wait for a promise.
const awaited = (handler) => (request, response, next) => handler(request, response).catch(next);
const app = express().use(express.json({ limit: "40kb" }), cookieParser(sessionSecret));

app.post("/login/begin", awaited(async (request, response) => {
  const { nonce } = await ask("/nonces", {});
  const { user, until } = sessionOf(request);
  const login = randomBytes(16).toString("base64url");
  save({ user, until, login, nonce }, response);
  response.json({ login, nonce });
}));

app.post("/login", awaited(async (request, response) => {
  const { login, nonce } = sessionOf(request);
  if (!login || request.body?.login !== login) throw failure(401, "login_not_begun");
  // The nonce comes from the session. limited-login compares it with the token's, and takes it once.
  const { profile } = await ask("/verify", { id_token: request.body.id_token, nonce });
  save({ user: profile.user_id, until: Date.now() + lifetime }, response);
  response.json({ user: profile.user_id, name: profile.name });
}));

app.post("/refresh", awaited(async (request, response) => {
  // The user comes from the session, never from the client.
  const user = userOf(request);
  await ask("/verify", { id_token: request.body?.id_token, subject: user });
  save({ ...sessionOf(request), until: Date.now() + lifetime }, response);
  response.json({ user });
}));

app.post("/logout", (request, response) => response.clearCookie("__Host-session", flags).json({}));

app.get("/me", (request, response) => response.json({ user: userOf(request) }));

app.use((error, request, response, next) => {
  if (!error.status) console.error(error);
  response.status(error.status ?? 500).json({ error: error.status ? error.message : "internal" });
});
app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
