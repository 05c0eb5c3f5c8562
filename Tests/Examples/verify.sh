#!/bin/sh
# Asks limited-login with curl about an id token with a nonce from POST /nonces, about an id token that the session of USER
# refreshed, or about an access token.
#   VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... verify.sh TOKEN [USER]
# Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.
set -u
[ $# -ge 1 ] || { echo "usage: $0 TOKEN [USER]" >&2; exit 64; }
case $1 in
  eyJ*) members="\"id_token\": \"$1\"" binding='"issued_nonce": true' ;;
  *) members="\"access_token\": \"$1\"" binding='' ;;
esac
# The user of a refresh comes from your session, never from the client.
[ $# -lt 2 ] || binding="\"subject\": \"$2\""
answer=$(
  # Send the token by standard input: every user can read arguments in the process list.
  printf '{%s%s%s}' "$members" "${binding:+, }" "$binding" |
    curl -sS --max-time 10 -w '\n%{http_code}' -H 'Content-Type: application/json' \
      ${VERIFY_KEY:+-H "X-Api-Key: $VERIFY_KEY"} --data-binary @- "${VERIFY_URL:-http://127.0.0.1:8080}/verify"
) || exit 3
status=${answer##*
}
printf '%s\n' "${answer%
*}"
case "$status $answer" in
  200*) exit 0 ;;
  # This server's own key is missing or wrong: an outage, not a refusal.
  *'"code":"unauthorized_client"'*) echo 'set VERIFY_KEY to a key that the service knows' >&2; exit 3 ;;
  401*) exit 1 ;;
  *) exit 3 ;;
esac
