"""Runs the program with only the system calls that the systemd unit allows: it starts, verifies, reloads and stops."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
import live
from harness import ROOT, Folder, check, request, skip
from live import APP_ID

HEADERS = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
UNIT = ROOT / "config/systemd/limited-login.service"


def members(name):
    """The system calls of a group, and of the groups in it."""
    listed = harness.output(["systemd-analyze", "syscall-filter", name])
    for word in re.findall(r"^ +([@\w-]+)$", listed, re.MULTILINE):
        yield from members(word) if word.startswith("@") else [word]


def allowed():
    """The names of the system calls that the unit's lines allow, read in their order."""
    names = set()
    for line in re.findall(r"^SystemCallFilter=(.+)$", UNIT.read_text(), re.MULTILINE):
        for word in line.removeprefix("~").split():
            group = set(members(word)) if word.startswith("@") else {word}
            names = names - group if line.startswith("~") else names | group
    return names | set(members("@default"))


def restrict(numbers):
    """Makes the kernel kill this process, also after exec, at any other system call (seccomp(2))."""
    program = [(0x20, 0, 0, 0)]
    for number in numbers:
        program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x7FFF0000)]
    program.append((0x06, 0, 0, 0x80000000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))

    class Filter(ctypes.Structure):
        _fields_ = [("count", ctypes.c_ushort), ("steps", ctypes.c_void_p)]

    library = ctypes.CDLL(None, use_errno=True)
    described = Filter(len(program), ctypes.addressof(code))
    # PR_SET_NO_NEW_PRIVS; PR_SET_SECCOMP, SECCOMP_MODE_FILTER.
    if library.prctl(38, 1, 0, 0, 0) or library.prctl(22, 2, ctypes.byref(described), 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")


def main():
    from .world import Issuer, verify_body
    if not shutil.which("systemd-analyze") or not pathlib.Path(HEADERS).exists():
        return skip("systemd-analyze or the numbers of the system calls are not there")
    known = dict(re.findall(r"#define __NR_(\w+) (\d+)", pathlib.Path(HEADERS).read_text()))
    numbers = ",".join(known[name] for name in sorted(allowed()) if name in known)
    with Folder() as folder, Issuer() as issuer:
        wrapper = folder.write("limited-login", f'#!/bin/sh\nexec {sys.executable} {__file__} {numbers} {harness.build()} "$@"\n', 0o755)
        config = folder.write("config.json", json.dumps({"app_ids": [APP_ID]}))
        with live.Server(wrapper, issuer.jwks_url, app_ids=None, config=config, watch_files="enabled") as service:
            service.wait_until_ready()
            status, _ = request(service.port, "POST", "/verify", verify_body(issuer.token()))
            check(status == 200, "under the unit's filter of system calls a good token is accepted")
            service.hang_up()
            check(service.wait_for('"configuration reloaded"'), "the configuration is read again")
            check(service.stop() == 0, "and the service stops in order")


if __name__ == "__main__":
    restrict([int(number) for number in sys.argv[1].split(",")])
    os.execv(sys.argv[2], sys.argv[2:])
