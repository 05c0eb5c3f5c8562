"""Parts that the scripts share: arguments, checks, programs, waiting, folders of files, servers of a test, single requests."""

import argparse
import base64
import contextlib
import functools
import http.client
import http.server
import os
import pathlib
import re
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The most seconds for the start of a program, and for an answer: far more than needed, since the machine may be slow.
START_SECONDS = 180
ANSWER_SECONDS = 60
# Options of a build from nothing that is used once. Whole modules take a third less processor time. Without a number of
# threads the compiler would not write the object files for the linker. SwiftPM looks for tests in the index, which needs
# no module of the system; a build without tests needs no index.
MADE_ONCE = ["-debug-info-format", "none", "-Xswiftc", "-whole-module-optimization", "-Xswiftc", "-num-threads",
             "-Xswiftc", "2", "-Xswiftc", "-index-ignore-system-modules"]
failures = []


def check(holds, text, facts=""):
    """Prints a check and its outcome, with the facts if it failed; the run then fails at its end."""
    text = text if holds or facts == "" else f"{text}: {facts}"
    print(("ok      " if holds else "FAILED  ") + text, flush=True)
    if not holds:
        failures.append(text)
    return holds


def skip(text):
    print("SKIPPED: " + text, flush=True)


def arguments(description, names=None, **more):
    """The script's arguments: --binary (else the program is built), --tools, the options in `more` by their defaults, and names."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=os.path.abspath)
    parser.add_argument("--tools", type=os.path.abspath)
    for name, value in more.items():
        kind = {"action": "store_true"} if value is False else {"default": value, "type": type(value) if value is not None else str}
        parser.add_argument(f"--{name}", **kind)
    if names:
        parser.add_argument("names", nargs="*", choices=[*names, []])
    chosen = parser.parse_args()
    chosen.binary = chosen.binary or build()
    if names:
        chosen.names = chosen.names or list(names)
    return chosen


def environment_with(folder, packages):
    """Makes a virtual environment with these packages of PyPI, as far as they can be had; returns its interpreter."""
    folder = pathlib.Path(folder).absolute()
    if not (folder / "bin/pip").exists():
        subprocess.run([sys.executable, "-m", "venv", folder])
    if not (folder / "bin/pip").exists():
        return sys.executable
    subprocess.run([folder / "bin/pip", "-q", "--disable-pip-version-check", "install", *packages])
    return str(folder / "bin/python")


def python_with(*modules):
    """An interpreter that has these modules, or None."""
    for program in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(program) and not run([program, "-c", f"import {', '.join(modules)}"]).returncode:
            return program
    return None


def run(command, **options):
    """Runs a program that ends by itself, with its output as text."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)


def output(command, **options):
    """The standard output of a program that must succeed."""
    return run(command, check=True, **options).stdout


def program_path(program):
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def installed(*programs):
    """True if every program is installed; names the missing ones."""
    missing = [program for program in programs if program_path(program) is None]
    if missing:
        skip(f"not installed: {', '.join(missing)}")
    return not missing


def until(holds, seconds=START_SECONDS, pause=0.02, process=None):
    """The first true value of `holds()`, or the last one at the end of the time or the process. A failed call counts as false."""
    deadline = time.monotonic() + seconds
    while True:
        found = None
        with contextlib.suppress(OSError, http.client.HTTPException):
            found = holds()
        if found or time.monotonic() > deadline or (process and process.poll() is not None):
            return found
        time.sleep(pause)


class Folder:
    """A folder for one run, by default a new one, removed at its end."""

    def __init__(self, path=None):
        self.path = pathlib.Path(path or tempfile.mkdtemp(prefix="limited-login-"))
        self.path.mkdir(exist_ok=True)
        self.path.chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name, text, mode=0o600):
        """Writes a file whole, so that no process reads half of it."""
        partial = self.path / f"{name}.new"
        partial.write_text(text)
        partial.chmod(mode)
        return str(partial.rename(self.path / name))


