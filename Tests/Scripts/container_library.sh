# Common to the tests of containers, which source it.
# shellcheck shell=bash

# within SECONDS COMMAND...: repeats the command until it succeeds; false if the time is up.
within() {
  local deadline=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# status_of URL [OPTION...]: the status of the answer; its body is in "$work/answer".
# shellcheck disable=SC2154  # the tests set it
status_of() { curl --silent --max-time 5 --output "$work/answer" --write-out '%{http_code}' "$@" || true; }
answers() { [ "$(status_of "$1")" = "$2" ]; }
