"""Five tests for each login server in Tests/Examples: a good login, the same token twice, another login's token with its own
nonce, an expired token, and an outage that ends no session. `examples_test.py` runs them.

The servers in Node, Python, PHP and Go ask the service. The server on Hummingbird judges with the library, so its outage is
that of the issuer's keys.
"""

import concurrent.futures
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import live

EXAMPLES = live.ROOT / "Tests" / "Examples"
# Debian's packages for Go and Node.
GORILLA = pathlib.Path("/usr/share/gocode/src/github.com/gorilla/sessions")
NODE_PACKAGES = pathlib.Path("/usr/share/nodejs")

KEY = {"X-Api-Key": live.Service.key}


class Failure(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Failure(what)


class Relay:
    """A proxy between a login server and the service or the source of keys. It can be told to fail."""

    def __init__(self, target):
        self.fault = None
        relay = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def forward(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fields = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
                if relay.fault == "closed":
                    self.close_connection = True
                    return
                if relay.fault in FAULTS:
                    status, text = FAULTS[relay.fault]
                else:
                    if relay.fault == "key":
                        fields = {name: value for name, value in fields.items() if name.lower() != "x-api-key"}
                    question = urllib.request.Request(target + self.path, body or None, fields, method=self.command)
                    try:
                        with urllib.request.urlopen(question, timeout=live.ANSWER_SECONDS) as answer:
                            status, text = answer.status, answer.read()
                    except urllib.error.HTTPError as error:
                        status, text = error.code, error.read()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = forward

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


# The faults of the service besides a closed connection and a caller's key that the service does not know.
FAULTS = {
    "balancer": (502, b"<html>Bad Gateway</html>"),
    "refusing balancer": (401, b"<html>Unauthorized</html>"),
    "refusing gateway": (401, b'{"message": "Unauthorized"}'),
    "no keys": (503, json.dumps({"status": 503, "code": "keys_unavailable"}).encode()),
    "throttled": (429, json.dumps({"status": 429, "code": "key_checks_exhausted"}).encode()),
}


class LoginServer(live.Process):
    def __init__(self, command, variables):
        self.port = live.free_port()
        command = [part.replace("PORT", str(self.port)) for part in command]
        super().__init__(command, variables | {"PORT": str(self.port)})
        if not live.wait_until_ready(self.port, "/me", 401):
            self.stop()
            raise Failure(self.output())


class App:
    """An app with its cookies."""

    def __init__(self, server):
        self.server = server
        self.cookie = ""
        self.attributes = ""

    def call(self, method, path, body=None, cookie=None):
        fields = {"Content-Type": "application/json", "Cookie": self.cookie if cookie is None else cookie}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), fields)
            answer = connection.getresponse()
            text = answer.read().decode()
        for field in answer.headers.get_all("Set-Cookie") or [] if cookie is None else []:
            self.cookie, _, self.attributes = field.partition(";")
        return answer.status, text

    def begin(self):
        status, text = self.call("POST", "/login/begin", {})
        expect(status == 200, f"begin: {status} {text}\n{self.server.output()}")
        begun = json.loads(text)
        return begun["login"], begun["nonce"]

    def log_in(self, login, token, **more):
        return self.call("POST", "/login", {"login": login, "id_token": token} | more)

    def user(self, cookie=None):
        status, text = self.call("GET", "/me", cookie=cookie)
        return json.loads(text)["user"] if status == 200 else None


