#!/usr/bin/env python3
"""Compares /openapi.json with the running service, with the tools that its readers use.

  1. openapi-spec-validator: the document is valid OpenAPI 3.1;
  2. schemathesis: all of its checks, over generated requests (at least --requests of them, default 5000);
  3. openapi-python-client: a client generated from the document verifies a good token and sees a bad one refused.

The tools come from PyPI: `--tools FOLDER` makes a virtual environment there and installs them. A tool that is not
installed is reported as SKIPPED.
"""

import os
import shutil
import sys

import harness
import live
from callbacks_test import Backend
from harness import check

TOOLS = ["openapi-spec-validator==0.9.0", "schemathesis==4.32.5", "openapi-python-client==0.29.1"]


def with_tool(name, folder, use, *rest):
    """Calls `use` with the tool's path, or names it if it is not installed."""
    found = shutil.which(name, path=f"{folder}/bin:{os.environ['PATH']}")
    if found:
        use(found, folder, *rest)
    else:
        harness.skip(f"{name} is not installed")


def validate(name, _folder, document, scratch):
    run = harness.run([name, scratch.write("openapi.json", document)])
    check(run.returncode == 0, f"openapi-spec-validator: {(run.stdout + run.stderr).strip().splitlines()[-1]}")


CONFIGURATION = """
[checks.positive_data_acceptance]
# A generated app id is none of the configured ones (400 unknown_app); generated queries of gateways ask for
# permissions that a token does not show (403).
expected-statuses = ["2xx", "400", "401", "403"]

[checks.negative_data_rejection]
# A value that is too long for its schema may be too long for the server too.
expected-statuses = ["400", "401", "403", "404", "405", "413", "414", "415", "431", "5xx"]

[[operations]]
include-path-regex = "^/users"
# Only the person of the example has ever logged in (others are 404 graph_unknown_user).
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404"]
"""


def explore(name, _folder, service, token, wanted, scratch):
    before, good, rounds = service.requests(), True, 0
    command = [name, "--config-file", scratch.write("schemathesis.toml", CONFIGURATION), "run",
               f"http://{service.address}/openapi.json", "--checks", "all", "--max-examples", "20", "--workers", "1", "--no-color"]
    # The person's token counts at /auth, the caller's key everywhere else. Parameters after `original` are ignored, and the
    # generator knows no order. Its requests with undeclared methods have `optional` beside a demand, which is 400. AuthRouteTests
    # covers bad demands and other methods.
    parts = [["--header", f"X-Api-Key: {service.key}", "--exclude-path-regex", "^/auth"],
             ["--header", f"Authorization: Bearer {token}", "--include-path-regex", "^/auth",
              "--exclude-checks", "negative_data_rejection,unsupported_method"]]
    while good and rounds <= 60 and (rounds == 0 or service.requests() - before < wanted):
        rounds += 1
        for part in parts:
            run = harness.run([*command, "--seed", rounds, *part], cwd=scratch.path)
            if run.returncode != 0:
                print((run.stdout + run.stderr)[-6000:])
                good = False
    count = service.requests() - before
    check(good and count >= wanted, f"schemathesis: {count} requests in {rounds} rounds")


def generated_client(name, folder, service, document, issuer, scratch):
    scratch.write("openapi.json", document)
    command = [name, "generate", "--path", "openapi.json", "--meta", "none", "--output-path", "limited_login_client"]
    environment = os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}"} if folder else None
    run = harness.run(command, cwd=scratch.path, env=environment)
    if not check(run.returncode == 0 and "WARNING" not in run.stdout.upper(), "a client is generated", run.stdout + run.stderr):
        return
    python = f"{folder}/bin/python" if folder else sys.executable
    arguments = [f"http://{service.address}", service.key, issuer.token(name="Jane Doe"), issuer.expired(), issuer.access_token()]
    run = harness.run([python, scratch.write("use.py", USE), *arguments], cwd=scratch.path)
    check(run.returncode == 0, f"generated client: {(run.stdout + run.stderr).strip()[-1000:]}")


