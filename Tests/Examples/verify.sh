#!/bin/sh
# Asks limited-login about an id token, or without a nonce about an access token, with curl.
#   VERIFY_URL=http://127.0.0.1:8080 verify.sh TOKEN [NONCE]      exit code 0 accepted, 1 refused, 3 try again
set -u
answer=$(
  # The token goes by standard input: arguments stand in the process list for everybody.
  if [ $# -gt 1 ]; then printf '{"id_token": "%s", "nonce": "%s"}' "$1" "$2"; else printf '{"access_token": "%s"}' "$1"; fi |
    curl -sS --max-time 10 -w '\n%{http_code}' -H 'Content-Type: application/json' \
      ${VERIFY_KEY:+-H "X-Api-Key: $VERIFY_KEY"} --data-binary @- "${VERIFY_URL:-http://127.0.0.1:8080}/verify"
) || exit 3
status=${answer##*
}
printf '%s\n' "${answer%
*}"
case $status in
  200) exit 0 ;;
  429) exit 3 ;;
  4??) exit 1 ;;
  *) exit 3 ;;
esac
