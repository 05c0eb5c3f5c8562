#!/usr/bin/env python3
"""Checks that the libraries use only names that Linux and Darwin have, and that no product reaches a forbidden target.

  1. The targets of LimitedLogin, LimitedLoginKeys (with a source of the user's own) and LimitedLoginTesting, and their
     dependencies, use no name that only Linux has, except in lines that are compiled only for Linux.
  2. Only the product LimitedLoginTesting reaches the target of that name, and no library reaches a target of the program.
  3. A compiler for arm64 compiles the C files, if one is installed.

usage: portability_test.py [--self-test]
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORTABLE = ["LimitedLogin", "LimitedLoginKeys", "LimitedLoginTesting"]
LINUX = re.compile(
    r"\b(\w*epoll\w*|eventfd|accept4|SOCK_CLOEXEC|SOCK_NONBLOCK|pipe2|timerfd\w*|signalfd|st_mtim\w*|MSG_NOSIGNAL)\b|<?linux/\w+\.h",
    re.IGNORECASE,
)
# A part that the compiler chooses by the platform: both of its sides were written for their platform.
CHOSEN = re.compile(r"^\s*#\s*(?:if|ifdef)\b[^\n]*(?:canImport|__APPLE__|__linux__)[^\n]*\n.*?^\s*#\s*endif[^\n]*$", re.M | re.S)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
COMPILER = "aarch64-linux-gnu-gcc"


def closure(targets, name):
    """The targets that a target needs, with itself."""
    found, open_names = set(), [name]
    while open_names:
        target = open_names.pop()
        if target in targets and target not in found:
            found.add(target)
            open_names += targets[target]
    return found


# A header of the TLS module, which the portable targets do not import.
NOT_REACHED = "Sources/CLLOpenSSL/tls.h"


def linux_words(text):
    return [match.group(0) for match in LINUX.finditer(COMMENT.sub("", CHOSEN.sub("", text)))]


def manifest():
    command = ["swift", "package", "describe", "--type", "json"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def can_compile():
    """True if the compiler and its C library are installed."""
    command = [COMPILER, "-fsyntax-only", "-xc", "-"]
    return shutil.which(COMPILER) and subprocess.run(command, input=b"#include <pthread.h>\n", capture_output=True).returncode == 0


def compile_c(folder):
    faults = []
    for source in sorted(ROOT.glob("Sources/CLLSystem/*.c")):
        command = [COMPILER, "-std=gnu17", "-Wall", "-Werror", "-I", str(source.parent / "include"), "-c", str(source),
                   "-o", f"{folder}/{source.stem}.o"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            faults.append(f"{COMPILER}: {source.name}: {run.stderr[-1000:]}")
    return faults


def self_test():
    bad = "int a = SOCK_CLOEXEC;\n#include <linux/filter.h>\ninformation.st_mtim\nepoll_wait()\n"
    good = "// epoll\n#if canImport(Darwin)\na.st_mtimespec\n#else\na.st_mtim\n#endif\n"
    if len(linux_words(bad)) != 4 or linux_words(good):
        sys.exit(f"self-test: {linux_words(bad)}, {linux_words(good)}")


def main():
    self_test()
    if sys.argv[1:] == ["--self-test"]:
        return
    package = manifest()
    targets = {target["name"]: target.get("target_dependencies", []) for target in package["targets"]}
    paths = {target["name"]: ROOT / target["path"] for target in package["targets"]}
    products = {product["name"]: product["targets"] for product in package["products"]}
    faults, portable = [], set()
    for name in PORTABLE:
        portable |= closure(targets, name)
    for target in sorted(portable):
        for file in sorted(path for path in paths[target].rglob("*") if path.suffix in (".swift", ".c", ".h", ".modulemap")):
            if str(file.relative_to(ROOT)) == NOT_REACHED:
                continue
            words = linux_words(file.read_text())
            faults += [f"{file.relative_to(ROOT)} names {word}, which is on Linux alone" for word in words]
    for product, roots in products.items():
        reached = set().union(*(closure(targets, root) for root in roots))
        held = reached & {"LimitedLoginTesting", "LLStandIn", "LLService"}
        if product in ("LimitedLogin", "LimitedLoginKeys") and held:
            faults.append(f"the product {product} holds {held}")
    if can_compile():
        with tempfile.TemporaryDirectory() as folder:
            faults += compile_c(folder)
    else:
        print(f"SKIPPED: there is no {COMPILER} with a C library (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross)")
    if faults:
        sys.exit("\n".join(faults))
    print(f"portable: {len(portable)} targets name nothing of Linux alone: {', '.join(sorted(portable))}")


if __name__ == "__main__":
    main()
