#!/usr/bin/env python3
"""Installs each gateway by its block of config/gateways/README.md, starts it as its distribution does, and tests it.

The script makes a mount and a network namespace. There it may change /etc, /var and /run, and the ports of the files are free.
It runs the block unchanged, and the start command of the distribution's unit from `/`, as the unit's user. It tests the cases
of `gateway_parts.py`; then a CORS preflight, a query, another Host, a WebSocket with the token in each place, a refusal that a
page of another origin may read, and an outage. A script replaces `systemctl`, since no service manager runs in a namespace.

usage: installed_gateways_test.py [--tools FOLDER] [NAME...]

It needs root and the packages of the gateways; a gateway that is not installed is reported as SKIPPED. FOLDER holds a virtual
environment with Envoy, Traefik and the WebSocket library (default: .build/tools/gateways).
"""

import contextlib
import json
import os
import pathlib
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import gateway_parts
import live
import wsgi_application
from gateway_parts import Gateway, Tally, identity

HERE = live.ROOT / "config" / "gateways"
PORT = 8000
UNITS = {"nginx": "nginx", "haproxy": "haproxy", "caddy": "caddy", "apache": "apache2"}
# The start commands of the gateways without a unit, as the README names them.
COMMANDS = {"envoy": "envoy -c /etc/envoy/envoy.yaml --use-dynamic-base-id --concurrency 1 -l warning", "traefik": "traefik"}
USERS = {"nginx": "www-data", "haproxy": "haproxy", "caddy": "caddy", "apache": "www-data"}
PROGRAMS = {"apache": "apache2"}
# The file and the commented lines that set a CORS field on a refusal.
CORS_LINES = {
    "nginx": ("/etc/nginx/conf.d/limited-login.conf", ["#add_header Access"]),
    "haproxy": ("/etc/haproxy/haproxy.cfg", ["#http-after-response set-header Access"]),
    "caddy": ("/etc/caddy/Caddyfile", ["#header ?Access"]),
    "apache": ("/etc/apache2/sites-available/limited-login.conf", ["#Header always set Access"]),
    "envoy": ("/etc/envoy/envoy.yaml", ["#local_reply_config"]),
    "traefik": ("/etc/traefik/routes.yaml", ["#- cors", "#cors:"]),
}
# The places that need one line, although another place of the same gateway needs two.
ALONE = {("caddy", "cookie"), ("caddy", "query")}


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
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={path},upperdir={upper},workdir={work}", path],
                   check=True)


def opened(name, place):
    """Puts the commented lines for one place of the token in force in the installed files."""
    marks = {
        "nginx": {"cookie": '#"" "Bearer $cookie', "subprotocol": '#"" "Bearer $limited_login_sub', "query": '#"" "Bearer $limited_login_query'},
        "haproxy": {"cookie": "#http-request set-var(txn.auth_token) req.cook",
                    "subprotocol": "#http-request set-var(txn.auth_token) req.hdr(Sec",
                    "query": "#http-request set-var(txn.auth_token) urlp"},
        "caddy": {"cookie": '#header_up Authorization "Bearer {http.request.cookie',
                  "subprotocol": '#header_up Authorization "Bearer {http.request.header.Sec',
                  "query": '#header_up Authorization "Bearer {http.request.uri'},
        "apache": {"cookie": '--credentials = credentials or "Bearer " .. (r:getcookie',
                   "subprotocol": '--credentials = credentials or "Bearer " .. ((r.headers_in',
                   "query": '--credentials = credentials or "Bearer " .. (r:parseargs'},
        "envoy": {"cookie": "#- {name: envoy.filters.http.header_to_metadata", "subprotocol": "#- {name: envoy.filters.http.header_to_metadata",
                  "query": "#- {name: envoy.filters.http.header_to_metadata"},
    }
    inner = {"cookie": "cookie: id_token", "subprotocol": "header: sec-websocket-protocol", "query": 'header: ":path"'}
    for path in [*pathlib.Path("/etc/nginx/conf.d").glob("*"), *pathlib.Path("/etc/haproxy").glob("*.cfg"),
                 *pathlib.Path("/etc/caddy").glob("*"), *pathlib.Path("/etc/apache2").glob("*.lua"),
                 *pathlib.Path("/etc/envoy").glob("*")]:
        if not path.is_file() or name not in str(path).replace("apache2", "apache"):
            continue
        lines, count = path.read_text().splitlines(), 0
        for index, line in enumerate(lines):
            mark = marks[name][place]
            is_filter = name != "envoy" or inner[place] in line
            second = {"envoy": "#authorization_request", "caddy": '#header_up Authorization "^Bearer bearer'}.get(name)
            if (mark in line and is_filter) or (second and second in line and (name, place) not in ALONE):
                lines[index], count = re.sub(r"#|--(?=cred)", "", line, count=1), count + 1
        if count != (2 if name == "envoy" or (name, place) == ("caddy", "subprotocol") else 1):
            raise RuntimeError(f"{name}: {count} commented lines for {place}")
        path.write_text("\n".join(lines) + "\n")


