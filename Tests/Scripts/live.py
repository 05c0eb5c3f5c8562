"""Parts that the scripts share: checks, the built program as processes (a stand-in issuer, and services with its keys), the
resources of a process, and single requests."""

import contextlib
import hashlib
import http.client
import http.server
import json
import os
import pathlib
import re
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The Redis server of the tests: `REDIS_SERVER` may name another program, such as valkey-server.
REDIS_PROGRAM = os.environ.get("REDIS_SERVER", "redis-server")
APP_ID = "123456789012345"
SUBJECT = "2954873201847263"
# The most seconds for the start of a program, and for an answer: far more than needed, since the machine may be slow.
START_SECONDS = 180
ANSWER_SECONDS = 60
# The most resident memory of a service in KiB: the promised bound, and one for the larger files of an unoptimised program.
RESIDENT_KIB = 64 * 1024
UNOPTIMISED_KIB = 80 * 1024
# Options of a build from nothing that is used once. Whole modules take a third less processor time. Without a number of
# threads the compiler would not write the object files for the linker. SwiftPM looks for tests in the index, which needs
# no module of the system; a build without tests needs no index.
MADE_ONCE = ["-debug-info-format", "none", "-Xswiftc", "-whole-module-optimization", "-Xswiftc", "-num-threads",
             "-Xswiftc", "2", "-Xswiftc", "-index-ignore-system-modules"]
failures = []


def check(holds, text):
    """Prints a check and its outcome; the run fails at its end if a check failed."""
    print(("ok      " if holds else "FAILED  ") + text, flush=True)
    if not holds:
        failures.append(text)
    return holds


def skip(text):
    print("SKIPPED: " + text, flush=True)


def environment_with(folder, packages):
    """Makes a virtual environment with these packages of PyPI, as far as they can be had; returns its interpreter."""
    folder = pathlib.Path(folder).absolute()
    if not (folder / "bin/pip").exists():
        subprocess.run([sys.executable, "-m", "venv", folder])
    if not (folder / "bin/pip").exists():
        return sys.executable
    subprocess.run([folder / "bin/pip", "-q", "--disable-pip-version-check", "install", *packages])
    return str(folder / "bin/python")


def program_path(program):
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def installed(*programs):
    """True if every program is installed; names the missing ones."""
    missing = [program for program in programs if program_path(program) is None]
    if missing:
        skip(f"not installed: {', '.join(missing)}")
    return not missing


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(port, method, path, body=None, fields=None, timeout=ANSWER_SECONDS):
    """Sends one request on a connection of its own; returns status and body."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)) as client:
        client.request(method, path, body, {"Content-Type": "application/json"} | (fields or {}))
        answer = client.getresponse()
        return answer.status, answer.read()


def serve(content, media_type="application/json"):
    """Answers every GET on a free port with the bytes that `content()` gives; returns the server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = content()
            self.send_response(200)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def wait_until_ready(port, path="/readyz", status=200, seconds=START_SECONDS):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if request(port, "GET", path, timeout=2)[0] == status:
                return True
        time.sleep(0.01)
    return False


def read_answer(client, buffer):
    """The next answer on a connection: status, body, and true if it is the last. Further bytes stay in the buffer."""
    while True:
        end = buffer.find(b"\r\n\r\n")
        if end >= 0:
            head = bytes(buffer[:end]).lower()
            at = head.find(b"content-length: ") + 16
            length = int(head[at:].split(b"\r\n")[0])
            if len(buffer) >= end + 4 + length:
                body = bytes(buffer[end + 4:end + 4 + length])
                del buffer[:end + 4 + length]
                return int(head[9:12]), body, b"connection: close" in head
        data = client.recv(1 << 16)
        if not data:
            raise ConnectionError("closed within an answer")
        buffer += data


