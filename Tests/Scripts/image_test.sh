#!/bin/bash
# image_test.sh: builds the Dockerfile unchanged, twice with one result, runs the image as a cautious cluster would, and tests a
# login with it: DNS, private CA, HTTPS key fetch, verdict, health, stop.
set -euo pipefail
. "$(dirname "$0")/container_library.sh"
helper=$root/Tests/Scripts/image/stand_in_issuer.py

maximum_image_bytes=25000000
maximum_stop_seconds=5
memory_limit=64m
issuer_name=issuer.example.test
app_id=1234567890
nonce=5F0C1A52-7B0E-4D2B-9A47-6F3A2C1B0D9E

container=limited-login-test-$$
background=()

finish() {
  local status=$?
  if [ "$status" != 0 ] && podman container exists "$container" 2>/dev/null; then
    echo "--- container log" >&2
    podman logs "$container" >&2 || true
  fi
  for pid in "${background[@]}"; do kill "$pid" 2>/dev/null || true; done
  podman rm --force --ignore --time 1 "$container" "$container-blind" >/dev/null 2>&1 || true
  podman volume rm --force "$container" >/dev/null 2>&1 || true
  rm -rf "$work"
}

# expect DESCRIPTION ACTUAL WANTED
expect() {
  [ "$2" = "$3" ] || fail "$1: got '$2', expected '$3'"
  passed "$1: $2"
}

inspect() { podman inspect "$container" --format "$1"; }

# Builds the image from nothing.
build() {
  nice -n 10 "$scripts/build_image.sh" "$root" "$tag" --timestamp 0 --layers=false --no-cache >"$work/build.log" 2>&1 ||
    { tail -n 40 "$work/build.log" >&2; fail "the Dockerfile does not build"; }
}

# Prints the image id of the OCI format. The Docker format, which the health check needs, adds the name of the container that
# built the image, so its id differs every time.
# oci_id TAG
oci_id() {
  rm -rf "$work/oci"
  podman save --quiet --format oci-dir --output "$work/oci" "$1"
  python3 - "$work/oci" <<'EOF'
import json, pathlib, sys

def blob(digest): return json.loads((folder / "blobs" / digest.replace(":", "/")).read_text())

folder = pathlib.Path(sys.argv[1])
index = json.loads((folder / "index.json").read_text())
print(blob(index["manifests"][0]["digest"])["config"]["digest"])
EOF
}

check_build() {
  local first second
  build
  first=$(oci_id "$tag")
  podman image rm "$tag" >/dev/null
  build
  second=$(oci_id "$tag")
  expect 'id of a second build from nothing' "$second" "$first"
}

check_image() {
  local size
  size=$(podman image inspect "$tag" --format '{{.Size}}')
  [ "$size" -le "$maximum_image_bytes" ] || fail "the image has $size bytes, more than $maximum_image_bytes"
  passed "the image has $size bytes of $maximum_image_bytes allowed"
  expect 'user' "$(podman image inspect "$tag" --format '{{.User}}')" '65532:65532'
  expect 'health check' "$(podman image inspect "$tag" --format '{{.HealthCheck.Test}}')" '[CMD /limited-login healthcheck]'
  check_content
}

check_content() {
  local mounted
  mounted=$(podman image mount "$tag")
  (cd "$mounted" && find . ! -type d | sort) >"$work/files"
  expect 'files in the image' "$(tr '\n' ' ' <"$work/files")" \
    './etc/nsswitch.conf ./etc/ssl/certs/ca-certificates.crt ./limited-login ./usr/lib/ssl/cert.pem '
  readelf --program-headers "$mounted/limited-login" >"$work/headers"
  grep -q LOAD "$work/headers" || fail 'the binary has no program headers to judge'
  ! grep -q INTERP "$work/headers" || fail 'the binary asks for a dynamic loader'
  for unwanted in icudt libcurl/; do
    ! grep -qaF "$unwanted" "$mounted/limited-login" || fail "the binary contains $unwanted"
  done
  passed 'the binary is static, without ICU and without libcurl'
  podman image unmount "$tag" >/dev/null
}

