/**
 * Logs a person in with Facebook's dialog, and lets the server judge the result. The dialog gets a nonce of the server, so
 * the access token is tied to this login: the server asks limited-login with `auth_nonce: true` and the `nonce` of its
 * session. The page never sends the nonce back.
 * `auth_type: "reauthenticate"` makes the person type the password.
 * @param facebook the object FB of Facebook's SDK
 * @param server the address at which the page's own server takes logins; that server asks limited-login
 * @returns a message for the person
 */
async function logIn(facebook, server) {
  const post = (path, members) =>
    fetch(server + path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(members),
    });
  const begun = await post("/begin", {});
  if (!begun.ok) return "Please try again in a moment.";
  const { login, nonce } = await begun.json();
  const options = { scope: "public_profile,email", auth_type: "reauthenticate", auth_nonce: nonce };
  const { authResponse } = await new Promise((done) => facebook.login(done, options));
  if (!authResponse) return "You did not log in.";
  // The token is opaque: the page reads nothing from it, not even the person's id.
  const answer = await post("", { login, access_token: authResponse.accessToken });
  if (answer.ok) return `Welcome, ${(await answer.json()).name}.`;
  // 429 and 5xx are outages, so they log no one out.
  if (answer.status === 429 || answer.status >= 500) return "Please try again in a moment.";
  return "Facebook does not vouch for this login. Please log in again.";
}

if (typeof module === "object") module.exports = { logIn };
