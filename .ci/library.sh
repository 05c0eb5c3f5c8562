# Common to the steps, which source it: `. .ci/library.sh`.
# shellcheck shell=bash
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
export CI=true DEBIAN_FRONTEND=noninteractive
export CONTAINER_SCRIPTS=${CONTAINER_SCRIPTS:-$PWD/../shared/container}

# Options of a build from nothing that is used once. Whole modules take an eighth less time than single files. They take
# another twelfth less without a separate step for the module's interface, which expands the macros twice. SwiftPM looks for
# tests in the index, which needs no module of the system.
# shellcheck disable=SC2034  # the steps use it
MADE_ONCE=(-Xswiftc -whole-module-optimization -Xswiftc -no-emit-module-separately-wmo -Xswiftc -num-threads -Xswiftc 2
  -Xswiftc -index-ignore-system-modules)

skip() { printf 'SKIPPED: %s\n' "$*"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo --non-interactive --preserve-env=DEBIAN_FRONTEND "$@"; fi; }

is_installed() { dpkg-query --show --showformat='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# install PACKAGE...: installs the missing packages, and names those that it cannot install.
install() (
  apt() { as_root env RUNLEVEL=1 apt-get -o DPkg::Lock::Timeout=600 -qq "$@" >/dev/null; }
  missing=()
  for package in "$@"; do is_installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  apt update || echo 'apt-get update failed; trying with the lists there are'
  # At run level 1 no installed server starts by itself. One unavailable package fails the call for all.
  apt install --yes --no-install-recommends "${missing[@]}" && return 0
  for package in "${missing[@]}"; do
    apt install --yes --no-install-recommends "$package" || echo "could not install $package"
  done
)

# release PRODUCT: builds the optimised program and prints its folder.
release() { swift build -c release --product "$1" >&2 && swift build -c release --show-bin-path; }
