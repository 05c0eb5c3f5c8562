#!/bin/bash
# kube_test.sh: renders config/kubernetes, validates it offline and strictly against the API's own schemas, and runs it in
# podman with the built image.
set -euo pipefail
. "$(dirname "$0")/container_library.sh"
validator=${LINT_VENV:-$HOME/.cache/ct-lint}/bin/kubernetes-validate
manifest=$work/played.yaml

finish() {
  local status=$?
  if [ "$status" != 0 ] && [ -n "${container:-}" ]; then podman logs "$container" >&2 || true; fi
  if [ -f "$manifest" ]; then podman play kube --down "$manifest" >/dev/null 2>&1 || true; fi
  rm -rf "$work"
}
trap finish EXIT

# Checks that the callers' authority is not the listener's own: each holder of a certificate from that would be a caller.
check_callers() {
  kubectl kustomize "$root/config/kubernetes/overlays/tls" | python3 -c '
import re, sys
text = sys.stdin.read()
folder = re.search(r"CLIENT_CA_FILE\n *value: (\S+)/ca\.crt\n", text).group(1)
volume = re.search(rf"mountPath: {folder}\n *name: (\S+)\n", text).group(1)
secret = re.search(rf"- name: {volume}\n *secret:\n *secretName: (\S+)\n", text).group(1)
sys.exit(secret != "limited-login-client-ca")' || fail "the callers' authorities do not come from a Secret of their own"
  passed "the callers' authorities come from a Secret of their own"
}

validate() {
  local overlay version
  if [ ! -x "$validator" ]; then
    echo 'kube: SKIPPED: validation (kubernetes-validate is not installed)'
    return
  fi
  for overlay in "$root"/config/kubernetes/overlays/*; do
    # Google's own kinds have no schema in Kubernetes.
    kubectl kustomize "$overlay" | awk -v RS='---\n' -v ORS='---\n' '!/apiVersion: (networking.gke.io|cloud.google.com)/' >"$work/rendered.yaml"
    for version in 1.28 1.33; do
      "$validator" -k "$version" --strict "$work/rendered.yaml" >"$work/validation" 2>&1 ||
        { cat "$work/validation" >&2; fail "$overlay is not valid for Kubernetes $version"; }
    done
    passed "overlay ${overlay##*/}: $(grep -c '^kind:' "$work/rendered.yaml") documents are valid, strictly, for Kubernetes 1.28 and 1.33"
  done
  # The validator must find a planted mistake.
  sed 's/readOnlyRootFilesystem/readOnlyRootFileSystem/' "$work/rendered.yaml" >"$work/wrong.yaml"
  ! "$validator" -k 1.33 --strict "$work/wrong.yaml" >/dev/null 2>&1 || fail 'the validator does not see an unknown field'
}

# Renders the overlay with the changes that podman needs: the local image, one replica on ports of the host, and no probe
# by HTTP (podman would run curl within the image).
render_for_podman() {
  mkdir "$work/overlay"
  ln -s "$root/config/kubernetes" "$work/kubernetes"
  cat >"$work/overlay/kustomization.yaml" <<EOF
resources:
  - ../kubernetes/overlays/example
images:
  - name: registry.example/limited-login
    newName: localhost/${tag%%:*}
    newTag: "${tag##*:}"
patches:
  - target:
      kind: Deployment
    patch: |
      - {op: add, path: /spec/replicas, value: 1}
      - {op: add, path: /spec/template/spec/containers/0/imagePullPolicy, value: Never}
      - {op: remove, path: /spec/template/spec/containers/0/startupProbe}
      - {op: remove, path: /spec/template/spec/containers/0/livenessProbe}
      - {op: add, path: /spec/template/spec/containers/0/ports/0/hostPort, value: $port}
      - {op: add, path: /spec/template/spec/containers/0/ports/1/hostPort, value: $admin_port}
EOF
  # A kustomization must not lie above its base, so a copy of the folder is rendered.
  rm "$work/kubernetes"
  cp -R "$root/config/kubernetes" "$work/kubernetes"
  kubectl kustomize "$work/overlay" >"$manifest"
}

play() {
  port=$(free_port) admin_port=$(free_port)
  render_for_podman
  podman play kube "$manifest" >"$work/play" 2>&1 || { cat "$work/play" >&2; fail 'podman cannot play the manifests'; }
  container=$(podman ps --format '{{.Names}}' | grep -m 1 limited-login.*-limited-login) || fail 'there is no container'
  within 60 answers "http://127.0.0.1:$admin_port/livez" 200 || fail 'it does not live'
  passed "podman plays the Deployment: $container lives"
  # Facebook cannot be reached from here, so the service must be alive and not ready.
  within 60 answers "http://127.0.0.1:$port/readyz" 503 || fail '/readyz does not answer 503 without keys'
  passed 'alive, and not ready without keys'
  local pid seen
  pid=$(podman inspect "$container" --format '{{.State.Pid}}')
  seen=$(awk '/^(Uid|Gid|CapEff|CapBnd|NoNewPrivs):/ { printf "%s%s ", $1, $2 }' "/proc/$pid/status")
  [ "$seen" = 'Uid:65532 Gid:65532 NoNewPrivs:1 CapEff:0000000000000000 CapBnd:0000000000000000 ' ] ||
    [ "$seen" = 'Uid:65532 Gid:65532 CapEff:0000000000000000 CapBnd:0000000000000000 NoNewPrivs:1 ' ] || fail "confinement: $seen"
  [ "$(podman inspect "$container" --format '{{.HostConfig.ReadonlyRootfs}}')" = true ] || fail 'the root can be written'
  [ "$(podman inspect "$container" --format '{{.HostConfig.Memory}}')" = $((64 * 1024 * 1024)) ] || fail 'no memory limit'
  passed "the security context and the memory limit apply: $seen"
  # podman itself would run the probe with a shell, which the image lacks.
  podman exec "$container" /limited-login healthcheck >/dev/null || fail 'the health check within the container fails'
  passed 'the health check within the container passes'
  # 137 would be a kill: the drain delay of five seconds has to fit into the time podman gives.
  podman stop --time 20 "$container" >/dev/null 2>&1
  [ "$(podman inspect "$container" --format '{{.State.ExitCode}}')" = 0 ] || fail 'it does not stop in order'
  passed 'SIGTERM: drained and stopped with exit code 0'
}

# Runs the block of Operation.md without a cluster: kubectl makes and renders, and sends nothing.
check_block() {
  kubectl() {
    case "$1" in
      create) command kubectl "$@" --dry-run=client --output yaml ;;
      apply) command kubectl kustomize "$root/$3" ;;
    esac
  }
  limited-login() { "${LIMITED_LOGIN:-$root/.build/debug/limited-login}" "$@"; }
  echo secret >"$work/redis-password"
  (cd "$work" && eval "$(python3 "$root/Tests/Scripts/readme_command.py" kubernetes)") >"$work/block" || fail 'the block does not run'
  local file
  for file in nonce-secret client-keys redis-password; do
    if ! grep -q "^  $file: " "$work/block" || ! grep -q "/run/secrets/limited-login/$file\$" "$work/block"; then
      fail "$file has no place"
    fi
  done
  passed "the block of Operation.md makes the Secret with each file that the Deployment reads"
}

command -v kubectl >/dev/null || { echo 'kube: SKIPPED: kubectl (for kustomize) is not installed'; exit 0; }
check_callers
check_block
validate
command -v podman >/dev/null || { echo 'kube: SKIPPED: podman is not installed'; exit 0; }
# shellcheck source=/dev/null
. "$scripts/common.sh"
podman image exists "$tag" || fail "there is no image $tag"
play
