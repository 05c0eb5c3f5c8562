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
import os
import pathlib
import pwd
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading

import gateway_parts
import harness
import live
import wsgi_application
from gateway_parts import Gateway, Tally

HERE = harness.ROOT / "config" / "gateways"
PORT = 8000
UNITS = {"nginx": "nginx", "haproxy": "haproxy", "caddy": "caddy", "apache": "apache2"}
# The start commands of the gateways without a unit, as the README names them.
COMMANDS = {"envoy": "envoy -c /etc/envoy/envoy.yaml --use-dynamic-base-id --concurrency 1 -l warning", "traefik": "traefik"}
USERS = {"nginx": "www-data", "haproxy": "haproxy", "caddy": "caddy", "apache": "www-data"}
PROGRAMS = {"apache": "apache2"}
# The installed file, the beginnings of its commented lines for each place of the token, and of those for CORS on a refusal.
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
        "query": [f'{ENVOY[0]}header: ":path"', ENVOY[1]], "cors": ["- {filter: {status_code_filter: {comparison: {op: EQ, value: {default_value: 401"]}),
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
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={path},upperdir={upper},workdir={work}", path],
                   check=True)


def opened(name, what):
    """Puts the commented lines for one place of the token, or for CORS, in force in the installed file."""
    file, marks = LINES[f"{name} {what}" if f"{name} {what}" in LINES else name]
    text = pathlib.Path(file).read_text()
    for mark in marks[what]:
        pattern = ".*".join(re.escape(part) for part in mark.split(".*"))
        text, count = re.subn(rf"(?:#|--)(?={pattern})", "", text)
        if count != 1:
            raise RuntimeError(f"{name}: {count} commented lines {mark}")
    pathlib.Path(file).write_text(text)
    if (name, what) == ("apache", "cors"):
        harness.output(["a2enmod", "-q", "headers"])


class Installed(Gateway):
    """A running gateway, started as its distribution does."""

    def __init__(self, name):
        self.name, self.port = name, PORT
        start, environment, user = unit(name) if name in UNITS else (COMMANDS[name], {}, None)
        command = shlex.split(start)
        if user:
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *command]
        home = {"HOME": pwd.getpwnam(user).pw_dir} if user else {}
        self.process = live.Process(command, environment | home, directory="/")
        if not harness.until(lambda: harness.request(PORT, "GET", "/", timeout=5)[0] != 404, pause=0.1):
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
        harness.until(lambda: not self.pids(), 20, 0.05)
        for pid in self.pids():
            self.end(pid, signal.SIGKILL)
        self.process.process.wait()


def judge_preflight(tally, gateway):
    fields = ["Origin: https://app.example.com", "Access-Control-Request-Method: PUT"]
    answer = gateway.ask(None, fields=[*fields, *gateway_parts.FORGED, "X_Auth_Subject: 1"], arguments=["-X", "OPTIONS"])
    tally.check("preflight", answer.application.get("method") == "OPTIONS" and not answer.identity, answer)
    for lone in fields:
        answer = gateway.ask(None, fields=[lone], arguments=["-X", "OPTIONS"])
        tally.check(f"OPTIONS with {lone} alone", answer.status == 401, answer)
    answer = gateway.ask(None, fields=fields)
    tally.check("GET with a preflight's fields", answer.status == 401, answer)


def judge_cors(tally, gateway, issuer):
    origin = "https://app.example.com"
    for title, token in [("no token", None), ("an expired token", issuer.expired())]:
        answer = gateway.ask(token, fields=[f"Origin: {origin}"])
        told = answer.fields.get("access-control-allow-origin")
        tally.check(f"a page may read the answer to {title}", (answer.status, told) == (401, origin), answer)
    answer = gateway.ask(issuer.token(), fields=[f"Origin: {origin}"])
    tally.check("a good token of a page", answer.status == 200, answer)


def judge_rest(tally, gateway, issuer):
    jane = issuer.token(email="jane@example.com")
    answer = gateway.ask(jane, path="/orders?id=5", fields=["Host: api.example.com"])
    tally.check("?id=5", answer.application.get("path") == "/orders?id=5", answer)
    tally.check("the client's Host", answer.seen.get("HOST") == "api.example.com", answer)
    answer = gateway.ask(None, fields=["Host: api.example.com"])
    tally.check("another Host without a token", answer.status == 401, answer)
    for code, token in [("expired", issuer.expired()), ("invalid_signature", jane[:-8] + "AAAAAAAA")]:
        answer = gateway.ask(token)
        told = f'code="{code}"' in answer.challenge or f'"code":"{code}"' in answer.body
        tally.check(code, answer.status == 401 and told, answer)


