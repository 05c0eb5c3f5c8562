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

A gateway that is not installed is reported as SKIPPED. `--tools FOLDER` makes a virtual environment there with Envoy and Traefik.
"""

import contextlib
import json
import os
import re
import signal
import socket
import sys
import time
import urllib.parse

import harness
import live
import wsgi_application
from gateway_parts import FORGED, TOOLS, Gateway, Tally, gateways, identity, is_jane, judge, with_demand, with_query
from harness import free_port


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


def judge_further(tally, gateway, issuer):
    plain = issuer.token()
    answer = gateway.ask(plain, fields=FORGED)
    tally.check("a forged address of a token that has none", answer.status == 200 and "x-auth-email" not in answer.identity, answer)
    for method in ["POST", "PUT", "DELETE"]:
        arguments, path = ["-X", method, "--data", "hello=world"], "/a/b?app_id=5&permissions=none"
        answer = gateway.ask(plain, path=path, arguments=arguments)
        asked = {name: answer.application.get(name) for name in ("body", "method", "path")}
        tally.check(f"{method} with a body", asked == {"body": "hello=world", "method": method, "path": path}, answer)
        answer = gateway.ask(issuer.expired(), arguments=arguments)
        tally.check(f"{method} with a body and an expired token", answer.status == 401, answer)
    # Browsers send such a query unchanged, although RFC 3986 does not allow these signs.
    path = "/orders?filter[name]=a|b&part=100%"
    answer = gateway.ask(plain, path=path, arguments=["--globoff"])
    tally.check("a query with brackets, a bar and a lone percent sign", answer.application.get("path") == path, answer)
    lines = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", f"Authorization: Bearer {plain}", "Connection: close"]
    # Every gateway keeps an idle connection open for longer than three seconds; a slow machine may need another try.
    for _ in range(5):
        answer, is_closed = until_closed(gateway, [*lines, "", ""], 3)
        if is_closed:
            break
    tally.check("Connection: close", b" 200 " in answer[:15] and is_closed, answer)
    for two in ("x", plain), (plain, "x"), (plain, plain):
        answer = gateway.ask(None, fields=[f"Authorization: Bearer {token}" for token in two])
        tally.check(f"two tokens, {two.index(plain)}", answer.status in (400, 401), answer)


def tunnel(gateway, target, token):
    """The answer to a CONNECT with a good token, and to a forged request behind it."""
    told = b""
    # A gateway that refuses may have closed the connection already.
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", gateway.port), harness.ANSWER_SECONDS) as client:
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", f"Authorization: Bearer {token}", "", ""]
        client.sendall("\r\n".join(lines).encode())
        told = client.recv(65536)
        client.sendall(f"GET / HTTP/1.1\r\nHost: {target}\r\nX-Auth-Subject: forged\r\n\r\n".encode())
        client.shutdown(socket.SHUT_WR)
        while data := client.recv(65536):
            told += data
    return told


def judge_forgeries(tally, gateway, issuer):
    """The application must get all fields of the token's person, and no Connection field that removes one of them."""
    jane = issuer.token(email="jane@example.com")
    for title, forged in forgeries():
        answer = gateway.ask(jane, fields=forged)
        removes = "x-auth-" in answer.seen.get("CONNECTION", "").lower()
        tally.check(title, is_jane(answer.identity) and not removes, answer)
    if tally.name in ("envoy", "haproxy"):
        forged = [f"{field.replace('-', '_', 1)}: forged" for field in ["X-Auth-Subject", "X-Auth-Email"]]
        answer = gateway.ask(jane, fields=forged, arguments=["--http2-prior-knowledge"])
        tally.check("forged fields over HTTP/2", is_jane(answer.identity), answer)
    for upgrade in ["h2c", "websocket, h2c"]:
        # After this upgrade the application would get further requests without a question to the service.
        fields = ["Connection: Upgrade, HTTP2-Settings", f"Upgrade: {upgrade}", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"]
        answer = gateway.ask(jane, fields=fields)
        # HAProxy refuses a WebSocket without a key, and Envoy takes only the upgrades that its file names.
        expected = {"haproxy": 400, "envoy": 403}.get(tally.name, 200) if "websocket" in upgrade else 200
        tally.check(f"Upgrade: {upgrade}", answer.status == expected and "h2c" not in answer.seen.get("UPGRADE", ""), answer)
    # Traefik passes these on, as the README says.
    for upgrade in ["TLS/1.0", "foo", "websocket, foo"] if tally.name != "traefik" else []:
        answer = gateway.ask(jane, fields=["Connection: Upgrade", f"Upgrade: {upgrade}"])
        tally.check(f"Upgrade: {upgrade}", not answer.seen.get("UPGRADE"), answer)
    for target in [f"127.0.0.1:{gateway.port}", gateway.url()]:
        told = tunnel(gateway, target, jane)
        tally.check(f"CONNECT {target}", told and b"forged" not in told, told)
    answer = gateway.ask(jane, fields=["X-Auth-Subject : forged"])
    tally.check("a space before the colon", answer.status == 400, answer)


def judge_proofs(tally, gateway, issuer):
    """DPoP: the service must judge the proof by the client's own request."""
    jane = issuer.bound(email="jane@example.com")

    def ask(title, expected, *fields, path="/orders?x=1", method="GET", arguments=(), proof=None, **request):
        if proof is None:
            proof = issuer.proof(jane, **({"url": gateway.url(path), "method": method} | request))["proof"]
        answer = gateway.ask(jane, path, [f"DPoP: {proof}", *fields], ["-X", method, *arguments], "DPoP")
        told = {field: value for field, value in answer.seen.items() if field.startswith("X_FORWARDED_") and "forged" in value}
        holds = is_jane(answer.identity) and not told if expected == 200 else \
            answer.challenge == 'dpop error="invalid_dpop_proof", algs="es256"'
        tally.check(title, answer.status == expected and holds, answer)
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
        fields = [f"{field}: {value}" for field, value in zip(names, ["POST", "https", "forged.example", "/forged"])]
        ask(f"forged {names[0]}", 200, *fields)
        ask(f"a proof for what {names[0]} says", 401, *fields, url="https://forged.example/forged")
        ask(f"a proof for what {names[2]} says", 401, *fields, url="http://forged.example/orders")
        ask(f"a proof for what {names[3]} says", 401, *fields, url=gateway.url("/forged"))
    if gateway.name in ("envoy", "haproxy"):
        ask("over HTTP/2", 200, "X-Forwarded-Host: forged.example", arguments=["--http2-prior-knowledge"])
    answer = gateway.ask(jane, scheme="DPoP")
    tally.check("no proof", answer.status == 401 and "invalid_dpop_proof" in answer.challenge, answer)
    answer = gateway.ask(issuer.expired(), fields=[f"DPoP: {used}"], scheme="DPoP")
    tally.check("an expired token", answer.challenge.startswith('dpop error="invalid_token"'), answer)
    answer = gateway.ask(jane)
    tally.check("as a Bearer", is_jane(answer.identity), answer)
    answer = gateway.ask(jane, fields=[f"DPoP: {used}"])
    tally.check("as a Bearer beside a proof", answer.status == 401 and "invalid_dpop_proof" in answer.challenge, answer)


def judge_demand(tally, gateway, issuer):
    """Checks the commented changes for a demand and another field. A name in Cyrillic arrives as percent-encoded UTF-8."""
    name_of_hers = "Жанна д’Арк 100%"
    answer = gateway.ask(issuer.token(name=name_of_hers, user_birthday="01/02/1990"), fields=["X-Auth-Name: 1"])
    wanted = {"x-auth-subject": live.SUBJECT, "x-auth-name": urllib.parse.quote(name_of_hers)}
    tally.check("a name in Cyrillic", answer.identity == wanted, answer)
    answer = gateway.ask(issuer.token(user_birthday="01/02/1990"), fields=["X-Auth-Name: 1", "x_auth_name: 2"])
    tally.check("a forged name of a token that has none", answer.identity == {"x-auth-subject": live.SUBJECT}, answer)
    for title, token, expected in [("not shown", issuer.token(), 403), ("no token", None, 401)]:
        answer = gateway.ask(token, path="/orders?permissions=email&original=x")
        tally.check(f"a demand, {title}", answer.status == expected, answer)


def judge_optional(tally, gateway, issuer):
    """With ?optional=true a request without a token passes, and the application sees no person in it."""
    answer = gateway.ask(None, fields=FORGED)
    tally.check("optional, no token", answer.status == 200 and not answer.identity, answer)
    answer = gateway.ask(issuer.token(email="jane@example.com"), fields=FORGED)
    tally.check("optional, a good token", is_jane(answer.identity), answer)
    tally.check("optional, an expired token", gateway.ask(issuer.expired()).status == 401)


def judge_limits(tally, gateway, issuer, service):
    """Long tokens pass, and a service that does not answer is an outage of at most ten seconds."""
    for size in 8_000, 16_000, 31_000:
        token = issuer.token(user_friends=[f"{number:017}" for number in range((size - 900) * 3 // 80)])
        answer = gateway.ask(token)
        tally.check(f"a token of {len(token)} bytes", answer.status == 200, answer)
    service.process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    answer = gateway.ask(issuer.token())
    took = time.monotonic() - began
    service.process.send_signal(signal.SIGCONT)
    tally.check("a service that stands still", answer.status == 503 and answer.fields.get("retry-after") and took < 10, (took, answer))


def judge_trailers(tally, gateway, issuer):
    """Sends a chunked body with forged fields in its trailer to an application that takes a trailer for a header."""
    lines = [
        "POST /orders HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", "Transfer-Encoding: chunked", "Connection: close",
        f"Authorization: Bearer {issuer.token(email='jane@example.com')}", "Trailer: X-Auth-Subject, X_Auth_Email",
        "TE: trailers", "", "5", "hello", "0", "X-Auth-Subject: forged", "X_Auth_Email: forged", "X-Other: kept", "", "",
    ]
    answer, _ = until_closed(gateway, lines, harness.ANSWER_SECONDS)
    found = re.search(rb"\{.*\}", answer)
    application = json.loads(found[0]) if found else {}
    seen = identity(application.get("fields", {}))
    # HAProxy passes a trailer on as a trailer, so the forged values follow the genuine ones here.
    seen = {field: value.removesuffix(",forged") if tally.name == "haproxy" else value for field, value in seen.items()}
    tally.check("forged fields in a trailer", is_jane(seen) and application["body"] == "hello", answer)


def judge_upgrade(tally, gateway, issuer):
    """A WebSocket passes only with a good token, and the application gets the token's subject."""
    def handshake(token, *fields):
        lines = [
            "GET /socket HTTP/1.1", f"Host: 127.0.0.1:{gateway.port}", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", f"Authorization: Bearer {token}", *fields, "", "",
        ]
        with socket.create_connection(("127.0.0.1", gateway.port), harness.ANSWER_SECONDS) as client:
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
        tally.check(title, answer.startswith("HTTP/1.1 101 ") and answer.endswith(f"subject={live.SUBJECT}\nping"), answer)
    answer = handshake(issuer.expired(), "Connection: Upgrade")
    tally.check("Upgrade with an expired token", answer.startswith("HTTP/1.1 401 "), answer)


def drive(name, command, issuer, services, application):
    """Tests one gateway; returns its tally."""
    good, down, named, program = services
    cases, further, forged, proofs = (Tally(name) for _ in range(4))
    with Gateway(name, command, good.address, application) as gateway:
        judge(cases, gateway, issuer)
        judge_further(further, gateway, issuer)
        judge_forgeries(forged, gateway, issuer)
        judge_trailers(further, gateway, issuer)
        judge_proofs(proofs, gateway, issuer)
        judge_upgrade(further, gateway, issuer)
        judge_limits(further, gateway, issuer, good)
    with Gateway(name, command, good.address, application, change=with_query) as gateway:
        judge_optional(further, gateway, issuer)
    with Gateway(name, command, down.address, application) as gateway:
        answer = gateway.ask(issuer.token())
        cases.check("outage", answer.status == 503, answer)
    with Gateway(name, command, named.address, application, change=with_demand) as gateway:
        judge_demand(further, gateway, issuer)
    told = f"{name}: {cases} cases, {forged} forgeries, {proofs} with DPoP, {further} further checks"
    tallies = [cases, further, forged, proofs]
    if name in ("nginx", "caddy", "envoy"):
        # The service on a Unix socket that every user of this machine may write to.
        tallies.append(Tally(f"{name} by a Unix socket"))
        with harness.Folder() as folder, live.Service(program, issuer.jwks_url, listen=f"unix:{folder.path}/http.sock",
                                                   listen_mode="0666") as service:
            service.wait_until_ready()
            with Gateway(name, command, service.address, application) as gateway:
                judge(tallies[-1], gateway, issuer)
        told += f", by a Unix socket {tallies[-1]}"
    print(told, flush=True)
    return sum(tally.passed for tally in tallies), sum(tally.failed for tally in tallies)


def main():
    chosen = harness.arguments(__doc__, list(gateways()))
    if chosen.tools:
        harness.environment_with(chosen.tools, TOOLS)
        os.environ["PATH"] = f"{chosen.tools}/bin:{os.environ['PATH']}"
    application = f"127.0.0.1:{wsgi_application.start().server_port}"
    program, counts = chosen.binary, [(0, 0)]
    with live.Issuer(program) as issuer, live.Service(program, issuer.jwks_url) as service, \
            live.Service(program, f"http://127.0.0.1:{free_port()}/") as down, \
            live.Service(program, issuer.jwks_url, auth_headers="X-Auth-Subject=sub,X-Auth-Name=name") as named:
        service.wait_until_ready()
        named.wait_until_ready()
        for name, command in gateways().items():
            if name in chosen.names and command is None:
                harness.skip(f"{name} is not installed")
            elif name in chosen.names:
                counts.append(drive(name, command, issuer, (service, down, named, program), application))
    passed, failed = (sum(count) for count in zip(*counts))
    print(f"gateways: {passed} of {passed + failed} checks")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