def open_cors(name):
    """Puts the commented lines for CORS in force."""
    file, marks = CORS_LINES[name]
    text = pathlib.Path(file).read_text()
    for mark in marks:
        if text.count(mark) != 1:
            raise RuntimeError(f"{name}: {text.count(mark)} commented lines {mark}")
        text = text.replace(mark, mark[1:])
    pathlib.Path(file).write_text(text)
    if name == "apache":
        subprocess.run(["a2enmod", "-q", "headers"], check=True, capture_output=True)


class Installed(Gateway):
    """A running gateway, started as its distribution does."""

    def __init__(self, name):
        self.name, self.port = name, PORT
        self.folder = tempfile.TemporaryDirectory()
        if name in UNITS:
            start, environment, user = unit(name)
        else:
            start, environment, user = COMMANDS[name], {}, None
        command = shlex.split(start)
        if user:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command]
        home = {"HOME": pwd.getpwnam(user).pw_dir} if user else {}
        self.process = live.Process(command, environment | home, directory="/")
        self.wait_to_serve()

    def wait_to_serve(self):
        deadline = time.monotonic() + live.START_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(RuntimeError):
                if self.ask(None)[0] != 404:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"{self.name} does not answer:\n{self.process.output()}")

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
        deadline = time.monotonic() + 20
        while self.pids() and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in self.pids():
            self.end(pid, signal.SIGKILL)
        self.process.process.wait()
        self.folder.cleanup()


def judge_preflight(tally, name, gateway, issuer):
    fields = ["Origin: https://app.example.com", "Access-Control-Request-Method: PUT"]
    status, _, body = gateway.ask(None, fields=[*fields, *gateway_parts.FORGED, "X_Auth_Subject: 1"], arguments=["-X", "OPTIONS"])
    seen = json.loads(body) if status == 200 else {}
    tally.check(f"{name}: preflight", status == 200 and seen["method"] == "OPTIONS" and not identity(seen["fields"]),
                f"{status} {body}")
    for lone in fields:
        status, _, _ = gateway.ask(None, fields=[lone], arguments=["-X", "OPTIONS"])
        tally.check(f"{name}: OPTIONS with {lone} alone", status == 401, status)
    status, _, _ = gateway.ask(None, fields=fields)
    tally.check(f"{name}: GET with a preflight's fields", status == 401, status)


def judge_cors(tally, name, gateway, issuer):
    origin = "https://app.example.com"
    for title, token in [("no token", None), ("an expired token", issuer.expired())]:
        status, fields, _ = gateway.ask(token, fields=[f"Origin: {origin}"])
        told = fields.get("access-control-allow-origin")
        tally.check(f"{name}: a page may read the answer to {title}", (status, told) == (401, origin), f"{status} {fields}")
    status, _, body = gateway.ask(issuer.token(), fields=[f"Origin: {origin}"])
    tally.check(f"{name}: a good token of a page", status == 200, f"{status} {body}")


def judge_rest(tally, name, gateway, issuer):
    jane = issuer.token(email="jane@example.com")
    status, _, body = gateway.ask(jane, path="/orders?id=5", fields=["Host: api.example.com"])
    seen = json.loads(body) if status == 200 else {}
    tally.check(f"{name}: ?id=5", seen.get("path") == "/orders?id=5", f"{status} {body}")
    tally.check(f"{name}: the client's Host", seen.get("fields", {}).get("HOST") == "api.example.com", f"{status} {body}")
    status, _, body = gateway.ask(None, fields=["Host: api.example.com"])
    tally.check(f"{name}: another Host without a token", status == 401, f"{status} {body}")
    for code, token in [("expired", issuer.expired()), ("invalid_signature", jane[:-8] + "AAAAAAAA")]:
        status, answer, body = gateway.ask(token)
        told = f'code="{code}"' in answer.get("www-authenticate", "") or f'"code":"{code}"' in body
        tally.check(f"{name}: {code}", status == 401 and told, f"{status} {answer} {body}")


class Application:
    """The WSGI application on port 3000."""

    def __init__(self):
        self.server = wsgi_application.start(3000)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class SocketApplication:
    """An application on port 3000 that speaks the real WebSocket protocol and sends the subject it got."""

    def __enter__(self):
        import websockets.sync.server

        def serve(connection):
            connection.send(connection.request.headers.get("X-Auth-Subject", "-"))
            for message in connection:
                connection.send(message)

        self.server = websockets.sync.server.serve(
            serve, "127.0.0.1", 3000, select_subprotocol=lambda _, offered: "bearer" if "bearer" in offered else None,
        )
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()


