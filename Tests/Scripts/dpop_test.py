#!/usr/bin/env python3
"""Lets /auth judge the DPoP proofs of other implementations, and lets these judge ours; lets modules of Apache ask /introspect.

usage: dpop_test.py [--binary FILE] [--tools FOLDER] [NAME...]     (default: every test)
  maker     proofs made by pydpop (PyPI) are accepted, and changed ones are refused
  judge     pydpop accepts the proofs of `limited-login dpop make` and of the stand-in issuer
  oauth2    mod_oauth2 (Debian: libapache2-mod-oauth2) asks /introspect, and its verdict on each proof is that of /auth
  openidc   mod_auth_openidc (libapache2-mod-auth-openidc) asks it, with each of its ways to show the caller's key
`--tools` makes a virtual environment there with the packages. A test is named and skipped if its programs are not installed. The
exit code is 1 if anything fails.
"""

import contextlib
import http.client
import json
import sys
import time
import urllib.parse

import harness
import live
import proxies
import wsgi_application
from harness import check, failures

PACKAGES = ["pydpop==0.2.1"]


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
import json, sys
import pydpop
key = pydpop.generate_key()
for line in sys.stdin:
    job = json.loads(line)
    request = {"htm": job.get("method"), "htu": job.get("url"), "access_token": job.get("token")}
    if job["do"] == "thumbprint":
        answer = pydpop.jwk_thumbprint(pydpop.public_jwk(key))
    elif job["do"] == "make":
        answer = pydpop.generate_proof(private_key=key, **request)
    else:
        try:
            answer = pydpop.verify_proof(proof=job["proof"], **request)["jwk_thumbprint"]
        except pydpop.DPoPError as error:
            answer = f"refused: {error}"
    print(json.dumps(answer), flush=True)
"""


class Helper(live.Asked):
    """The other implementation, in a process of its own."""

    def ask(self, **job):
        return json.loads(super().ask(json.dumps(job)))


URLS = [
    ("GET", "https://api.example.com/orders"), ("POST", "https://api.example.com/orders?x=1"),
    ("DELETE", "https://api.example.com:8443/orders/7"), ("PATCH", "http://127.0.0.1:8000/a%20b/%D0%B6"),
    ("GET", "https://API.example.com:443/"), ("PUT", "https://[::1]:8443/x"), ("HEAD", "https://api.example.com/a/../b"),
]


def maker(program, helper, **_):
    with live.Issuer(program) as issuer, live.Service(program, issuer.jwks_url, dpop="required_if_bound") as service:
        service.wait_until_ready()
        token = issuer.token(cnf={"jkt": helper.ask(do="thumbprint")})
        for method, url in URLS:
            answer = ask(service.port, token, helper.ask(do="make", method=method, url=url, token=token), method, url)
            check(answer[0] == 200, f"pydpop's proof for {method} {url} is accepted", answer)
        refused = []
        for part in range(3):
            parts = helper.ask(do="make", method="GET", url=URLS[0][1], token=token).split(".")
            parts[part] = ("B" if parts[part][5] == "A" else "A").join([parts[part][:5], parts[part][6:]])
            refused.append(ask(service.port, token, ".".join(parts)))
        other = issuer.bound()
        refused.append(ask(service.port, other, helper.ask(do="make", method="GET", url=URLS[0][1], token=other)))
        refused.append(ask(service.port, token, None, scheme="Bearer"))
        check({answer[:2] for answer in refused} == {(401, "invalid_dpop_proof")},
              "a changed part, a token of another device and no proof are refused", refused)


def judge(program, helper, **_):
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

    def ask(self, token, proofs=(), path="/orders", scheme="DPoP"):
        """The status that a client gets."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.ANSWER_SECONDS)) as connection:
            connection.putrequest("GET", path)
            if token:
                connection.putheader("Authorization", f"{scheme} {token}")
            for proof in proofs:
                connection.putheader("DPoP", proof)
            connection.endheaders()
            return connection.getresponse().status

    def stop(self):
        super().stop()
        self.folder.__exit__()


