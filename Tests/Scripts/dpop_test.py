#!/usr/bin/env python3
"""Lets /auth judge the DPoP proofs of other implementations, and lets these judge ours.

usage: dpop_test.py [--binary FILE] [--tools FOLDER] [NAME...]     (default: every test)
  makers    proofs made by pydpop and by atproto-oauth (PyPI) are accepted, and changed ones are refused
  judges    pydpop accepts the proofs of `limited-login dpop make` and of the stand-in issuer
  oauth2    mod_oauth2 (Debian: libapache2-mod-oauth2) asks /introspect, and its verdict on each proof is that of /auth
`--tools` makes a virtual environment there with the packages. A test is named and skipped if its programs are not installed. The
exit code is 1 if anything fails.
"""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.parse

import harness
import live
import proxies
import wsgi_application
from harness import failures

PACKAGES = ["pydpop==0.2.1", "atproto-oauth==0.1.0"]


def check(holds, sentence, facts=""):
    harness.check(holds, sentence if holds else f"{sentence}: {facts}")


def forwarded(method, url):
    """The fields with which a gateway describes its client's request."""
    parts = urllib.parse.urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return {
        "X-Forwarded-Method": method, "X-Forwarded-Proto": parts.scheme, "X-Forwarded-Host": parts.netloc,
        "X-Forwarded-Uri": target,
    }


def ask(port, token, proof, method="GET", url="https://api.example.com/orders", scheme="DPoP"):
    """The answer of /auth: the status, its code and its sentence."""
    fields = forwarded(method, url) | {"Authorization": f"{scheme} {token}"} | ({"DPoP": proof} if proof else {})
    status, text = harness.request(port, "GET", "/auth", fields=fields)
    problem = json.loads(text) if text else {}
    return status, problem.get("code"), problem.get("detail")


# This program runs in the virtual environment. It reads one job from each line, and answers with one line.
HELPER = """
import hashlib, json, sys
import pydpop
from atproto_oauth.dpop import DPoPManager
keys = {"pydpop": pydpop.generate_key(), "atproto-oauth": DPoPManager.generate_keypair()}
for line in sys.stdin:
    job = json.loads(line)
    if job["do"] == "thumbprint":
        answer = pydpop.jwk_thumbprint(pydpop.public_jwk(keys[job["maker"]]))
    elif job["do"] == "make" and job["maker"] == "pydpop":
        answer = pydpop.generate_proof(private_key=keys["pydpop"], htm=job["method"], htu=job["url"],
                                       access_token=job["token"])
    elif job["do"] == "make":
        answer = DPoPManager.create_proof(job["method"], job["url"], keys["atproto-oauth"], access_token=job["token"])
    else:
        try:
            answer = pydpop.verify_proof(proof=job["proof"], htm=job["method"], htu=job["url"],
                                         access_token=job["token"])["jwk_thumbprint"]
        except pydpop.DPoPError as error:
            answer = f"refused: {error}"
    print(json.dumps(answer), flush=True)
"""


class Helper:
    """The other implementations, in a process of their own. `is_there` is false if they are not installed."""

    def __init__(self, tools):
        python = harness.environment_with(tools, PACKAGES) if tools else sys.executable
        self.is_there = harness.run([python, "-W", "ignore", "-c", "import pydpop, atproto_oauth.dpop"]).returncode == 0
        if self.is_there:
            self.process = subprocess.Popen([python, "-W", "ignore", "-c", HELPER], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)

    def ask(self, **job):
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        if self.is_there:
            self.process.stdin.close()
            self.process.wait()


URLS = [
    ("GET", "https://api.example.com/orders"), ("POST", "https://api.example.com/orders?x=1"),
    ("DELETE", "https://api.example.com:8443/orders/7"), ("PATCH", "http://127.0.0.1:8000/a%20b/%D0%B6"),
    ("GET", "https://API.example.com:443/"), ("PUT", "https://[::1]:8443/x"), ("HEAD", "https://api.example.com/a/../b"),
]


def makers(program, helper, **_):
    with live.Issuer(program) as issuer, live.Service(program, issuer.jwks_url, dpop="required_if_bound") as service:
        service.wait_until_ready()
        for maker in ["pydpop", "atproto-oauth"]:
            token = issuer.token(cnf={"jkt": helper.ask(do="thumbprint", maker=maker)})
            accepted = 0
            for method, url in URLS:
                proof = helper.ask(do="make", maker=maker, method=method, url=url, token=token)
                answer = ask(service.port, token, proof, method, url)
                accepted += answer[0] == 200
                if answer[0] != 200:
                    print(f"  {maker} {method} {url}: {answer}")
            check(accepted == len(URLS), f"{maker}: {accepted} of {len(URLS)} proofs accepted")
            refused = 0
            for part in range(3):
                parts = helper.ask(do="make", maker=maker, method="GET", url=URLS[0][1], token=token).split(".")
                parts[part] = ("B" if parts[part][5] == "A" else "A").join([parts[part][:5], parts[part][6:]])
                refused += ask(service.port, token, ".".join(parts))[:2] == (401, "invalid_dpop_proof")
            other = issuer.bound()
            proof = helper.ask(do="make", maker=maker, method="GET", url=URLS[0][1], token=other)
            refused += ask(service.port, other, proof)[:2] == (401, "invalid_dpop_proof")
            refused += ask(service.port, token, None, scheme="Bearer")[:2] == (401, "invalid_dpop_proof")
            check(refused == 5, f"{maker}: {refused} of 5 refused: a changed part, a token of another device, no proof")