def judge_socket(tally, name, place, issuer):
    import websockets.exceptions
    import websockets.sync.client

    def talk(token, forged=()):
        fields, path, protocols = list(forged), "/socket", None
        if place == "cookie":
            fields.append(("Cookie", f"a=b; id_token={token}; c=d"))
        elif place == "subprotocol":
            protocols = ["bearer", token]
        else:
            path = f"/socket?x=1&id_token={token}"
        with websockets.sync.client.connect(f"ws://127.0.0.1:{PORT}{path}", additional_headers=fields, open_timeout=20,
                                            subprotocols=protocols, proxy=None) as client:
            client.send("hello")
            return client.recv(20), client.recv(20)

    try:
        told = talk(issuer.token(), [("X-Auth-Subject", "forged")])
    except websockets.exceptions.InvalidStatus as refused:
        told = refused.response
    tally.check(f"{name}: a WebSocket with the token in the {place}", told == (live.SUBJECT, "hello"), told)
    for title, token in [("an expired token", issuer.expired()), ("no token", "")]:
        if place == "subprotocol" and not token:
            continue
        try:
            told = talk(token)
            tally.check(f"{name}: a WebSocket with {title} in the {place}", False, told)
        except websockets.exceptions.InvalidStatus as refused:
            tally.check(f"{name}: a WebSocket with {title} in the {place}", refused.response.status_code == 401, refused)


def drive(tally, name, block, program, issuer):
    shim = pathlib.Path(tempfile.mkdtemp())
    (shim / "systemctl").write_text('#!/bin/sh\necho "$@" >>"${0%/*}/asked"\n')
    (shim / "systemctl").chmod(0o755)
    path = f"{shim}:{os.environ['PATH']}"

    def install():
        return subprocess.run(["bash", "-euc", block], cwd=HERE, env=os.environ | {"PATH": path}, capture_output=True, text=True)

    done = install()
    tally.check(f"{name}: the Install block", done.returncode == 0, done.stdout + done.stderr)
    if name in UNITS:
        asked = (shim / "asked").read_text() if (shim / "asked").exists() else ""
        tally.check(f"{name}: the block reloads", UNITS[name] in asked, asked)
    settings = {"listen": "127.0.0.1:8080", "gateway": "enabled"}
    with live.Service(program, issuer.jwks_url, **settings) as service:
        service.wait_until_ready()
        with contextlib.closing(Application()), Installed(name) as gateway:
            gateway_parts.judge(tally, name, gateway, issuer)
            judge_preflight(tally, name, gateway, issuer)
            judge_rest(tally, name, gateway, issuer)
            if name in USERS:
                tally.check(f"{name}: serves as {USERS[name]}", gateway.users() == {USERS[name]}, gateway.users())
        for place in ["cookie", "subprotocol", "query"] if name != "traefik" else []:
            install()
            opened(name, place)
            with SocketApplication(), Installed(name):
                judge_socket(tally, name, place, issuer)
        install()
        open_cors(name)
        with contextlib.closing(Application()), Installed(name) as gateway:
            judge_cors(tally, name, gateway, issuer)
    install()
    with live.Service(program, "http://127.0.0.1:9/", **settings), Installed(name) as gateway:
        status, fields, _ = gateway.ask(issuer.token())
        tally.check(f"{name}: outage", status == 503, f"{status} {fields}")


def inside(program, names):
    """Runs the whole test in the namespaces."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="gateways-"))
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", scratch], check=True)
    for folder in ["/etc", "/var"]:
        writable(pathlib.Path(folder), scratch)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    for folder in ["haproxy", "lock", "apache2"]:
        (pathlib.Path("/run") / folder).mkdir()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    failed = 0
    with live.Issuer(program) as issuer:
        for name, block in blocks().items():
            if names and name not in names:
                continue
            binary = PROGRAMS.get(name, name)
            if not (shutil.which(binary) or shutil.which(f"/usr/sbin/{binary}")):
                print(f"SKIPPED: {name} is not installed", flush=True)
                continue
            tally = Tally()
            try:
                drive(tally, name, block, program, issuer)
            except (RuntimeError, OSError) as error:
                tally.check(f"{name}", False, error)
            print(f"{name} as installed: {tally.passed} of {tally.passed + tally.failed}", flush=True)
            failed += tally.failed
    return 1 if failed else 0


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--inside"]:
        return inside(arguments[1], arguments[2:])
    tools = live.ROOT / ".build/tools/gateways"
    if arguments[:1] == ["--tools"]:
        tools, arguments = pathlib.Path(arguments[1]).absolute(), arguments[2:]
    missing = {folder.name for folder in HERE.iterdir() if folder.is_dir()} - blocks().keys()
    if missing:
        sys.exit(f"no Install block for {missing}")
    if os.geteuid() != 0:
        print("SKIPPED: installing gateways needs root")
        return 0
    python = live.environment_with(tools, gateway_parts.TOOLS)
    environment = os.environ | {"PATH": f"{tools}/bin:{os.environ['PATH']}"}
    command = ["unshare", "--mount", "--net", python, __file__, "--inside", live.build(), *arguments]
    return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