# start NAME ARGUMENTS...: starts a container with the same hardening for every run. The image names its own user.
start() {
  local named=$1; shift
  podman run --detach --name "$named" --read-only --cap-drop=ALL --security-opt no-new-privileges \
    --pids-limit 64 --memory "$memory_limit" --memory-swap "$memory_limit" --cpus 1 --dns "$gateway" \
    --env LIMITED_LOGIN_APP_IDS="$app_id" \
    --env LIMITED_LOGIN_JWKS_URLS="https://$issuer_name:$issuer_port/.well-known/oauth/openid/jwks/" \
    "$@" "$tag" 2> >(grep -v 'systemd connection' >&2) >/dev/null
}

check_start() {
  python3 "$helper" make "$work" "$issuer_name"
  chmod 644 "$work/ca.pem"
  gateway=$(podman network inspect podman | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["subnets"][0]["gateway"])')
  port=$(free_port) admin_port=$(free_port) issuer_port=$(free_port)
  start "$container" --publish "127.0.0.1:$port:8080" --publish "127.0.0.1:$admin_port:8081" \
    --volume "$work/ca.pem:/run/private-ca.pem:ro" --env LIMITED_LOGIN_CA_FILE=/run/private-ca.pem
  within 60 answers "http://127.0.0.1:$port/livez" 200 || fail '/livez does not answer'
  passed 'it starts although the key source cannot be reached'
  expect '/readyz before there are keys' "$(status_of "http://127.0.0.1:$port/readyz")" 503
  # The bridge gets its address with the first container, so the issuer starts after it.
  python3 "$helper" names "$gateway" "$issuer_name" & background+=($!)
  python3 "$helper" serve "$work" "$gateway" "$issuer_port" 2>"$work/issuer.log" & background+=($!)
  within 60 answers "http://127.0.0.1:$port/readyz" 200 || fail 'no keys although the issuer answers by now'
  passed 'keys arrive: name by DNS, certificate by the mounted CA'
  expect '/readyz on the admin port' "$(status_of "http://127.0.0.1:$admin_port/readyz")" 200
}

check_confinement() {
  local pid seen
  pid=$(inspect '{{.State.Pid}}')
  expect 'read-only root' "$(inspect '{{.HostConfig.ReadonlyRootfs}}')" true
  seen=$(awk '/^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):/ { printf "%s%s ", $1, $2 }' "/proc/$pid/status")
  expect 'as the kernel sees it' "$seen" 'Uid:65532 CapEff:0000000000000000 CapBnd:0000000000000000 NoNewPrivs:1 Seccomp:2 '
}

# verify NONCE TOKEN: prints the status of POST /verify; the answer is in $work/answer.
verify() {
  printf '{"id_token":"%s","nonce":"%s"}' "$2" "$1" >"$work/request.json"
  status_of --header 'Content-Type: application/json' --data-binary "@$work/request.json" "http://127.0.0.1:$port/verify"
}
member() { python3 -c 'import functools, json, sys; print(functools.reduce(lambda value, key: value[key], sys.argv[2:], json.load(open(sys.argv[1]))))' "$work/answer" "$@"; }

check_verdicts() {
  local token tampered
  token=$(python3 "$helper" mint "$work" "$app_id" "$nonce")
  expect 'a good token' "$(verify "$nonce" "$token")" 200
  expect 'its e-mail address' "$(member profile email)" jane@example.com
  expect 'another login'\''s nonce' "$(verify 00000000-0000-4000-8000-000000000000 "$token")" 401
  expect 'its code' "$(member code)" nonce_mismatch
  tampered=$(python3 "$helper" mint "$work" 666 "$nonce" | cut -d. -f1-2).$(cut -d. -f3 <<<"$token")
  expect 'another token'\''s signature' "$(verify "$nonce" "$tampered")" 401
  expect 'its code' "$(member code)" invalid_signature
  podman healthcheck run "$container" >/dev/null || fail 'the health check does not pass'
  passed 'the health check passes'
}

# Without the private CA the issuer's certificate is not trusted: the answer is 503, never 401, and the log names the cause.
check_stranger() {
  local token
  port=$(free_port)
  start "$container-blind" --publish "127.0.0.1:$port:8080"
  within 60 answers "http://127.0.0.1:$port/livez" 200 || fail '/livez does not answer'
  token=$(python3 "$helper" mint "$work" "$app_id" "$nonce")
  expect 'a good token, but the issuer is not trusted' "$(verify "$nonce" "$token")" 503
  expect 'its code' "$(member code)" keys_unavailable
  within 60 blind_log_names_certificate || fail 'the log does not say that the certificate is at fault'
  passed 'the log says that the certificate is at fault'
  podman stop --time 10 "$container-blind" >/dev/null 2>&1
}
blind_log_names_certificate() { podman logs "$container-blind" 2>&1 | grep -qi certificate; }

