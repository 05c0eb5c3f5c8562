"""The built program as processes: a stand-in issuer, services with its keys, and the resources that they take."""

import hashlib
import json
import os
import pathlib
import re
import secrets
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

from harness import ANSWER_SECONDS, START_SECONDS, Folder, request, until, wait_until_ready

# The Redis server of the tests: `REDIS_SERVER` may name another program, such as valkey-server.
REDIS_PROGRAM = os.environ.get("REDIS_SERVER", "redis-server")
APP_ID = "123456789012345"
SUBJECT = "2954873201847263"
# The most resident memory of a service in KiB: the promised bound, and one for the larger files of an unoptimised program.
RESIDENT_KIB = 64 * 1024
UNOPTIMISED_KIB = 80 * 1024


class Process:
    """A running program; its output is read line by line. `prepare` runs in the new process before it."""

    def __init__(self, arguments, environment=None, directory=None, own_group=False, prepare=None):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("LIMITED_LOGIN_")}
        self.process = subprocess.Popen(
            arguments, env=inherited | (environment or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", cwd=directory or tempfile.gettempdir(),
            start_new_session=own_group, preexec_fn=prepare,
        )
        self.lines = []
        self.condition = threading.Condition()
        self.ended = False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

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

    def status(self, name):
        """A number in `/proc/PID/status`."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(rf"{name}:\s+(\d+)", file.read()).group(1))

    def memory(self):
        """The private memory in KiB."""
        return self.status("RssAnon")

    def resident(self):
        """The private memory and the mapped parts of files, in KiB."""
        return self.status("VmRSS")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def settle(self, descriptors):
        """Waits until no more than so many descriptors are open."""
        return until(lambda: self.descriptors() <= descriptors, 15)

    def seen(self, found, seconds):
        """What `found()` gives as soon as the output makes it true, or when the time or the output ends."""
        with self.condition:
            self.condition.wait_for(lambda: found() or self.ended, seconds)
            return found()

    def find(self, pattern, seconds=START_SECONDS):
        """Waits until a line matches, and returns its first group."""
        match = self.seen(lambda: next(filter(None, (re.search(pattern, line) for line in self.lines)), None), seconds)
        if not match:
            raise RuntimeError(f"no line like {pattern!r} in:\n" + "\n".join(self.lines[-40:]))
        return match.group(1)

    def wait_for(self, mark, count=1, seconds=30):
        """True if the output has the text `count` times in time."""
        return self.seen(lambda: "\n".join(self.lines).count(mark) >= count, seconds)

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


class Asked:
    """A program that answers each line of its input by one line."""

    def __init__(self, command, environment=None):
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | (environment or {}))

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()


def port_of(address):
    return int(address.rsplit(":", 1)[1])


class Demonstration(Process):
    """`limited-login demo` on these ports, with the address of its `page`."""

    def __init__(self, program, service=0, admin=0, issuer=0):
        listeners = {"--listen": service, "--admin-listen": admin, "--issuer-listen": issuer}
        super().__init__([program, "demo", *(f"{option}=127.0.0.1:{port}" for option, port in listeners.items())])
        self.page = self.find(r"Open the page:\s+(http://\S+)/")
        self.find(r"(Control-C)")


class Issuer(Process):
    """The stand-in issuer with its Graph, on a free port."""

    app_secret = "a-secret-for-these-tests"
    port = property(lambda self: port_of(self.address))

    def __init__(self, program):
        super().__init__([program, "issuer", "--listen", "127.0.0.1:0", "--app-secret", self.app_secret])
        self.address = self.find(r"stand-in issuer on http://(\S+)")
        self.jwks_url = f"http://{self.address}/.well-known/oauth/openid/jwks/"

    def ask(self, path, members):
        with urllib.request.urlopen(f"http://{self.address}{path}", json.dumps(members).encode(), timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)

    def rotate(self):
        """Makes the issuer sign with another key."""
        urllib.request.urlopen(f"http://{self.address}/rotate", b"", timeout=ANSWER_SECONDS).close()

    def token(self, **claims):
        """A token with these claims on top of the usual ones."""
        return self.ask("/tokens", {"nonce": "n-1"} | claims)["id_token"]

    def access_token(self, query="", **members):
        """An access token of the subject with these members on top; `query` is `revoked` or `dead`."""
        return self.ask(f"/access-tokens?{query}", {"name": "Jane Doe"} | members)["access_token"]

    def bound(self, **claims):
        """A token that is bound to the issuer's own device."""
        return self.token(cnf={"jkt": self.proof("x", "http://x/")["key_thumbprint"]}, **claims)

    def proof(self, token, url, method="GET", **members):
        """A DPoP proof of the issuer's own device for one request, as `proof`, and the thumbprint of its key."""
        return self.ask("/proofs", {"id_token": token, "method": method, "url": url} | members)

    def expired(self):
        now = int(time.time())
        return self.token(iat=now - 7200, exp=now - 3600)

    def foreign(self):
        return self.token(aud="987654321098765")


def variables(settings):
    """The environment with these settings on top of the usual ones; a setting of None is left out."""
    settings = {"app_ids": APP_ID, "listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0", "log_format": "json",
                "watch_files": "disabled"} | settings
    return {f"LIMITED_LOGIN_{name.upper()}": str(value) for name, value in settings.items() if value is not None}


class Server(Process):
    """`limited-login serve` on free ports, with these settings; a setting of None is left out."""

    port = property(lambda self: port_of(self.address))
    admin_port = property(lambda self: port_of(self.admin_address))

    def __init__(self, program, jwks_url, prepare=None, **settings):
        self.bound = RESIDENT_KIB if "release" in pathlib.Path(program).resolve().parts else UNOPTIMISED_KIB
        super().__init__([program, "serve"], variables({"jwks_urls": jwks_url} | settings), prepare=prepare)
        self.find(r'("message":"listening")')
        self.address = self.find(r'"address":"([^"]+)"')
        self.admin_address = self.find(r'"admin_address":"([^"]+)"')

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
        return until(lambda: (self.metric(name) or 0) >= least, seconds, 0.05)

    def requests(self):
        """The number of answered requests, by the service's own metrics."""
        counts = re.findall(r"^http_server_request_duration_seconds_count\S* (\S+)$", self.metrics(), re.M)
        return sum(int(float(count)) for count in counts)


def client_line(name, key=None):
    """A line of the file of callers' keys."""
    return f"{name} {hashlib.sha256((key or Service.key).encode()).hexdigest()}\n"


class Service(Server):
    """A server with gateway routes, nonces and one caller, `backend`, with its key. With an issuer as `graph` it also has the
    routes for permissions. Services with one folder share the files in it."""

    key = "a-key-for-these-tests"
    fields = {"X-Api-Key": key}

    def __init__(self, program, jwks_url, graph=None, folder=None, **settings):
        self.own_folder = None if folder else Folder()
        self.files = folder or self.own_folder
        known = {
            "gateway": "enabled", "nonce_secret_file": self.write("nonce-secret", secrets.token_hex(32)),
            "client_keys_file": self.write("clients", client_line("backend")),
        }
        if graph:
            base = f"http://{graph.address}"
            known |= {"app_secrets_file": self.write("app-secrets", f"{APP_ID} {graph.app_secret}"), "graph_url": base,
                      "uninstall_url": f"{base}/platform/uninstall/", "callbacks_url": f"{base}/webhooks",
                      "callbacks_secret_file": self.write("webhook-secret", "whsec_" + "A" * 43 + "="),
                      "data_deletion_status_url": f"{base}/deletion"}
        super().__init__(program, jwks_url, **(known | settings))

    def nonce(self):
        return json.loads(request(self.port, "POST", "/nonces", "{}", self.fields)[1])["nonce"]

    def write(self, name, line):
        """Writes a file that is not there yet."""
        file = self.files.path / name
        return str(file) if file.exists() else self.files.write(name, line + "\n")

    def stop(self):
        code = super().stop()
        if self.own_folder:
            self.own_folder.__exit__()
        return code
