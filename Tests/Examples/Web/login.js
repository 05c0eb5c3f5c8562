/**
 * Opens Facebook's dialog and has the server judge what comes of it. A login on the web yields an access token, which is
 * opaque: the page sends it on as `access_token` and reads nothing from it, not even the person's id.
 * @param facebook the object FB of Facebook's SDK
 * @param server where the page's own server takes logins; it asks limited-login
 * @returns what to tell the person
 */
async function logIn(facebook, server) {
  const { authResponse } = await new Promise((done) => facebook.login(done, { scope: "public_profile,email" }));
  if (!authResponse) return "You did not log in.";
  const answer = await fetch(server, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ access_token: authResponse.accessToken }),
  });
  if (answer.ok) return `Welcome, ${(await answer.json()).name}.`;
  // 429 and 5xx: nobody can tell now, so nobody is logged out for it.
  if (answer.status === 429 || answer.status >= 500) return "Please try again in a moment.";
  return "Facebook does not vouch for this login. Please log in again.";
}

if (typeof module === "object") module.exports = { logIn };
