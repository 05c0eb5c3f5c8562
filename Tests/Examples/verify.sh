#!/bin/sh
# Asks limited-login with curl about a login, whose nonce comes from your session:
#   VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... verify.sh TOKEN nonce NONCE
# `verify.sh TOKEN subject USER` asks about the refreshed token of your session's user; `verify.sh TOKEN` about an access token.
# Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.
set -u
case $# in 1 | 3) ;; *) echo "usage: $0 TOKEN [nonce NONCE | subject USER]" >&2; exit 64 ;; esac
case $1 in eyJ*) kind=id_token ;; *) kind=access_token ;; esac
members="\"$kind\": \"$1\"${2:+, \"$2\": \"${3-}\"}"
answer=$(
  # Send the token by standard input: every user can read arguments in the process list.
  printf '{%s}' "$members" |
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