def good_login(server, issuer):
    app = App(server)
    login, nonce = app.begin()
    first = app.cookie
    flags = {flag.strip().lower() for flag in app.attributes.split(";")}
    expect(first.startswith("__Host-session=") and len(first) >= 36, f"the cookie {first}")
    expect({"httponly", "secure", "samesite=lax", "path=/"} <= flags and "domain" not in app.attributes.lower(), f"{flags}")
    status, text = app.log_in(login, issuer.token(nonce=nonce, name="Jane Doe"))
    expect(status == 200, f"good: {status} {text}\n{server.output()}")
    person = json.loads(text)
    expect((person["user"], person["name"]) == (live.SUBJECT, "Jane Doe"), f"good: {text}")
    expect(app.cookie != first, "the session kept its id")
    expect(app.user() == live.SUBJECT, "the session names nobody")
    expect(app.user(first) is None, "the id from before the login opens the session")
    # The SDK's own refresh has a nonce that this server never saw.
    status, text = app.call("POST", "/refresh", {"id_token": issuer.token(nonce="of-the-sdk")})
    expect(status == 200, f"refresh: {status} {text}")
    stranger = {"id_token": issuer.token(nonce="of-the-sdk", sub="1000200030004000")}
    for body in stranger, stranger | {"subject": "1000200030004000", "user": "1000200030004000"}:
        status, text = app.call("POST", "/refresh", body)
        expect(status == 401 and "subject_mismatch" in text, f"another person's refresh: {status} {text}")
    status, _ = App(server).call("POST", "/refresh", {"id_token": issuer.token()})
    expect(status == 401, "a refresh began a session")
    expect(app.user() == live.SUBJECT, "a refused refresh changed the session")


def same_token_twice(server, issuer):
    app = App(server)
    login, nonce = app.begin()
    first, token = app.cookie, issuer.token(nonce=nonce)
    status, text = app.log_in(login, token)
    expect(status == 200, f"{status} {text}")
    status, text = app.log_in(login, token)
    expect(status == 401, f"twice in one session: {status} {text}")
    thief = App(server)
    thief.cookie = first
    status, text = thief.log_in(login, token)
    expect(status == 401 and thief.user() != live.SUBJECT, f"twice with the cookie from before: {status} {text}")
    thief = App(server)
    status, text = thief.log_in(thief.begin()[0], token)
    expect(status == 401 and thief.user() is None, f"twice in another session: {status} {text}")
    one, other = App(server), App(server)
    login, nonce = one.begin()
    other.cookie, token = one.cookie, issuer.token(nonce=nonce)
    with concurrent.futures.ThreadPoolExecutor() as both:
        statuses = sorted(status for status, _ in both.map(lambda app: app.log_in(login, token), (one, other)))
    expect(statuses == [200, 401], f"twice at once: {statuses}")


def other_logins_token(server, issuer):
    """A thief tries a token before its owner used it: without a session, in a login of the thief's, and with all it shows."""
    owner = App(server)
    login, nonce = owner.begin()
    token = issuer.token(nonce=nonce)
    thief = App(server)
    for name in login, "", None:
        status, text = thief.log_in(name, token)
        expect(status == 401 and thief.user() is None, f"without a session: {status} {text}")
    own = thief.begin()[0]
    claimed = {"nonce": nonce, "raw_nonce": nonce, "subject": live.SUBJECT, "user": live.SUBJECT}
    for what, name, more in (("own login", own, {}), ("own login, nonce", own, claimed), ("owner's login", login, claimed)):
        status, text = thief.log_in(name, token, **more)
        expect(status == 401 and thief.user() is None, f"{what}: {status} {text}")


def expired_token(server, issuer):
    now = int(time.time())
    app = App(server)
    login, nonce = app.begin()
    status, text = app.log_in(login, issuer.token(nonce=nonce, iat=now - 7200, exp=now - 3600))
    expect(status == 401 and "expired" in text, f"expired: {status} {text}")
    expect(app.user() is None, "an expired token began a session")
    for what in None, 7, {"a": 1}, "", "x.y", "EAABwzLixnjYBO0123456789abcdef", issuer.foreign(), issuer.token(nonce=nonce)[:-4]:
        login = app.begin()[0]
        status, text = app.log_in(login, what)
        expect(status in (400, 401) and app.user() is None, f"the token {what}: {status} {text}")


def outage(server, issuer, relay, faults, unjudged):
    """Tests an outage. `unjudged` mints a token that cannot be judged while the relay fails."""
    app, other = App(server), App(server)
    login, nonce = app.begin()
    expect(app.log_in(login, issuer.token(nonce=nonce))[0] == 200, "no login before the outage")
    login, nonce = other.begin()
    for fault in faults:
        relay.fault = fault
        status, text = other.log_in(login, unjudged(nonce))
        expect(status == 503, f"{fault}: a login: {status} {text}\n{server.output()}")
        status, text = app.call("POST", "/refresh", {"id_token": unjudged("of-the-sdk")})
        expect(status == 503, f"{fault}: a refresh: {status} {text}")
        status, text = app.call("POST", "/login/begin", {})
        expect(status in (200, 503), f"{fault}: the beginning of a login: {status} {text}")
        expect(app.user() == live.SUBJECT, f"{fault}: it logged the person out")
        relay.fault = None
    status, text = other.log_in(login, issuer.token(nonce=nonce))
    expect(status == 200 and other.user() == live.SUBJECT, f"the same login after the outage: {status} {text}")


