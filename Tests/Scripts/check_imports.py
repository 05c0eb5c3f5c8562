#!/usr/bin/env python3
"""Checks that every target under Sources imports only the modules it may import, and re-exports only the allowed ones.

The compiler's own check (`--explicit-target-dependency-import-check`) compares imports with the
manifest. This script compares them with a table of the layering, so a new arrow needs more than a
change of the manifest. It also sees the system modules and other packages, which the compiler's
check does not. It refuses the library's Mutex: the thread sanitizer reports its data as unguarded.

usage: check_imports.py [--self-test]
"""

import pathlib
import re
import sys
import tempfile

# The C library is imported for a few system calls and constants. It is the platform, not an arrow between targets.
PLATFORM = {"Glibc", "Musl", "Darwin", "Synchronization"}
LOGGING = {"Logging"}
OWN = {"LLBytes", "LLJOSE", "LimitedLogin", "LLHTTP", "LimitedLoginKeys", "LLStores"}

# A folder's row counts for its files, and the row of the longest path wins.
ALLOWED = {
    "LLBytes": PLATFORM,
    "LLJOSE": {"LLBytes"},
    "LLJOSE/Crypto": {"CLLOpenSSL", "LLBytes"},
    "LimitedLogin": {"LLJOSE", "LLBytes"},
    "LLHTTP/Grammar": {"LLBytes"},
    "LLHTTP/Sockets": PLATFORM | {"CLLSystem", "CLLOpenSSL", "LLJOSE", "LLBytes", "Dispatch"},
    "LLHTTP/Server": PLATFORM | {"LLJOSE", "LLBytes", "Dispatch"},
    "LLHTTP/Client": PLATFORM | {"LLJOSE", "LLBytes"},
    "LimitedLoginKeys": PLATFORM | {"LLJOSE", "LLBytes", "Dispatch"},
    "LimitedLoginHTTPS": {"LimitedLoginKeys", "LLHTTP"},
    "LimitedLoginTesting": {"LimitedLogin", "LLJOSE", "LLBytes"},
    "LLStores": PLATFORM | {"LLJOSE", "LLHTTP", "LLBytes", "Dispatch"},
    "LLStandIn": PLATFORM | {"LimitedLoginTesting", "LLJOSE", "LLHTTP", "LLBytes", "Dispatch", "FoundationEssentials"},
    "LLService": PLATFORM | LOGGING | OWN | {"CLLDocuments", "Dispatch", "FoundationEssentials"},
    "LLService/Graph": PLATFORM | {"LLJOSE", "LLHTTP", "LLBytes"},
    "limited-login": PLATFORM | LOGGING | OWN
    | {"LLService", "LLStandIn", "LimitedLoginHTTPS", "ArgumentParser", "Dispatch", "FoundationEssentials", "CLLDocuments"},
}

IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?import\s+"
    r"(?:(?:typealias|struct|class|enum|protocol|let|var|func|actor)\s+)?(\w+)",
    re.MULTILINE,
)

# A user of the libraries needs one import for each product, so the products re-export the types of keys. LLHTTP re-exports
# the locks and clocks that all its users need, and LLStandIn re-exports the minting.
RE_EXPORTED = {("LimitedLogin", "LLJOSE"), ("LimitedLoginKeys", "LLJOSE"), ("LLHTTP/Sockets", "LLBytes"),
               ("LLStandIn", "LimitedLoginTesting")}

# One file reads the system's clock and passes the time to the verdict, which reads no clock.
EXCEPTIONS = {
    # The C library reads and writes addresses without asking the system.
    ("LLBytes", "IPAddress.swift"): {"Glibc"},
    # The C library splits a date.
    ("LLHTTP/Grammar", "HTTPResponse.swift"): {"Glibc"},
    ("LimitedLogin", "NumericDate+Clock.swift"): {"FoundationEssentials"}
}

MUTEX = re.compile(r"(?<![\w`])Mutex[<(]")


def findings(sources: pathlib.Path) -> list[str]:
    found = []
    for file in sorted(sources.rglob("*.swift")):
        folders = [str(folder) for folder in file.relative_to(sources).parents]
        target = next((folder for folder in folders if folder in ALLOWED), None)
        if target is None:
            found.append(f"{file}: no row in the table of allowed imports")
            continue
        allowed = ALLOWED[target]
        text = file.read_text(encoding="utf-8")
        for match in IMPORT.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            if match.group(1) not in allowed | EXCEPTIONS.get((target, file.name), set()):
                found.append(f"{file}:{line}: {target} may not import {match.group(1)}")
            if "@_exported" in match.group(0) and (target, match.group(1)) not in RE_EXPORTED:
                found.append(f"{file}:{line}: {target} may not re-export {match.group(1)}")
        for match in MUTEX.finditer(text) if file.name != "Published.swift" else ():
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{file}:{line}: the thread sanitizer does not know Mutex; use Locked")
    return found


def self_test() -> None:
    """Checks that four planted faults give four findings."""
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
    print(f"imports of {len(ALLOWED)} targets and folders are within the layering")


if __name__ == "__main__":
    main()