@contextlib.contextmanager
def application():
    """The WSGI application on port 3000."""
    server = wsgi_application.start(3000)
    yield
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def socket_application():
    """An application on port 3000 that speaks the real WebSocket protocol and sends the subject it got."""
    import websockets.sync.server

    def serve(connection):
        connection.send(connection.request.headers.get("X-Auth-Subject", "-"))
        for message in connection:
            connection.send(message)

    server = websockets.sync.server.serve(
        serve, "127.0.0.1", 3000, select_subprotocol=lambda _, offered: "bearer" if "bearer" in offered else None,
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield
    server.shutdown()


def judge_socket(tally, place, issuer):
    import websockets.exceptions
    import websockets.sync.client

    def talk(token, forged):
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

    for title, token, expected in [
        ("the token", issuer.token(), (live.SUBJECT, "hello")), ("an expired token", issuer.expired(), 401), ("no token", "", 401),
    ]:
        if place == "subprotocol" and not token:
            continue
        try:
            told = talk(token, [("X-Auth-Subject", "forged")])
        except websockets.exceptions.InvalidStatus as refused:
            told = refused.response.status_code
        tally.check(f"a WebSocket with {title} in the {place}", told == expected, told)
    told = talk(issuer.expired(), [("Authorization", f"Bearer {issuer.token()}")])
    tally.check(f"a Bearer token goes before another in the {place}", told == (live.SUBJECT, "hello"), told)


def drive(tally, name, block, program, issuer):
    with harness.Folder() as shim:
        shim.write("systemctl", '#!/bin/sh\necho "$@" >>"${0%/*}/asked"\n', 0o755)
        environment = os.environ | {"PATH": f"{shim.path}:{os.environ['PATH']}"}

        def install():
            return harness.run(["bash", "-euc", block], cwd=HERE, env=environment)

        done = install()
        tally.check("the Install block", done.returncode == 0, done.stdout + done.stderr)
        if name in UNITS:
            asked = shim.path / "asked"
            tally.check("the block reloads", asked.exists() and UNITS[name] in asked.read_text())
        settings = {"listen": "127.0.0.1:8080", "gateway": "enabled"}
        with live.Service(program, issuer.jwks_url, **settings) as service:
            service.wait_until_ready()
            with application(), Installed(name) as gateway:
                gateway_parts.judge(tally, gateway, issuer)
                judge_preflight(tally, gateway)
                judge_rest(tally, gateway, issuer)
                if name in USERS:
                    tally.check(f"serves as {USERS[name]}", gateway.users() == {USERS[name]}, gateway.users())
            for place in ["cookie", "subprotocol", "query"] if name != "traefik" else []:
                install()
                opened(name, place)
                with socket_application(), Installed(name):
                    judge_socket(tally, place, issuer)
            install()
            opened(name, "cors")
            with application(), Installed(name) as gateway:
                judge_cors(tally, gateway, issuer)
        install()
        with live.Service(program, "http://127.0.0.1:9/", **settings), Installed(name) as gateway:
            answer = gateway.ask(issuer.token())
            tally.check("outage", answer.status == 503, answer)


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
            if not harness.installed(PROGRAMS.get(name, name)):
                continue
            tally = Tally(name)
            try:
                drive(tally, name, block, program, issuer)
            except (RuntimeError, OSError) as error:
                tally.check("", False, error)
            print(f"{name} as installed: {tally}", flush=True)
            failed += tally.failed
    return 1 if failed else 0


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--inside"]:
        return inside(arguments[1], arguments[2:])
    tools = harness.ROOT / ".build/tools/gateways"
    if arguments[:1] == ["--tools"]:
        tools, arguments = pathlib.Path(arguments[1]).absolute(), arguments[2:]
    missing = {folder.name for folder in HERE.iterdir() if folder.is_dir()} - blocks().keys()
    if missing:
        sys.exit(f"no Install block for {missing}")
    if os.geteuid() != 0:
        print("SKIPPED: installing gateways needs root")
        return 0
    python = harness.environment_with(tools, gateway_parts.TOOLS)
    environment = os.environ | {"PATH": f"{tools}/bin:{os.environ['PATH']}"}
    command = ["unshare", "--mount", "--net", python, __file__, "--inside", harness.build(), *arguments]
    return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
