# Runs tests under a sanitizer, in a build of its own: . .ci/sanitizer.sh KIND [OPTION OF swift test...]. Only Swift
# Testing is run: there are no XCTest cases, and the allocations of XCTest's runner at exit would be reported as leaks.
# shellcheck shell=bash
export SANITIZER=$1
export ASAN_OPTIONS=detect_leaks=1:suppressions=$PWD/Tests/Scripts/address.suppressions
export LSAN_OPTIONS=print_suppressions=0:suppressions=$PWD/Tests/Scripts/leak.suppressions
# Each process waits this long at its exit for late races. The default of 1 s is too long for hundreds of processes.
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=100

# Checks that the sanitizer finds a planted fault: one that is off, or suppressed too far, reports nothing.
sanitizer_sees() {
  local folder status
  folder=$(mktemp -d)
  if [ "$1" = address ]; then
    echo 'import Glibc; func lose() { _ = malloc(4096) }; lose()' >"$folder/main.swift"
  else
    cat >"$folder/main.swift" <<'SWIFT'
import Glibc
nonisolated(unsafe) let count = UnsafeMutablePointer<Int>.allocate(capacity: 1)
func add() { for _ in 0..<1_000 { count.pointee += 1; usleep(10) } }
func race() {
    count.pointee = 0
    var thread = pthread_t()
    pthread_create(&thread, nil, { _ in add(); return nil }, nil)
    add()
    pthread_join(thread, nil)
}
race()
SWIFT
  fi
  swiftc -sanitize="$1" -o "$folder/fault" "$folder/main.swift" && ! "$folder/fault" >"$folder/report" 2>&1 &&
    grep -qE 'LeakSanitizer: detected memory leaks|SUMMARY: ThreadSanitizer' "$folder/report"
  status=$?
  rm -rf "$folder"
  return "$status"
}

sanitizer_sees "$1" || { echo "the $1 sanitizer does not see a planted fault"; exit 1; }
swift test --disable-xctest --sanitize "$1" --scratch-path ".build-$1" "${MADE_ONCE[@]}" -Xswiftc -gline-tables-only "${@:2}"
