# Common to the tests of containers, which source it.
# shellcheck shell=bash
#
# CONTAINER_SCRIPTS  folder with common.sh and build_image.sh (default ../shared/container)
# IMAGE_TEST_TAG     the image (default limited-login:ci)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scripts=${CONTAINER_SCRIPTS:-$root/../shared/container}
tag=${IMAGE_TEST_TAG:-limited-login:ci}
work=$(mktemp -d)
name=$(basename "$0" _test.sh)

fail() { echo "$name: FAILED: $*" >&2; exit 1; }
passed() { echo "$name: ok: $*"; }

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
status_of() { curl --silent --max-time 5 --output "$work/answer" --write-out '%{http_code}' "$@" || true; }
answers() { [ "$(status_of "$1")" = "$2" ]; }
