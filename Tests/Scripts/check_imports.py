#!/usr/bin/env python3
"""Checks that every target under Sources imports only the modules it may import, and re-exports only the allowed ones.

The compiler's own check (`--explicit-target-dependency-import-check`) compares imports with the
manifest. This script compares them with a table of the layering, so a new arrow needs more than a
change of the manifest. It also sees the system modules and other packages, which the compiler's
check does not. It refuses the library's Mutex: the thread sanitizer reports its data as unguarded. In the targets that Darwin
shall compile it refuses names that only Linux has, except in lines that are compiled only for Linux, and lets Clang
compile their C for macOS.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# The C library is imported for a few system calls and constants. It is the platform, not an arrow between targets.
PLATFORM = {"Glibc", "Musl", "Android", "Darwin", "Synchronization"}
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
    "LLHTTP/Server": PLATFORM | {"CLLSystem", "LLJOSE", "LLBytes", "Dispatch"},
    "LLHTTP/Client": {"CLLSystem", "LLJOSE", "LLBytes"},
    "LimitedLoginKeys": PLATFORM | {"LLJOSE", "LLBytes", "Dispatch"},
    "LimitedLoginHTTPS": {"LimitedLoginKeys", "LLHTTP"},
    "LimitedLoginTesting": {"LimitedLogin", "LLJOSE", "LLBytes"},
    "LLStores": PLATFORM | {"LLJOSE", "LLHTTP", "LLBytes", "Dispatch"},
    "LLStandIn": PLATFORM | {"LimitedLoginTesting", "LLJOSE", "LLHTTP", "LLBytes", "Dispatch", "FoundationEssentials"},
    "LLService": PLATFORM | LOGGING | OWN | {"CLLDocuments", "Dispatch", "FoundationEssentials"},
    "LLService/Graph": PLATFORM | {"LimitedLogin", "LLJOSE", "LLHTTP", "LLBytes"},
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

# CLLSystem brings the C library, which splits a date.
EXCEPTIONS = {("LLHTTP/Grammar", "HTTPResponse.swift"): {"CLLSystem"}}

# The targets of the portable products and those that they need, and a header that they do not reach.
PORTABLE, NOT_REACHED = {"LLBytes", "LLJOSE", "LimitedLogin", "LimitedLoginKeys", "LimitedLoginTesting", "CLLOpenSSL"}, "tls.h"
LINUX = re.compile(
    r"\b(\w*epoll\w*|eventfd|accept4|SOCK_CLOEXEC|SOCK_NONBLOCK|pipe2|timerfd\w*|signalfd|st_mtim\w*|MSG_NOSIGNAL)\b|<?linux/\w+\.h",
    re.IGNORECASE,
)
# A part that the compiler chooses by the platform: both of its sides were written for their platform.
CHOSEN = re.compile(r"^\s*#\s*(?:if|ifdef)\b[^\n]*(?:canImport|__APPLE__|__linux__)[^\n]*\n.*?^\s*#\s*endif[^\n]*$", re.M | re.S)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)

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
        for match in MUTEX.finditer(text) if (target, file.name) != ("LLBytes", "System.swift") else ():
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{file}:{line}: the thread sanitizer does not know Mutex; use Locked")
        if folders[-2] in PORTABLE | {"LLHTTP"} and "import Glibc" in CHOSEN.sub("", text):
            found.append(f"{file} imports Glibc on every platform")
    for file in sorted(path for path in sources.rglob("*.*") if path.suffix in (".swift", ".c", ".h", ".modulemap")):
        if file.relative_to(sources).parts[0] in PORTABLE and file.name != NOT_REACHED:
            words = LINUX.findall(COMMENT.sub("", CHOSEN.sub("", file.read_text(encoding="utf-8"))))
            found += [f"{file} names {word or 'a header'}, which is on Linux alone" for word in words]
    return found


# As much of a C library as OpenSSL's headers name, for a target whose own is not at hand.
STUBS = {
    "stdint.h": "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;"
    "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;"
    "typedef unsigned long long uint64_t; typedef long intptr_t; typedef unsigned long uintptr_t;"
    "typedef long intmax_t; typedef unsigned long uintmax_t;\n",
    "inttypes.h": "#include <stdint.h>\n", "stdio.h": "typedef struct FILE FILE;\n",
    "time.h": "typedef long time_t; struct tm;\n", "stdlib.h": "", "string.h": "", "errno.h": "", "sys/types.h": "",
    "pthread.h": "typedef int pthread_once_t; typedef unsigned long pthread_key_t; typedef struct p *pthread_t;\n",
}


def mac(sources: pathlib.Path) -> list[str]:
    """The faults that Clang finds in the C of the portable products for macOS, with no header of Linux in reach."""
    openssl = [path for path in [pathlib.Path("/usr/include/openssl"), *pathlib.Path("/usr/include").glob("*-linux-*/openssl")]
               if path.is_dir()]
    if not openssl or shutil.which("clang") is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in STUBS.items():
            pathlib.Path(folder, name).parent.mkdir(exist_ok=True)
            pathlib.Path(folder, name).write_text(text)
        pathlib.Path(folder, "openssl").mkdir()
        for header in (header for path in openssl for header in path.glob("*.h")):
            pathlib.Path(folder, "openssl", header.name).symlink_to(header)
        builtin = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True, check=True).stdout.strip()
        done = subprocess.run(
            ["clang", "-fsyntax-only", "-Werror", "-target", "arm64-apple-macos26", "-nostdinc", "-isystem", folder,
             "-isystem", f"{builtin}/include", "-x", "c", sources / "CLLOpenSSL/shim.h"],
            capture_output=True, text=True, check=False)
    return done.stderr.splitlines() if done.returncode else []


def self_test() -> None:
    """Checks that nine planted faults give nine findings."""
    with tempfile.TemporaryDirectory() as folder:
        sources = pathlib.Path(folder)
        (folder := sources / "LLJOSE").mkdir()
        (folder / "Bad.swift").write_text("internal import Foundation\n@_exported public import JOSE\nlet lock = Mutex(0)\n")
        (sources / "LLBytes").mkdir()
        (sources / "LLBytes/Bad.swift").write_text("internal import Glibc\n")
        (folder / "bad.c").write_text("int a = SOCK_CLOEXEC;\n#include <linux/filter.h>\ninformation.st_mtim\nepoll_wait()\n")
        (folder / "good.c").write_text("// epoll\n#if canImport(Darwin)\na.st_mtimespec\n#else\na.st_mtim\n#endif\n")
        found = findings(sources)
        if len(found) != 9:
            sys.exit(f"self-test: expected 9 findings, got {found}")


def main() -> None:
    self_test()
    sources = pathlib.Path(__file__).resolve().parents[2] / "Sources"
    found = findings(sources) + mac(sources)
    if found:
        sys.exit("\n".join(found))
    print(f"imports of {len(ALLOWED)} targets and folders are within the layering")


if __name__ == "__main__":
    main()