def five_tests(server, issuer, relay, faults, unjudged):
    good_login(server, issuer)
    same_token_twice(server, issuer)
    other_logins_token(server, issuer)
    expired_token(server, issuer)
    outage(server, issuer, relay, faults, unjudged)
    return "ok: 5 tests"


def asks_service(command, service, issuer):
    """Runs the tests for a server that asks the service."""
    with Relay(f"http://{service.address}") as relay:
        variables = {"VERIFY_URL": relay.address, "VERIFY_KEY": live.Service.key, "SESSION_SECRET": secrets.token_hex(32)}
        with LoginServer(command, variables) as server:
            done = five_tests(server, issuer, relay, ["closed", "key", *FAULTS], lambda nonce: issuer.token(nonce=nonce))
            for told in "unauthorized_client", "client-key new":
                expect(told in server.output(), f"a wrong key of its own is not told: {server.output()}")
            return done


def judges_itself(program, issuer, stranger):
    """Runs the tests for a server on the library, which cannot judge an unknown key without the source of keys."""
    with Relay(f"http://{issuer.address}") as relay:
        variables = {"APP_ID": live.APP_ID, "JWKS_URL": issuer.jwks_url.replace(f"http://{issuer.address}", relay.address)}
        with LoginServer([str(program)], variables) as server:
            return five_tests(server, issuer, relay, ["closed"], lambda nonce: stranger.token(nonce=nonce))


def python_with_flask():
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", "import flask, requests"], capture_output=True, check=False).returncode == 0:
                return python
    return None


def go_program(scratch):
    if not shutil.which("go") or not GORILLA.exists():
        return None
    variables = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "", "GOCACHE": f"{scratch}/go-cache"}
    command = ["go", "build", "-o", f"{scratch}/login-go", str(EXAMPLES / "login.go")]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables, check=False)
    expect(run.returncode == 0, run.stdout + run.stderr)
    return [f"{scratch}/login-go"]


def node_program(scratch):
    """Node finds the packages of an ES module only in a folder above it, and the packages that these need in `NODE_PATH`."""
    if not shutil.which("node") or not all((NODE_PACKAGES / name).exists() for name in ("express", "cookie-parser")):
        return None
    place = pathlib.Path(scratch) / "login-node"
    place.mkdir()
    (place / "node_modules").symlink_to(NODE_PACKAGES)
    program = shutil.copy(EXAMPLES / "login.mjs", place)
    return ["env", f"NODE_PATH={NODE_PACKAGES}", "node", program]


def commands(scratch):
    """The command of each server that asks the service; None if its tools are not installed."""
    def python():
        found = python_with_flask()
        return found and [found, str(EXAMPLES / "login.py")]

    return {
        "login-node": lambda: node_program(scratch),
        "login-python": python,
        "login-php": lambda: shutil.which("php") and ["php", "-S", "127.0.0.1:PORT", str(EXAMPLES / "login.php")],
        "login-go": lambda: go_program(scratch),
    }


def nonce(service):
    return json.loads(live.request(service.port, "POST", "/nonces", "{}", KEY)[1])["nonce"]


def wait_until_nonces_count(service, issuer):
    """Waits until nonces are accepted. A new service refuses those of its first seconds, since it may have forgotten their use."""
    deadline = time.monotonic() + live.START_SECONDS
    while time.monotonic() < deadline:
        question = json.dumps({"id_token": issuer.token(nonce=nonce(service)), "issued_nonce": True})
        if live.request(service.port, "POST", "/verify", question, KEY)[0] == 200:
            return
        time.sleep(0.2)
    raise Failure("the service takes no nonce of its own")
