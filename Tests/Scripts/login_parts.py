"""The parts of the login servers' tests: a server, an app with its cookie, and a proxy that fails when it is told to."""

import email.utils
import json
import time

import harness
import live


class Failure(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Failure(what)


def answered(what, wanted, answer, said=""):
    """Checks an answer's status, and that its text says something; returns the text."""
    status, text = answer
    expect(status == wanted and said in text, f"{what}: {status} {text}, not {wanted} {said}")
    return text


class Relay:
    """A proxy between a login server and the service or the source of keys. It can be told to fail."""

    def __init__(self, port):
        self.fault, self.port, self.server = None, port, harness.serve(self.answer)
        self.address = self.server.url

    def answer(self, asked):
        if self.fault == "closed":
            return None
        if self.fault in FAULTS:
            return FAULTS[self.fault]
        hidden = {"host", "connection", "x-api-key" if self.fault == "key" else ""}
        fields = {name.title(): value for name, value in asked.headers.items() if name.lower() not in hidden}
        return harness.request(self.port, asked.command, asked.path, asked.body or None, fields)

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
        self.kind, self.variables = kind, variables
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
        fields = {"Cookie": self.cookie if cookie is None else cookie}
        answer = harness.answer_to(self.server.port, method, path, None if body is None else json.dumps(body), fields)
        for field in answer.headers.get_all("Set-Cookie") or [] if cookie is None else []:
            self.cookie, _, attributes = field.partition(";")
            parts = (part.strip().lower().partition("=") for part in attributes.split(";"))
            self.attributes = {name: value for name, _, value in parts}
            if self.seconds() <= 0:
                self.cookie = ""
        return answer.status, answer.body.decode()

    def seconds(self):
        """The time that the app keeps the cookie; a cookie of the browser's session has no end."""
        if "max-age" in self.attributes:
            return int(self.attributes["max-age"])
        if "expires" not in self.attributes:
            return float("inf")
        return email.utils.parsedate_to_datetime(self.attributes["expires"]).timestamp() - time.time()

    def begin(self):
        begun = json.loads(answered("begin", 200, self.call("POST", "/login/begin", {})))
        return begun.get("login"), begun["nonce"]

    def log_in(self, login, token, **more):
        return self.call("POST", "/login", {"login": login, "id_token": token} | more)

    def refresh(self, token, **more):
        return self.call("POST", "/refresh", {"id_token": token} | more)

    def user(self, cookie=None):
        status, text = self.call("GET", "/me", cookie=cookie)
        return json.loads(text).get("user") if status == 200 else None


def logged_in(server, issuer):
    app = App(server)
    login, nonce = app.begin()
    answered("a login", 200, app.log_in(login, issuer.token(nonce=nonce)))
    expect(app.user() == live.SUBJECT, f"a login is no session\n{server.output()}")
    return app