def free_ports(count):
    """Different ports that nothing uses."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def free_port():
    return free_ports(1)[0]


def listens(port, process=None):
    """True if a program accepts connections in time."""
    return until(lambda: socket.create_connection(("127.0.0.1", port), 1).close() or True, process=process)


def answer_to(port, method, path, body=None, fields=None, timeout=ANSWER_SECONDS, context=None):
    """Sends one request on a connection of its own, with a `context` over TLS; returns the answer with its `body`."""
    plain = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    secure = context and http.client.HTTPSConnection("localhost", port, timeout=timeout, context=context)
    with contextlib.closing(secure or plain) as client:
        client.request(method, path, body, {"Content-Type": "application/json"} | (fields or {}))
        answer = client.getresponse()
        answer.body = answer.read()
        return answer


def request(*asked, **options):
    """The same; returns status and body."""
    answer = answer_to(*asked, **options)
    return answer.status, answer.body


def form(**members):
    """A form as a body, and the field of its type."""
    return urllib.parse.urlencode(members), {"Content-Type": "application/x-www-form-urlencoded"}


def wait_until_ready(port, path="/readyz", status=200, seconds=START_SECONDS):
    return bool(until(lambda: request(port, "GET", path, timeout=2)[0] == status, seconds, 0.01))


class Handler(http.server.BaseHTTPRequestHandler):
    """A request, with its `body`; the server's function gives the answer's body, or its status, body and perhaps fields, or None to
    hang up."""

    def answer(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        given = self.server.answer(self)
        if given is None:
            self.close_connection = True
            return
        status, body, *fields = given if isinstance(given, tuple) else (200, given)
        self.send_response(status)
        for name, value in (fields[0] if fields else {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", self.server.media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class HTTPServer(http.server.ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, *_):
        pass


def serve(answer, media_type="application/json"):
    """Answers every request on a free port of loopback; the server has its `url`."""
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.answer, server.media_type, server.url = answer, media_type, f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def read_answer(client, buffer):
    """The next answer on a connection: status, body, and true if it is the last. Further bytes stay in the buffer."""
    while True:
        end = buffer.find(b"\r\n\r\n")
        if end >= 0:
            head = bytes(buffer[:end]).lower()
            length = int((re.search(rb"content-length: (\d+)", head) or (0, 0))[1])
            if len(buffer) >= end + 4 + length:
                body = bytes(buffer[end + 4:end + 4 + length])
                del buffer[:end + 4 + length]
                return int(head[9:12]), body, b"connection: close" in head
        data = client.recv(1 << 16)
        if not data:
            raise ConnectionError("closed within an answer")
        buffer += data


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Authority:
    """A certificate authority, whose files and certificates are in a folder."""

    NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]

    def __init__(self, folder):
        self.folder, self.file = folder, str(folder.path / "ca.pem")
        self.openssl("req", "-x509", *self.NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Authority", "-days", "30",
                     "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def openssl(self, *arguments):
        output(["openssl", *arguments], cwd=self.folder.path)

    def issue(self, name, names="DNS:localhost,IP:127.0.0.1"):
        """Makes a certificate for these names, good for servers and clients; returns its file and that of its key."""
        self.openssl("req", *self.NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=localhost")
        self.folder.write("names", f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n"
                          "basicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-out", f"{name}.pem",
                     "-days", "30", "-extfile", "names")
        return tuple(str(self.folder.path / f"{name}.{kind}") for kind in ("pem", "key"))

    def settings(self, name="server"):
        """The service's settings for a certificate of its own."""
        return dict(zip(("tls_certificate_file", "tls_key_file"), self.issue(name)))

    def context(self):
        """The settings of a client that trusts the authority."""
        return ssl.create_default_context(cafile=self.file)


def raise_descriptor_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@functools.cache
def build() -> str:
    """The path of the program: LIMITED_LOGIN names it; else it is built (quickly if it is up to date)."""
    given = os.environ.get("LIMITED_LOGIN")
    if given:
        return given
    command = ["swift", "build", "--product", "limited-login"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return str(pathlib.Path(output([*command[:2], "--show-bin-path"], cwd=ROOT).strip()) / "limited-login")
