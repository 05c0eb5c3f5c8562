"""The parts of the login servers' tests: a server, an app with its cookie, and a proxy that fails when it is told to."""

import contextlib
import email.utils
import http.client
import json
import time
import urllib.error
import urllib.request

import harness
import live


class Failure(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Failure(what)


class Relay:
    """A proxy between a login server and the service or the source of keys. It can be told to fail."""

    def __init__(self, target):
        self.fault, self.target, self.server = None, target, harness.serve(self.answer)
        self.address = self.server.url

    def answer(self, asked):
        if self.fault == "closed":
            return None
        if self.fault in FAULTS:
            return FAULTS[self.fault]
        hidden = {"host", "connection", "x-api-key" if self.fault == "key" else ""}
        fields = {name: value for name, value in asked.headers.items() if name.lower() not in hidden}
        question = urllib.request.Request(self.target + asked.path, asked.body or None, fields, method=asked.command)
        try:
            with urllib.request.urlopen(question, timeout=harness.ANSWER_SECONDS) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

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
    """A running login server of a kind. `status` is the answer to `GET /me` without a session."""

    def __init__(self, kind, variables, status=401):
        self.kind = kind
        self.port = harness.free_port()
        command = [part.replace("PORT", str(self.port)) for part in kind.command]
        super().__init__(command, kind.variables | variables | {"PORT": str(self.port)})
        if not harness.wait_until_ready(self.port, "/me", status):
            self.stop()
            raise Failure(self.output())


class App:
    """An app with its cookie."""

    def __init__(self, server):
        self.server = server
        self.cookie = ""
        self.attributes = {}

    def call(self, method, path, body=None, cookie=None):
        fields = {"Content-Type": "application/json", "Cookie": self.cookie if cookie is None else cookie}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), fields)
            answer = connection.getresponse()
            text = answer.read().decode()
        for field in answer.headers.get_all("Set-Cookie") or [] if cookie is None else []:
            self.cookie, _, attributes = field.partition(";")
            parts = (part.strip().lower().partition("=") for part in attributes.split(";"))
            self.attributes = {name: value for name, _, value in parts}
            if self.seconds() <= 0:
                self.cookie = ""
        return answer.status, text

    def seconds(self):
        """The time that the app keeps the cookie."""
        if "max-age" in self.attributes:
            return int(self.attributes["max-age"])
        return email.utils.parsedate_to_datetime(self.attributes["expires"]).timestamp() - time.time()

    def begin(self):
        status, text = self.call("POST", "/login/begin", {})
        expect(status == 200, f"begin: {status} {text}\n{self.server.output()}")
        begun = json.loads(text)
        return begun["login"], begun["nonce"]

    def log_in(self, login, token, **more):
        return self.call("POST", "/login", {"login": login, "id_token": token} | more)

    def refresh(self, token, **more):
        return self.call("POST", "/refresh", {"id_token": token} | more)

    def user(self, cookie=None):
        status, text = self.call("GET", "/me", cookie=cookie)
        return json.loads(text).get("user") if status == 200 else None

    def changed(self, seconds, secret=None):
        """The cookie of the same session, which ends so many seconds earlier."""
        name, _, value = self.cookie.partition("=")
        secret = self.server.kind.variables.get("SESSION_SECRET", "") if secret is None else secret
        return f"{name}={self.server.kind.change(value, secret.encode(), seconds)}"


def logged_in(server, issuer):
    app = App(server)
    login, nonce = app.begin()
    status, text = app.log_in(login, issuer.token(nonce=nonce))
    expect(status == 200 and app.user() == live.SUBJECT, f"a login: {status} {text}\n{server.output()}")
    return app