def oauth2(program, **_):
    if not proxies.has_module("oauth2"):
        return harness.skip("oauth2: libapache2-mod-oauth2 is not installed")
    application = wsgi_application.start()
    with live.Issuer(program) as issuer, live.Service(program, issuer.jwks_url) as service:
        service.wait_until_ready()
        # mod_oauth2 asks /introspect about the token, and judges the proof itself.
        options = f"introspect.auth=client_secret_basic&client_id=backend&client_secret={service.key}&type=dpop"
        with Apache("oauth2", [
            f"OAuth2TokenVerify introspect http://{service.address}/introspect {options}",
            "OAuth2AcceptTokenIn header type=dpop", *proxies.guard("oauth2"),
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
                theirs = apache.ask(shown, [proof])
                ours = ask(service.port, shown, proof, "GET", url)[0]
                check(theirs == ours == expected, f"mod_oauth2 and /auth agree on {title}: {expected}", (theirs, ours))
            # liboauth2 1.4.5 does not read `ath`, so it accepts a proof for another token of the same key.
            proof = issuer.proof(issuer.bound(), url)["proof"]
            check(ask(service.port, token, proof, "GET", url)[0] == 401, "/auth refuses a proof for another token")
            proof = issuer.proof(token, url)["proof"]
            check([apache.ask(token, [proof]) for _ in range(2)] == [200, 401], "mod_oauth2 takes a proof once too")
            check(apache.ask(token) == 401, "and none without one")


def guarded(service, folder, application, method, key):
    """mod_auth_openidc in front of the application, which shows this key of the caller `backend` by this method."""
    return Apache("auth_openidc", [
        "OIDCCryptoPassphrase of-no-use-without-a-login", "OIDCOAuthRemoteUserClaim sub", f"OIDCCABundlePath {folder.path}/ca.pem",
        f"OIDCOAuthIntrospectionEndpoint https://localhost:{service.port}/introspect",
        f"OIDCOAuthIntrospectionEndpointAuth {method}", "OIDCOAuthClientID backend", f"OIDCOAuthClientSecret {key}",
        # Ask anew for every request.
        f"OIDCOAuthIntrospectionClientAuthBearerToken {key}", "OIDCOAuthTokenIntrospectionInterval -1", *proxies.guard("oauth20"),
    ], application)


def openidc(program, **_):
    if not proxies.has_module("auth_openidc"):
        return harness.skip("openidc: libapache2-mod-auth-openidc is not installed")
    application = wsgi_application.start()
    # The module accepts only https URLs.
    with live.Issuer(program) as issuer, harness.Folder() as folder, \
            live.Service(program, issuer.jwks_url, **harness.Authority(folder).settings()) as service:
        service.wait_until_ready()
        # The third way works only together with an id and a secret.
        for method in ["client_secret_basic", "client_secret_post", "bearer_access_token"]:
            with guarded(service, folder, application, method, service.key) as apache:
                # About the longest token that fits into a field of httpd.
                long = issuer.token(user_friends=[str(10**16 + number) for number in range(200)])
                for title, token, expected in [
                    ("a good token", issuer.token(), 200), ("a token with 200 friends", long, 200),
                    ("an expired token", issuer.expired(), 401), ("another app's token", issuer.foreign(), 401),
                    ("a made-up token", "made-up", 401), ("no token", None, 401),
                ]:
                    status = apache.ask(token, scheme="Bearer")
                    check(status == expected, f"{method}: {title} is {expected}", status)
            # With a wrong key of its own the module answers 401, as for every failure. Its log names the cause.
            for title, way, key in [("a wrong key", method, "another-key"), ("no key", "none", service.key)]:
                with guarded(service, folder, application, way, key) as apache:
                    status = apache.ask(issuer.token(), scheme="Bearer")
                    is_told = apache.wait_for("invalid_client") and apache.wait_for("error_description")
                    check(status == 401 and is_told, f"{method}: with {title} nothing passes, and the log says why", status)


TESTS = {"maker": maker, "judge": judge, "oauth2": oauth2, "openidc": openidc}


def main():
    choices = harness.arguments(__doc__, TESTS)
    python = harness.environment_with(choices.tools, PACKAGES) if choices.tools else sys.executable
    is_there = harness.run([python, "-W", "ignore", "-c", "import pydpop"]).returncode == 0
    helper = Helper([python, "-W", "ignore", "-c", HELPER]) if is_there else None
    for name in choices.names:
        if name in ("maker", "judge") and not helper:
            harness.skip(f"{name}: pydpop is not installed")
        else:
            TESTS[name](program=choices.binary, helper=helper)
    if helper:
        helper.process.kill()
    print(f"{len(failures)} failed" if failures else "all held")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
