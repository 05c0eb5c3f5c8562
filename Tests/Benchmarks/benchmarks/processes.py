"""Starts and ends the measured programs, and reads the system's figures about them."""

import itertools
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE.parent / "Scripts"))
import harness  # noqa: E402
import live  # noqa: E402

WORK = HERE / ".build" / "work"
BUILT = harness.ROOT / ".build" / "release"
PATH_NUMBERS = itertools.count()


def free_path():
    """A path for a Unix socket; short, because such a path has 107 bytes at most."""
    path = pathlib.Path(tempfile.gettempdir()) / f"limited-login-bench-{os.getpid()}-{next(PATH_NUMBERS)}.sock"
    path.unlink(missing_ok=True)
    return str(path)


def connect(address, timeout=2):
    """A connection to a port of 127.0.0.1, or to the path of a Unix socket."""
    if isinstance(address, int):
        return socket.create_connection(("127.0.0.1", address), timeout=timeout)
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(timeout)
    peer.connect(address)
    return peer


def request(address, text, timeout=2):
    """Sends one request on a connection of its own, and returns the whole answer as bytes."""
    with connect(address, timeout) as peer:
        peer.sendall(text)
        answer = b""
        while True:
            part = peer.recv(65536)
            if not part:
                return answer
            answer += part


class Program(live.Process):
    """A server under test at a port or the path of a Unix socket, on the processors of `cpus` if given."""

    def __init__(self, name, arguments, address, cpus=None, environment=None, probe=None):
        self.name, self.address, self.probe, self.started = name, address, probe, time.monotonic()
        super().__init__([*(["taskset", "-c", cpus] if cpus else []), *map(str, arguments)], environment)
        self.pid = self.process.pid

    def is_ready(self):
        """Asks until the answer's status is 200 (without a probe, until a connection is accepted)."""
        def answers():
            if self.probe is None:
                return connect(self.address, timeout=1).close() or True
            return b" 200 " in request(self.address, self.probe)[:20]

        if harness.until(answers, 20, process=self.process):
            return True
        self.stop()
        return False

    def ready(self):
        """The program itself, which must get ready."""
        if not self.is_ready():
            raise SystemExit(f"{self.name} does not start: {self.output()}")
        return self

    def switches(self):
        """Context switches of each thread. Every wake-up of an idle program is one."""
        counts = {}
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            lines = (task / "status").read_text().splitlines()
            counts[task.name] = sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
        return counts

    def wakeups_per_second(self, seconds):
        """The wake-ups a second of the threads that existed the whole time."""
        before = self.switches()
        time.sleep(seconds)
        after = self.switches()
        return sum(after[task] - before[task] for task in after.keys() & before.keys()) / seconds

    def stop(self):
        super().stop()
        if isinstance(self.address, str):
            pathlib.Path(self.address).unlink(missing_ok=True)


def build():
    """Builds the instruments and the service, optimised."""
    harness.output(["swift", "build", "-c", "release", "--package-path", harness.ROOT],
                env=os.environ | {"LIMITED_LOGIN_BUILD_BENCHMARKS": "1"})


def shipped():
    """The path of the shipped program, which is built if needed."""
    return harness.output([harness.ROOT / "config/package/build"]).split()[-1]


def output(*arguments, seconds=600):
    """The output of a program, or an empty text if the program is missing."""
    try:
        done = harness.run(arguments, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