USE = """
import sys
from limited_login_client import AuthenticatedClient
from limited_login_client.api.permissions import list_permissions, revoke_permission, uninstall
from limited_login_client.api.service import get_livez
from limited_login_client.api.tokens import introspect, issue_nonce, revoke, verify
from limited_login_client.models import (
    CallbackEvent, IntrospectRequest, NonceRequest, Problem, RevocationRequest, UninstallRequest, VerifyAccessToken, VerifyByNonce,
)

url, key, good, expired, access = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key)
accepted = verify.sync(client=client, body=VerifyByNonce(id_token=good, nonce="n-1"))
assert accepted.profile.name == "Jane Doe", accepted
assert accepted.authentication_token.expires_at > accepted.authentication_token.issued_at
refused = verify.sync_detailed(client=client, body=VerifyByNonce(id_token=expired, nonce="n-1"))
assert refused.status_code == 401 and isinstance(refused.parsed, Problem), refused
assert refused.parsed.code == "expired", refused.parsed
judged = verify.sync(client=client, body=VerifyAccessToken(access_token=access, permissions=["user_likes"]))
assert judged.access_token.user_id == judged.profile.user_id == "2954873201847263", judged
assert judged.profile.name == "Jane Doe" and judged.missing_permissions == ["user_likes"], judged
issued = issue_nonce.sync(client=client, body=NonceRequest(expires_in=60))
assert len(issued.nonce) == 90 and issued.expires_at - issued.issued_at == 60, issued
assert introspect.sync(client=client, body=IntrospectRequest(token=good)).active is True
assert introspect.sync(client=client, body=IntrospectRequest(token=expired)).active is False
listed = list_permissions.sync(client=client, user_id="2954873201847263", permissions="email,user_friends")
assert "email" in listed.granted and listed.missing == ["user_friends"], listed
assert revoke_permission.sync_detailed(client=client, user_id="2954873201847263", permission="email").status_code == 204
assert "email" not in list_permissions.sync(client=client, user_id="2954873201847263").granted
assert uninstall.sync_detailed(client=client, body=UninstallRequest(id_token=good)).status_code == 204
ended = verify.sync(client=client, body=VerifyByNonce(id_token=good, nonce="n-1"))
assert ended.code == "login_revoked", ended
everywhere = RevocationRequest(user_id="2954873201847263")
assert revoke.sync_detailed(client=client, body=everywhere).status_code == 204
assert get_livez.sync_detailed(client=client).status_code == 200
# A client that is generated today accepts a code, an event and members of a later version.
tomorrow = Problem.from_dict({
    "type": "urn:limited-login:problem:new_code", "title": "New", "status": 401, "detail": "New.", "code": "new_code",
    "request_id": "1", "new_member": {"a": 1},
})
assert tomorrow.code == "new_code", tomorrow
revocation = CallbackEvent.from_dict({
    "type": "login.revoked", "timestamp": "2030-01-01T00:00:00Z", "data": {"app_id": "1", "user_id": "2", "issued_at": 3},
})
assert revocation.data.user_id == "2", revocation
event = CallbackEvent.from_dict({
    "type": "login.new", "timestamp": "2030-01-01T00:00:00Z", "new_member": 1,
    "data": {"app_id": "1", "user_id": "2", "issued_at": 3, "confirmation_code": "4", "new_member": []},
})
assert event.type_ == "login.new", event
members = accepted.to_dict() | {"new_member": True, "missing_permissions": ["new_permission"]}
members["authentication_token"] = members["authentication_token"] | {"tracking": "new", "new_member": 1}
later = type(accepted).from_dict(members)
assert later.missing_permissions == ["new_permission"] and later.authentication_token.tracking == "new", later
print("accepts both kinds of tokens, refuses, issues a nonce, introspects, lists and revokes permissions and logins")
"""


def main():
    chosen = harness.arguments(__doc__, requests=5000)
    tools, program = chosen.tools, chosen.binary
    if tools:
        harness.environment_with(tools, TOOLS)
    with harness.Folder() as folder, live.Issuer(program) as issuer:
        key = folder.write("signing-key.pem", harness.output([program, "signing-key", "new"]))
        with live.Service(program, issuer.jwks_url, graph=issuer, access_tokens="accept", issuer="https://login.example.com",
                          signing_keys_file=key, callbacks_url=Backend().url) as service:
            service.wait_until_ready()
            # This token makes the person of the document's examples known to Graph.
            issuer.token(email="jane@example.com")
            document = harness.request(service.port, "GET", "/openapi.json")[1].decode()
            with_tool("openapi-spec-validator", tools, validate, document, folder)
            with_tool("openapi-python-client", tools, generated_client, service, document, issuer, folder)
            with_tool("schemathesis", tools, explore, service, issuer.token(), chosen.requests, folder)
    return 1 if harness.failures else 0


if __name__ == "__main__":
    sys.exit(main())
