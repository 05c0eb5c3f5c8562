"""The service, a stand-in issuer and what surrounds them, as real processes on loopback."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
APP = "123456789012345"
failures = []


def check(holds, text):
    """Says whether something holds; the run fails at the end where one did not."""
    print(("ok      " if holds else "FAILED  ") + text, flush=True)
    if not holds:
        failures.append(text)
    return holds


def skip(text):
    print("SKIPPED " + text, flush=True)


def installed(*programs):
    """Whether every program is there; names those that are not."""
    missing = [program for program in programs if program_path(program) is None]
    if missing:
        skip(f"not installed: {', '.join(missing)}")
    return not missing


def program_path(program):
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def binary():
    """The program under test: that of the environment, else the newest build."""
    if named := os.environ.get("LIMITED_LOGIN_BINARY"):
        return os.path.abspath(named)
    found = [ROOT / ".build" / kind / "limited-login" for kind in ("release", "debug")]
    found = [path for path in found if path.exists()]
    if not found:
        raise SystemExit("nothing is built: swift build")
    return str(max(found, key=lambda path: path.stat().st_mtime))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Folder:
    """A folder for one run, removed at its end."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="limited-login-operations-"))
        self.path.chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name, text):
        """Writes a file whole, so that nobody reads half of it."""
        target = self.path / name
        partial = self.path / (name + ".new")
        partial.write_text(text)
        partial.rename(target)
        return str(target)


class Program:
    """A process with its output in a file; it ends with the block."""

    def __init__(self, folder, name, command, environment=None):
        self.log = folder.path / f"{name}.log"
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("LIMITED_LOGIN_")}
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=inherited | (environment or {}), cwd=folder.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is not None:
            check(False, f"{self.log.stem} ended by itself with {self.process.returncode}: {self.text()[-2000:]}")
        else:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def remove(self):
        """Gives up what is left of a process that has ended."""

    def text(self):
        return self.log.read_text(errors="replace")

    def wait_for(self, mark, count=1, seconds=30):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.text().count(mark) >= count:
                return True
            if self.process.poll() is not None:
                return self.text().count(mark) >= count
            time.sleep(0.01)
        return False

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Issuer(Program):
    """The stand-in issuer."""

    def __init__(self, folder, address="127.0.0.1"):
        self.port = free_port()
        super().__init__(folder, "issuer", [binary(), "issuer", "--listen", f"{address}:{self.port}", "--app-id", APP])
        self.jwks = f"http://127.0.0.1:{self.port}/.well-known/oauth/openid/jwks/"
        if not wait_until_ready(self.port, "/.well-known/oauth/openid/jwks/"):
            raise SystemExit("the issuer does not start: " + self.text())

    def token(self, **claims):
        status, body = request(self.port, "POST", "/tokens", json.dumps({"nonce": "n-1"} | claims))
        if status != 200:
            raise SystemExit(f"no token: {status} {body!r}")
        return json.loads(body)["id_token"]


class Service(Program):
    """`limited-login serve` with its own ports."""

    def __init__(self, folder, issuer, name="service", port=None, admin_port=None, **settings):
        self.port = port or free_port()
        self.admin_port = admin_port or free_port()
        environment = {
            "APP_IDS": APP, "JWKS_URLS": issuer.jwks, "LISTEN": f"127.0.0.1:{self.port}",
            "ADMIN_LISTEN": f"127.0.0.1:{self.admin_port}", "LOG_FORMAT": "json",
        } | {key.upper(): str(value) for key, value in settings.items()}
        super().__init__(folder, name, [binary(), "serve"],
                         {f"LIMITED_LOGIN_{key}": value for key, value in environment.items() if value != ""})
        if not wait_until_ready(self.admin_port):
            raise SystemExit("the service does not get ready: " + self.text())

    def metrics(self):
        return request(self.admin_port, "GET", "/metrics")[1].decode()

    def metric(self, name):
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.metrics(), re.M)
        return float(found.group(1)) if found else None

    def waits_for(self, name, least, seconds=20):
        """Whether a metric reaches a value in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (self.metric(name) or 0) >= least:
                return True
            time.sleep(0.05)
        return False

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)


def request(port, method, path, body=None, fields=None, timeout=10):
    """One request on a connection of its own: status and body."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)) as client:
        client.request(method, path, body, {"Content-Type": "application/json"} | (fields or {}))
        answer = client.getresponse()
        return answer.status, answer.read()


def wait_until_ready(port, path="/readyz", status=200, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if request(port, "GET", path, timeout=2)[0] == status:
                return True
        time.sleep(0.01)
    return False


def verify_body(token, nonce="n-1"):
    return json.dumps({"id_token": token, "nonce": nonce})


class Certificates:
    """An authority and what it issued, made by openssl."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = self.make("authority", ["-x509", "-days", "30", "-subj", "/CN=Test Authority"])[0]

    def make(self, name, arguments):
        certificate, key = (str(self.folder.path / f"{name}.{end}") for end in ("pem", "key"))
        run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
             "-out", certificate, *arguments])
        os.chmod(key, 0o644)
        return certificate, key

    def issue(self, name):
        """A certificate for localhost, good for servers and clients: the files of it and of its key."""
        request_file, key = self.make(name, ["-subj", f"/CN={name}"])
        certificate = str(self.folder.path / f"{name}.crt")
        extensions = self.folder.write(f"{name}.ext", "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        run(["openssl", "x509", "-req", "-in", request_file, "-CA", self.authority,
             "-CAkey", self.authority.replace(".pem", ".key"), "-days", "20", "-out", certificate,
             "-extfile", extensions])
        return certificate, key


def run(command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


class Wrk:
    """A load of `POST /verify` by wrk for so many seconds."""

    SCRIPT = """
        local bodies = {%s}
        local keys = {%s}
        local number = 0
        wrk.method = "POST"
        wrk.headers["Content-Type"] = "application/json"
        request = function()
            number = number + 1
            if #keys > 0 then wrk.headers["X-Api-Key"] = keys[number %% #keys + 1] end
            return wrk.format(nil, "/verify", nil, bodies[number %% #bodies + 1])
        end
        done = function(summary, latency)
            io.write(string.format("RESULT %%d %%d %%d %%d %%d %%d %%d\\n", summary.requests, summary.errors.status,
                summary.errors.connect, summary.errors.read, summary.errors.write, summary.errors.timeout,
                latency:percentile(99)))
        end
    """

    def __init__(self, folder, url, bodies, seconds, connections=64, threads=1, name="wrk", keys=()):
        lists = [",".join(f"'{text}'" for text in texts) for texts in (bodies, keys)]
        script = folder.write(f"{name}.lua", self.SCRIPT % tuple(lists))
        self.process = subprocess.Popen(
            ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", script, url],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def is_running(self):
        return self.process.poll() is None

    def stop(self):
        """Ends the load early; it reports all the same."""
        self.process.send_signal(signal.SIGINT)

    def result(self):
        """Requests answered, of these not 2xx, the socket errors, and the p99 in microseconds."""
        output = self.process.communicate()[0]
        found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", output)
        if not found:
            raise SystemExit("wrk: " + output)
        numbers = [int(number) for number in found.groups()]
        return numbers[0], numbers[1], sum(numbers[2:6]), numbers[6]
