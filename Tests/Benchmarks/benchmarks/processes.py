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
ROOT = HERE.parent.parent
WORK = HERE / ".build" / "work"
BUILT = ROOT / ".build" / "release"
PATH_NUMBERS = itertools.count()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
    try:
        peer.connect(address)
    except OSError:
        peer.close()
        raise
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


class Program:
    """A server under test at a port or the path of a Unix socket, on the processors of `cpus` if given."""

    def __init__(self, name, arguments, address, cpus=None, environment=None, probe=None):
        self.name, self.address = name, address
        self.log = WORK / f"{name}.log"
        command = (["taskset", "-c", cpus] if cpus else []) + [str(part) for part in arguments]
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            command, stdout=open(self.log, "w"), stderr=subprocess.STDOUT, env=environment)
        self.pid = self.process.pid
        self.probe = probe

    def wait_until_ready(self, seconds=20):
        """Asks until the answer's status is 200 (without a probe, until a connection is accepted)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                if self.probe is None:
                    connect(self.address, timeout=1).close()
                    return True
                if b" 200 " in request(self.address, self.probe)[:20]:
                    return True
            except OSError:
                pass
            time.sleep(0.02)
        self.stop()
        return False

    def memory(self):
        """RssAnon and VmRSS in KiB."""
        fields = {}
        for line in open(f"/proc/{self.pid}/status"):
            name, _, value = line.partition(":")
            if name in ("RssAnon", "VmRSS"):
                fields[name] = int(value.split()[0])
        return fields["RssAnon"], fields["VmRSS"]

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
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if isinstance(self.address, str):
            pathlib.Path(self.address).unlink(missing_ok=True)


def succeed(*command, **options):
    """The output of a program; ends this one if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit((done.stdout + done.stderr)[-2000:])
    return done.stdout


def build():
    """Builds the instruments and the service, optimised."""
    succeed("swift", "build", "-c", "release", "--package-path", ROOT, env={**os.environ, "LIMITED_LOGIN_BUILD_BENCHMARKS": "1"})


def shipped():
    """The path of the shipped program, which is built if needed."""
    return succeed(ROOT / "config/package/build").split()[-1]


def output(*arguments, seconds=600):
    """The output of a program, or an empty text if the program is missing."""
    try:
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
