#!/bin/bash
# check_linkage.sh BINARY: checks that a dynamically linked build needs only the libraries named here.
# Full Foundation, its ICU tables and libcurl would triple the binary and double its memory.
set -euo pipefail

allowed='^(linux-vdso|ld-linux-[a-z0-9-]+|libc|libm|libgcc_s|libstdc\+\+|libssl|libcrypto|libdispatch|libBlocksRuntime|libFoundationEssentials|libswift[A-Za-z_]*)$'

# Prints every library outside the list that the binary needs, directly or through another one.
unexpected() {
  ldd "$1" | awk '{ print $1 }' | sed -e 's|.*/||' -e 's|\.so.*||' | { grep -Ev "$allowed" || true; }
}

binary=${1:?usage: check_linkage.sh BINARY}

# The check must be able to fail: Foundation itself needs libraries that are not allowed.
toolchain=$(dirname "$(readlink -f "$(command -v swift)")")/..
foundation=$toolchain/lib/swift/linux/libFoundation.so
[ -e "$foundation" ] || { echo "no libFoundation.so in the toolchain to try the check on" >&2; exit 1; }
[ -n "$(unexpected "$foundation")" ] || { echo "the check sees nothing wrong with libFoundation.so" >&2; exit 1; }

found=$(unexpected "$binary")
if [ -n "$found" ]; then
  printf '%s needs libraries it may not have:\n%s\n' "$binary" "$found" >&2
  exit 1
fi
echo "$(basename "$binary") needs $(ldd "$binary" | wc -l) libraries, each of them allowed"