def raise_descriptor_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def build() -> str:
    """Builds the program (quickly if it is up to date) and returns its path."""
    given = os.environ.get("LIMITED_LOGIN")
    if given:
        return given
    command = ["swift", "build", "--product", "limited-login"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    folder = subprocess.run([*command[:2], "--show-bin-path"], cwd=ROOT, check=True, capture_output=True, text=True)
    return str(pathlib.Path(folder.stdout.strip()) / "limited-login")


class Figures:
    """The resources of a process; subclasses set `process`. Memory is in KiB."""

    def status(self, name):
        """A number in `/proc/PID/status`."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(rf"{name}:\s+(\d+)", file.read()).group(1))

    def memory(self):
        """The private memory."""
        return self.status("RssAnon")

    def resident(self):
        """The private memory and the mapped parts of files."""
        return self.status("VmRSS")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def settle(self, descriptors):
        """Waits until no more than so many descriptors are open."""
        for _ in range(300):
            if self.descriptors() <= descriptors:
                return True
            time.sleep(0.05)
        return False


class Process(Figures):
    """A running program; its output is read line by line. `data_limit` is its most data memory, in bytes."""

    def __init__(self, arguments, environment=None, directory=None, data_limit=resource.RLIM_INFINITY):
        variables = {name: value for name, value in os.environ.items() if not name.startswith("LIMITED_LOGIN_")}
        self.process = subprocess.Popen(
            arguments, env=variables | (environment or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", cwd=directory or tempfile.gettempdir(),
        )
        if "SANITIZER" in os.environ:
            # The limit would also count the memory that a sanitizer reserves.
            data_limit = resource.RLIM_INFINITY
        if data_limit != resource.RLIM_INFINITY:
            resource.prlimit(self.process.pid, resource.RLIMIT_DATA, (data_limit, data_limit))
        self.begin_reading()

    def begin_reading(self):
        self.lines = []
        self.condition = threading.Condition()
        self.ended = False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.condition:
                self.lines.append(line.rstrip("\n"))
                self.condition.notify_all()
        with self.condition:
            self.ended = True
            self.condition.notify_all()

    def output(self):
        with self.condition:
            return "\n".join(self.lines)

    def find(self, pattern, seconds=START_SECONDS):
        """Waits until a line matches, and returns its first group."""
        deadline = time.monotonic() + seconds
        with self.condition:
            while True:
                for line in self.lines:
                    match = re.search(pattern, line)
                    if match:
                        return match.group(1)
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    raise RuntimeError(f"no line like {pattern!r} in:\n" + "\n".join(self.lines[-40:]))
                self.condition.wait(left)

    def wait_for(self, mark, count=1, seconds=30):
        """True if the output has the text `count` times in time."""
        deadline = time.monotonic() + seconds
        with self.condition:
            while "\n".join(self.lines).count(mark) < count:
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    return False
                self.condition.wait(left)
        return True

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def stop(self):
        """Ends the program, and returns its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Issuer(Process):
    """The stand-in issuer with its Graph, on a free port."""

    app_secret = "a-secret-for-these-tests"

    def __init__(self, program):
        super().__init__([program, "issuer", "--listen", "127.0.0.1:0", "--app-secret", self.app_secret])
        self.address = self.find(r"stand-in issuer on http://(\S+)")
        self.jwks_url = f"http://{self.address}/.well-known/oauth/openid/jwks/"

    def token(self, **claims):
        """A token with these claims on top of the usual ones."""
        body = json.dumps({"nonce": "n-1"} | claims).encode()
        with urllib.request.urlopen(f"http://{self.address}/tokens", body, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)["id_token"]

    def access_token(self, query="", **members):
        """An access token of the subject with these members on top; `query` is `revoked` or `dead`."""
        body = json.dumps({"name": "Jane Doe"} | members).encode()
        with urllib.request.urlopen(f"http://{self.address}/access-tokens?{query}", body, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)["access_token"]

    def bound(self, **claims):
        """A token that is bound to the issuer's own device."""
        return self.token(cnf={"jkt": self.proof("x", "http://x/")["key_thumbprint"]}, **claims)

    def proof(self, token, url, method="GET", **members):
        """A DPoP proof of the issuer's own device for one request, as `proof`, and the thumbprint of its key."""
        body = json.dumps({"id_token": token, "method": method, "url": url} | members).encode()
        with urllib.request.urlopen(f"http://{self.address}/proofs", body, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)

    def expired(self):
        now = int(time.time())
        return self.token(iat=now - 7200, exp=now - 3600)

    def foreign(self):
        return self.token(aud="987654321098765")


class Server(Process):
    """`limited-login serve` on free ports, with these settings; a setting of None is left out."""

    def __init__(self, program, jwks_url, data_limit=resource.RLIM_INFINITY, **settings):
        self.bound = RESIDENT_KIB if "release" in pathlib.Path(program).resolve().parts else UNOPTIMISED_KIB
        settings = {"app_ids": APP_ID, "jwks_urls": jwks_url, "listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0",
                    "log_format": "json"} | settings
        super().__init__(
            [program, "serve"],
            {f"LIMITED_LOGIN_{name.upper()}": str(value) for name, value in settings.items() if value is not None},
            data_limit=data_limit,
        )
        self.find(r'("message":"listening")')
        self.address = self.find(r'"address":"([^"]+)"')
        self.admin_address = self.find(r'"admin_address":"([^"]+)"')

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1])

    @property
    def admin_port(self):
        return int(self.admin_address.rsplit(":", 1)[1])

    def wait_until_ready(self):
        # The administrative listener never speaks TLS and is no Unix socket.
        if not wait_until_ready(self.admin_port):
            raise RuntimeError("the service has no keys:\n" + self.output())

    def connect(self, timeout=ANSWER_SECONDS):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def metrics(self):
        return request(self.admin_port, "GET", "/metrics")[1].decode()

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.metrics(), re.M)
        return float(found.group(1)) if found else None

    def waits_for(self, name, least, seconds=20):
        """True if a metric reaches a value in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (self.metric(name) or 0) >= least:
                return True
            time.sleep(0.05)
        return False

    def requests(self):
        """The number of answered requests, by the service's own metrics."""
        counts = re.findall(r"^http_server_request_duration_seconds_count\S* (\S+)$", self.metrics(), re.M)
        return sum(int(float(count)) for count in counts)


class Service(Server):
    """A server with gateway routes, nonces and one caller, `backend`, with its key. With an issuer as `graph` it also has the
    routes for permissions."""

    key = "a-key-for-these-tests"

    def __init__(self, program, jwks_url, graph=None, **settings):
        self.folder = tempfile.TemporaryDirectory(prefix="limited-login-")
        known = {
            "gateway": "enabled", "nonce_secret_file": self.write("nonce-secret", secrets.token_hex(32)),
            "client_keys_file": self.write("clients", f"backend {hashlib.sha256(self.key.encode()).hexdigest()}"),
        }
        if graph:
            base = f"http://{graph.address}"
            known |= {"app_secrets_file": self.write("app-secrets", f"{APP_ID} {graph.app_secret}"), "graph_url": base,
                      "uninstall_url": f"{base}/platform/uninstall/", "callbacks_url": f"{base}/webhooks",
                      "callbacks_secret_file": self.write("webhook-secret", "whsec_" + "A" * 43 + "="),
                      "data_deletion_status_url": f"{base}/deletion"}
        super().__init__(program, jwks_url, **(known | settings))

    def write(self, name, line):
        file = pathlib.Path(self.folder.name) / name
        file.write_text(line + "\n")
        file.chmod(0o600)
        return str(file)

    def stop(self):
        code = super().stop()
        self.folder.cleanup()
        return code
