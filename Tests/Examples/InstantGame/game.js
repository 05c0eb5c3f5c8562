/**
 * Proves the player's id to the game's own server. The server begins a session with a nonce of limited-login's `POST /nonces`,
 * and asks `POST /verify` with `signed_player_info` and `issued_nonce: true`. Then it compares `player.nonce` with the nonce
 * of its session. The game never sends the nonce back.
 * @param instant the object FBInstant of SDK 8, after `initializeAsync`
 * @param server the address at which the game's own server takes players
 * @returns the server's answer, or a message for the player
 */
async function play(instant, server) {
  const post = (path, members) =>
    fetch(server + path, {
      method: "POST",
      credentials: "include",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(members),
    });
  const begun = await post("/begin", {});
  if (!begun.ok) return { message: "Please try again in a moment." };
  const { login, nonce } = await begun.json();
  // Facebook signs the nonce together with the player's id. getPlayerID() alone is only the client's claim.
  const player = await instant.player.getSignedPlayerInfoAsync(nonce);
  const answer = await post("", { login, signed_player_info: player.getSignature() });
  if (answer.ok) return answer.json();
  // 429 and 5xx are outages, so they end no session.
  if (answer.status === 429 || answer.status >= 500) return { message: "Please try again in a moment." };
  return { message: "Facebook does not vouch for this player. Please start the game anew." };
}

if (typeof module === "object") module.exports = { play };