# Checks a thousand connections within the memory limit. On one slow core the service may answer 503 to some of them
# (overloaded), but it may never refuse a good token. Without wrk the check is skipped.
check_load() {
  local good busy wrong
  if ! command -v wrk >/dev/null; then
    echo 'image: SKIPPED: load within the memory limit (wrk is not installed)'
    return
  fi
  verify "$nonce" "$(python3 "$helper" mint "$work" "$app_id" "$nonce")" >/dev/null
  wrk --threads 1 --connections 1000 --duration 5s --script "$root/Tests/Scripts/image/verify.lua" \
    "http://127.0.0.1:$port/verify" -- "$work/request.json" >"$work/wrk"
  read -r good busy wrong < <(sed -n 's/^answers: //p' "$work/wrk")
  echo "image: load: $good accepted, $busy told 503, $wrong wrong; $(grep 'Requests/sec' "$work/wrk")"
  [ "${wrong:-1}" = 0 ] || fail 'a good token was refused under load'
  [ "$good" -gt "$busy" ] || fail 'more requests were turned away than answered'
  expect 'killed for its memory' "$(inspect '{{.State.OOMKilled}}')" false
  expect 'healthy after the load' "$(status_of "http://127.0.0.1:$port/readyz")" 200
}

report_memory() {
  awk -v when="$1" '/^(VmRSS|RssAnon|Threads):/ { printf "image: memory %s: %s %s %s\n", when, $1, $2, $3 }' \
    "/proc/$(inspect '{{.State.Pid}}')/status"
}

# Runs the block of Operation.md; podman carries out what `docker compose` would do with config/compose.yaml.
check_compose() {
  local file=$root/config/compose.yaml options key
  options=(--read-only --cap-drop=ALL --security-opt no-new-privileges --volume "$container:$(sed -n 's/.*\["secrets:\(.*\)"\]/\1/p' "$file")")
  # The block calls it.
  # shellcheck disable=SC2046,SC2317  # the options are words without spaces
  docker() {
    case "$2" in
      run) podman run --rm "${options[@]}" "$tag" "${@:6}" ;;
      up) podman run --detach --name "$container" "${options[@]}" --publish "127.0.0.1:$port:8080" --env LIMITED_LOGIN_APP_IDS \
        $(sed -n 's/^ *\(LIMITED_LOGIN_[A-Z_]*_FILE\): /--env \1=/p' "$file") "$tag" ;;
    esac
  }
  port=$(free_port)
  eval "$(python3 "$root/Tests/Scripts/readme_command.py" compose)" >"$work/compose" || fail 'the block of Operation.md does not run'
  within 60 answers "http://127.0.0.1:$port/livez" 200 || fail '/livez does not answer'
  key=$(sed -n 's/^key:  //p' "$work/compose")
  expect 'a nonce for the key of the block' "$(status_of -X POST -H "X-Api-Key: $key" "http://127.0.0.1:$port/nonces")" 200
  ! podman logs "$container" 2>&1 | grep 'a setting may be a mistake' || fail 'the start warns'
}

# The image as it is: its own user, an empty root, and no /tmp.
check_demo() {
  podman run --detach --name "$container" --read-only --read-only-tmpfs=false --publish "127.0.0.1:$(free_port):8080" "$tag" demo --container >/dev/null
  within 60 podman exec "$container" /limited-login healthcheck || fail 'demo --container does not start'
  passed 'demo --container starts'
}

check_stop() {
  local before after
  before=$(date +%s%N)
  podman stop --time 10 "$container" >/dev/null 2>&1
  after=$(date +%s%N)
  expect 'exit code after SIGTERM' "$(inspect '{{.State.ExitCode}}')" 0
  [ $((after - before)) -le $((maximum_stop_seconds * 1000000000)) ] || fail "stopping took $(((after - before) / 1000000)) ms"
  passed "stopped after $(((after - before) / 1000000)) ms"
}

# shellcheck source=/dev/null
. "$scripts/common.sh"
trap finish EXIT
check_build
check_image
check_start
check_confinement
report_memory idle
check_verdicts
check_load
report_memory 'after load'
check_stop
check_stranger
for check in check_compose check_demo; do
  podman rm --force --ignore --time 1 "$container" >/dev/null 2>&1
  $check
done
passed 'all of it'