def judges(program, helper, **_):
    with live.Issuer(program) as issuer, harness.Folder() as folder:
        key = folder.path / "device.pem"
        harness.output(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key])
        for method, url in URLS[:4]:
            token = issuer.token()
            asked = ["--method", method, "--url", url, "--token-file", folder.write("token", token)]
            made = json.loads(harness.output([program, "dpop", "make", "--key-file", key, *asked, "--json"]))
            for title, answer in [("dpop make", made), ("the stand-in", issuer.proof(token, url, method))]:
                thumbprint = helper.ask(do="judge", proof=answer["proof"], method=method, url=url, token=token)
                check(thumbprint == answer["key_thumbprint"], f"pydpop accepts {title}'s proof for {method} {url}", thumbprint)
            command = [program, "dpop", "judge", made["proof"], *asked]
            run = harness.run([*command, "--key-thumbprint", made["key_thumbprint"]])
            check(run.returncode == 0, "and so does dpop judge", run.stdout + run.stderr)
            run = harness.run(command)
            check(run.returncode == 1 and "bound to no key" in run.stdout, "which misses the token's cnf.jkt", run.stdout)


class Apache(live.Process):
    """httpd in front of an application. `lines` decide about access, and `module` is the module for them. With a file
    `authority`, httpd alone sees it as the system's certificates: some modules trust no others."""

    def __init__(self, module, lines, application, authority=None):
        self.folder, self.port = harness.Folder(), harness.free_port()
        modules = ["authn_core", "authz_user", "proxy", "proxy_http", module]
        lines = [f"Listen 127.0.0.1:{self.port}", *lines, f"ProxyPass / http://{application}/"]
        command = proxies.apache(self.folder, modules, *lines)
        if authority:
            mount = 'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", mount, str(authority), *command]
        super().__init__(command, directory=self.folder.path)
        if not harness.listens(self.port, self.process):
            raise RuntimeError("Apache does not listen:\n" + self.output())

    def ask(self, token, proofs, path):
        """The status that a client gets."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.ANSWER_SECONDS)) as connection:
            connection.putrequest("GET", path)
            connection.putheader("Authorization", f"DPoP {token}")
            for proof in proofs:
                connection.putheader("DPoP", proof)
            connection.endheaders()
            return connection.getresponse().status

    def stop(self):
        super().stop()
        self.folder.__exit__()


def oauth2(program, **_):
    if not os.path.exists(f"{proxies.MODULES}/mod_oauth2.so") or not os.path.exists(proxies.APACHE):
        return harness.skip("oauth2: libapache2-mod-oauth2 is not installed")
    application = f"127.0.0.1:{wsgi_application.start().server_port}"
    with live.Issuer(program) as issuer, live.Service(program, issuer.jwks_url) as service:
        service.wait_until_ready()
        # mod_oauth2 asks /introspect about the token, and judges the proof itself.
        options = f"introspect.auth=client_secret_basic&client_id=backend&client_secret={service.key}&type=dpop"
        with Apache("oauth2", [
            f"OAuth2TokenVerify introspect http://{service.address}/introspect {options}",
            "OAuth2AcceptTokenIn header type=dpop", "<Location />", "AuthType oauth2", "Require valid-user", "</Location>",
        ], application) as apache:
            now, url = int(time.time()), f"http://127.0.0.1:{apache.port}/orders"
            token, other = issuer.bound(), issuer.token(cnf={"jkt": "x" * 43})
            expired = issuer.bound(iat=now - 7200, exp=now - 3600)
            # Both judge each row with a new proof. A row has a title, the token, the members of the proof and the expected status.
            for title, shown, members, expected in [
                ("a good proof", token, {}, 200), ("a proof for POST", token, {"method": "POST"}, 401),
                ("a proof for another path", token, {"url": f"{url}/7"}, 401),
                ("a proof for another host", token, {"url": "http://example.com/orders"}, 401),
                ("a token bound to another key", other, {}, 401), ("a token bound to no key", issuer.token(), {}, 401),
                ("an expired token", expired, {}, 401), ("a proof an hour old", token, {"iat": now - 3600}, 401),
                ("a proof an hour ahead", token, {"iat": now + 3600}, 401), ("a broken signature", token, {"break": 1}, 401),
            ]:
                asked = {"token": shown, "url": url, "method": "GET"} | members
                is_broken = asked.pop("break", 0)
                proof = issuer.proof(**asked)["proof"]
                if is_broken:
                    proof = proof[:-20] + ("A" if proof[-20] != "A" else "B") + proof[-19:]
                theirs = apache.ask(shown, [proof], "/orders")
                ours = ask(service.port, shown, proof, "GET", url)[0]
                check(theirs == ours == expected, f"mod_oauth2 and /auth agree on {title}: {expected}", (theirs, ours))
            # liboauth2 1.4.5 does not read `ath`, so it accepts a proof for another token of the same key.
            proof = issuer.proof(issuer.bound(), url)["proof"]
            check(ask(service.port, token, proof, "GET", url)[0] == 401, "/auth refuses a proof for another token")
            proof = issuer.proof(token, url)["proof"]
            check([apache.ask(token, [proof], "/orders") for _ in range(2)] == [200, 401], "mod_oauth2 takes a proof once too")
            check(apache.ask(token, [], "/orders") == 401, "and none without one")


TESTS = {"makers": makers, "judges": judges, "oauth2": oauth2}


def main():
    choices = harness.arguments(__doc__, TESTS)
    helper = Helper(choices.tools)
    for name in choices.names:
        if name != "oauth2" and not helper.is_there:
            harness.skip(f"{name}: {', '.join(PACKAGES)} are not installed")
        else:
            TESTS[name](program=choices.binary, helper=helper)
    helper.stop()
    print(f"{len(failures)} failed" if failures else "all held")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
