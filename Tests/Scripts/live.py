"""The built program as these scripts use it: a stand-in issuer, services that take their keys from it, and tokens."""

import hashlib
import json
import os
import pathlib
import re
import secrets
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
APP_ID = "123456789012345"
SUBJECT = "2954873201847263"
START_SECONDS = 60


def build() -> str:
    """Builds the program (quickly, where it is up to date) and says where it is."""
    given = os.environ.get("LIMITED_LOGIN")
    if given:
        return given
    command = ["swift", "build", "--product", "limited-login"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    folder = subprocess.run([*command[:2], "--show-bin-path"], cwd=ROOT, check=True, capture_output=True, text=True)
    return str(pathlib.Path(folder.stdout.strip()) / "limited-login")


class Process:
    """A program under way, its output read line by line."""

    def __init__(self, arguments, environment=None, directory=None):
        variables = {name: value for name, value in os.environ.items() if not name.startswith("LIMITED_LOGIN_")}
        self.process = subprocess.Popen(
            arguments, env=variables | (environment or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", cwd=directory or tempfile.gettempdir(),
        )
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
        """Waits until a line matches and gives its first group."""
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

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Issuer(Process):
    """The stand-in issuer, Graph with it, on a free port."""

    app_secret = "a-secret-for-these-tests"

    def __init__(self, program):
        super().__init__([program, "issuer", "--listen", "127.0.0.1:0", "--app-secret", self.app_secret])
        self.address = self.find(r"stand-in issuer on http://(\S+)")
        self.jwks_url = f"http://{self.address}/.well-known/oauth/openid/jwks/"

    def token(self, **claims):
        """A token with these claims on top of the usual ones."""
        body = json.dumps({"nonce": "n-1"} | claims).encode()
        with urllib.request.urlopen(f"http://{self.address}/tokens", body, timeout=10) as answer:
            return json.load(answer)["id_token"]

    def expired(self):
        now = int(time.time())
        return self.token(iat=now - 7200, exp=now - 3600)

    def foreign(self):
        return self.token(aud="987654321098765")


class Service(Process):
    """`limited-login serve` on free ports, gateway routes, nonces and one caller, `backend`, with its key; with `graph`, an
    issuer, the routes for permissions."""

    key = "a-key-for-these-tests"

    def __init__(self, program, jwks_url, graph=None, **settings):
        self.folder = tempfile.TemporaryDirectory(prefix="limited-login-")
        clients = pathlib.Path(self.folder.name) / "clients"
        clients.write_text(f"backend {hashlib.sha256(self.key.encode()).hexdigest()}\n")
        nonce_secret = pathlib.Path(self.folder.name) / "nonce-secret"
        nonce_secret.write_text(secrets.token_hex(32) + "\n")
        environment = {
            "LIMITED_LOGIN_APP_IDS": APP_ID, "LIMITED_LOGIN_JWKS_URLS": jwks_url,
            "LIMITED_LOGIN_LISTEN": "127.0.0.1:0", "LIMITED_LOGIN_ADMIN_LISTEN": "127.0.0.1:0",
            "LIMITED_LOGIN_LOG_FORMAT": "json", "LIMITED_LOGIN_GATEWAY": "enabled",
            "LIMITED_LOGIN_CLIENT_KEYS_FILE": str(clients), "LIMITED_LOGIN_NONCE_SECRET_FILE": str(nonce_secret),
        }
        if graph:
            app_secrets = pathlib.Path(self.folder.name) / "app-secrets"
            app_secrets.write_text(f"{APP_ID} {graph.app_secret}\n")
            base = f"http://{graph.address}"
            environment["LIMITED_LOGIN_APP_SECRETS_FILE"] = str(app_secrets)
            environment["LIMITED_LOGIN_GRAPH_URL"] = base
            environment["LIMITED_LOGIN_UNINSTALL_URL"] = f"{base}/platform/uninstall/"
        environment |= {f"LIMITED_LOGIN_{name.upper()}": value for name, value in settings.items()}
        super().__init__([program, "serve"], {name: value for name, value in environment.items() if value is not None})
        line = r'"message":"listening"'
        self.find(f"({line})")
        self.address = self.find(r'"address":"([^"]+)"')
        self.admin_address = self.find(r'"admin_address":"([^"]+)"')

    def wait_until_ready(self):
        # The service's own listener, unless it is a Unix socket, which urllib does not know.
        address = self.admin_address if self.address.startswith("unix:") else self.address
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://{address}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the service has no keys:\n" + self.output())

    def requests(self):
        """How many requests it has answered, by its own metrics."""
        with urllib.request.urlopen(f"http://{self.admin_address}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        name = "http_server_request_duration_seconds_count"
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines if line.startswith(name))

    def stop(self):
        super().stop()
        self.folder.cleanup()
