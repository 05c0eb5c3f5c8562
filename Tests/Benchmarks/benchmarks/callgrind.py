"""Counts a program's instructions with valgrind's callgrind. The counts do not depend on the machine's load."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from .processes import WORK, output


def available():
    return bool(shutil.which("valgrind"))


def without_debug_information(binary):
    """A copy without debug information: valgrind cannot read that of some compilers."""
    copy = WORK / pathlib.Path(binary).name
    output("strip", "--strip-debug", "-o", copy, binary)
    return copy


def instructions(function, *command):
    """The instructions of all calls of one function, without and within libcrypto; the latter depend on the processor.

    The symbol of the function may be a pattern. The start of the program is not counted: it differs from run to run.
    """
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        file = pathlib.Path(folder) / "callgrind.out"
        # Deterministic hashing: with a random hash seed each run would execute another number of instructions.
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--toggle-collect={function}",
                               f"--callgrind-out-file={file}", *map(str, command)],
                              env=dict(os.environ, SWIFT_DETERMINISTIC_HASHING="1"),
                              capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise SystemExit(done.stderr[-2000:])
        counts = parsed(file)
        if counts[0] == 0:
            raise SystemExit(f"{function} was never called")
        return counts


def parsed(file):
    objects, inside, is_call = {}, False, False
    own = libcrypto = 0
    for line in open(file, errors="replace"):
        named = re.match(r"c?ob=\((\d+)\)(?: (.*))?", line)
        if named:
            if named[2]:
                objects[named[1]] = "libcrypto" in named[2]
            if line.startswith("ob="):
                inside = objects[named[1]]
        elif line.startswith("calls="):
            # The next line is the cost inside the call, which is also counted at the called function.
            is_call = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            if not is_call:
                cost = int(line.split()[1])
                libcrypto += cost * inside
                own += cost * (not inside)
            is_call = False
    return own, libcrypto
