#!/usr/bin/env python3
"""Holds every target under Sources to the imports it may have, and to nothing re-exported.

The compiler's own check (`--explicit-target-dependency-import-check`) compares imports with the
manifest; this one compares them with the layering itself, so an arrow cannot be added by editing
the manifest alone, and it sees the system modules and other packages, which the compiler's does
not. It also refuses the library's Mutex: to the thread sanitizer what it guards looks unguarded.

usage: check_imports.py [--self-test]
"""

import pathlib
import re
import sys
import tempfile

# C library names stand for the few system calls and constants; they are the platform, not an arrow.
PLATFORM = {"Glibc", "Musl", "Darwin", "Synchronization"}
LOGGING = {"Logging"}
ROOMS = {"LLSockets", "LLHTTPServer", "LLHTTPClient"}
OWN = {"LLThreads", "LLBytes", "LLCrypto", "LLJOSE", "LimitedLogin", "LLHTTP1", "LimitedLoginKeys", "LLGraph", "LLStores"} | ROOMS

ALLOWED = {
    "LLBytes": set(),
    "LLThreads": PLATFORM | {"CLLThreads", "LLBytes"},
    "LLCrypto": {"CLLOpenSSL", "LLBytes"},
    "LLJOSE": {"LLBytes"},
    "LimitedLogin": {"LLJOSE", "LLCrypto", "LLThreads", "LLBytes"},
    "LLHTTP1": {"LLBytes"},
    "LLSockets": PLATFORM | {"CLLSystem", "CLLOpenSSL", "LLCrypto", "LLThreads", "LLBytes", "Dispatch"},
    "LLHTTPServer": PLATFORM | {"LLSockets", "LLHTTP1", "LLCrypto", "LLBytes", "Dispatch"},
    "LLHTTPClient": PLATFORM | {"LLSockets", "LLHTTP1", "LLCrypto", "LLBytes"},
    "LimitedLoginKeys": PLATFORM | {"LLJOSE", "LLCrypto", "LLThreads", "LLBytes", "Dispatch"},
    "LimitedLoginHTTPS": {"LimitedLoginKeys", "LLSockets", "LLHTTPClient"},
    "LLMint": {"LLJOSE", "LLCrypto", "LLBytes"},
    "LimitedLoginTesting": {"LimitedLogin", "LLMint", "LLJOSE", "LLCrypto", "LLBytes"},
    "LLGraph": PLATFORM | {"LLJOSE", "LLCrypto", "LLSockets", "LLHTTPClient", "LLBytes"},
    "LLStores": PLATFORM | {"LLCrypto", "LLSockets", "LLBytes"},
    "LLStandIn": PLATFORM | OWN - {"LimitedLogin", "LimitedLoginKeys", "LLGraph", "LLStores"}
    | {"LLMint", "Dispatch", "FoundationEssentials"},
    "LLService": PLATFORM | LOGGING | OWN | {"CLLOpenAPI", "Dispatch", "FoundationEssentials"},
    "limited-login": PLATFORM | LOGGING | OWN
    | {"LLService", "LLStandIn", "LimitedLoginHTTPS", "ArgumentParser", "Dispatch"}
    | {"FoundationEssentials", "CLLPage"},
}

IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?import\s+"
    r"(?:(?:typealias|struct|class|enum|protocol|let|var|func|actor)\s+)?(\w+)",
    re.MULTILINE,
)

# A library's user needs one import for each product, so the products bring the types of keys along. Sockets come with the
# locks, threads and clocks that each of their users needs, and the stand-in with what it mints.
RE_EXPORTED = {("LimitedLogin", "LLJOSE"), ("LimitedLoginKeys", "LLJOSE"), ("LLSockets", "LLThreads"),
               ("LLStandIn", "LLMint")}

# One file may ask the system's clock, and hands the time to the verdict, which knows none.
# The table of bad tokens names the codes of the verdict, and knows nothing else of it.
EXCEPTIONS = {
    ("LLMint", "RefusalCatalogue.swift"): {"LimitedLogin"},
    ("LimitedLogin", "NumericDate+Clock.swift"): {"FoundationEssentials"}
}

MUTEX = re.compile(r"(?<![\w`])Mutex[<(]")


def findings(sources: pathlib.Path) -> list[str]:
    found = []
    targets = {path.name for path in sources.iterdir() if path.is_dir()}
    for target in sorted(targets - ALLOWED.keys()):
        if any((sources / target).rglob("*.swift")):
            found.append(f"{target}: a target without a row in the table of allowed imports")
    for target, allowed in ALLOWED.items():
        for file in sorted((sources / target).rglob("*.swift")):
            text = file.read_text(encoding="utf-8")
            for match in IMPORT.finditer(text):
                line = text.count("\n", 0, match.start(1)) + 1
                if match.group(1) not in allowed | EXCEPTIONS.get((target, file.name), set()):
                    found.append(f"{file}:{line}: {target} may not import {match.group(1)}")
                if "@_exported" in match.group(0) and (target, match.group(1)) not in RE_EXPORTED:
                    found.append(f"{file}:{line}: {target} may not re-export {match.group(1)}")
            for match in MUTEX.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{file}:{line}: the thread sanitizer does not know Mutex; use Locked")
    return found


def self_test() -> None:
    """The check must be able to fail: four planted faults, four findings."""
    with tempfile.TemporaryDirectory() as folder:
        sources = pathlib.Path(folder)
        (sources / "LLJOSE").mkdir()
        (sources / "LLJOSE" / "Bad.swift").write_text("internal import Foundation\n@_exported public import JOSE\nlet lock = Mutex(0)\n")
        found = findings(sources)
        if len(found) != 4:
            sys.exit(f"self-test: expected 4 findings, got {found}")


def main() -> None:
    self_test()
    if sys.argv[1:] == ["--self-test"]:
        return
    sources = pathlib.Path(__file__).resolve().parents[2] / "Sources"
    found = findings(sources)
    if found:
        sys.exit("\n".join(found))
    print(f"imports of {len(ALLOWED)} targets are within the layering")


if __name__ == "__main__":
    main()
