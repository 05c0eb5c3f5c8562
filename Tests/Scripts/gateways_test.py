#!/usr/bin/env python3
"""Installs each gateway of config/gateways/ by its block of the README, starts it as its distribution does, in front of the real
service and a WSGI application, and drives it with curl.

The script makes a mount and a network namespace. There it may change /etc, /var and /run, and the ports of the files are free.
It runs the block unchanged, and the start command of the distribution's unit from `/`, as the unit's user. A script replaces
`systemctl`, since no service manager runs in a namespace. The gateway starts again with each change that a comment describes.

  1. A good token passes, with its claims in the X-Auth- fields. The client's own X-Auth- fields never reach the application,
     with any spelling, and with any content of Connection, of a trailer or behind a CONNECT.
  2. An expired token, a foreign one and none at all are 401 with a challenge.
  3. Without the issuer's keys the answer is 503, never 401.
  4. A token with a DPoP proof passes if the proof is for the client's request, whatever its X-Forwarded- fields say.
  5. A WebSocket passes with a token in the field, a cookie, a subprotocol or the query; a CORS preflight without one.

usage: gateways_test.py [--binary FILE] [--tools FOLDER] [NAME...]

It needs root and the packages of the gateways; a gateway that is not installed is reported as SKIPPED. FOLDER holds a virtual
environment with Envoy and Traefik (default: .build/tools/gateways).
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import harness
import live
import wsgi_application
from gateway_parts import (
    COMMANDS, HERE, PORT, PROGRAMS, TOOLS, UNITS, USERS, Gateway, Tally, blocks, change, identity, is_jane, writable,
)

FORGED = ["X-Auth-Subject: 1", "X-Auth-Email: root@example.com", "X-Auth-Audience: 2", "X-Auth-Expires: 3"]
SOCKET = "/run/limited-login/http.sock"


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


def exchanged(lines, seconds=harness.ANSWER_SECONDS):
    """The received bytes, and true if the gateway closed the connection before it was silent for `seconds`."""
    answer = b""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORT), seconds) as client:
        client.sendall("\r\n".join(lines).encode())
        while data := client.recv(65536):
            answer += data
        return answer, True
    return answer, False


def judge(gateway, issuer):
    """Four of a gateway's five cases; the fifth is the outage."""
    gateway.gives("good", 200, issuer.token(email="jane@example.com"), lambda answer: answer.is_jane, fields=FORGED)
    for case, token in [("expired", issuer.expired()), ("foreign", issuer.foreign()), ("missing", None)]:
        gateway.gives(case, 401, token, lambda answer: answer.challenge.startswith("bearer")
                      and ("invalid_token" in answer.challenge) == (token is not None), fields=FORGED)


def judge_requests(gateway, issuer):
    """Methods, targets, bodies and hosts reach the application as they are, and codes the client."""
    plain = issuer.token()
    gateway.gives("a forged address of a token that has none", 200, plain, lambda answer: "x-auth-email" not in answer.identity,
                  fields=FORGED)
    for method in ["POST", "PUT", "DELETE"]:
        arguments, path = ["-X", method, "--data", "hello=world"], "/a/b?app_id=5&permissions=none"
        wanted = {"body": "hello=world", "method": method, "path": path}
        gateway.gives(f"{method} with a body", 200, plain, lambda answer: answer.application.items() >= wanted.items(), path=path,
                      arguments=arguments)
        gateway.gives(f"{method} with a body and an expired token", 401, issuer.expired(), arguments=arguments)
    # Browsers send such a query unchanged, although RFC 3986 does not allow these signs.
    for path in ["/orders?filter[name]=a|b&part=100%", "/orders?id=5"]:
        gateway.gives(path, 200, plain, lambda answer: answer.application["path"] == path, path=path, arguments=["--globoff"])
    host = ["Host: api.example.com"]
    gateway.gives("the client's Host", 200, plain, lambda answer: answer.seen.get("HOST") == "api.example.com", fields=host)
    gateway.gives("another Host without a token", 401, None, fields=host)
    for code, token in [("expired", issuer.expired()), ("invalid_signature", plain[:-8] + "AAAAAAAA")]:
        gateway.gives(code, 401, token, lambda answer: f'code="{code}"' in answer.challenge or f'"code":"{code}"' in answer.body)
    lines = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{PORT}", f"Authorization: Bearer {plain}", "Connection: close"]
    # Every gateway keeps an idle connection open for longer than three seconds; a slow machine may need another try.
    for _ in range(5):
        answer, is_closed = exchanged([*lines, "", ""], 3)
        if is_closed:
            break
    gateway.tally.check("Connection: close", b" 200 " in answer[:15] and is_closed, answer)
    for two in ("x", plain), (plain, "x"), (plain, plain):
        answer = gateway.ask(None, fields=[f"Authorization: Bearer {token}" for token in two])
        gateway.tally.check(f"two tokens, {two.index(plain)}", answer.status in (400, 401), answer)


def judge_preflight(gateway):
    fields, options = ["Origin: https://app.example.com", "Access-Control-Request-Method: PUT"], ["-X", "OPTIONS"]
    gateway.gives("preflight", 200, None, lambda answer: answer.application["method"] == "OPTIONS" and not answer.identity,
                  fields=[*fields, *FORGED, "X_Auth_Subject: 1"], arguments=options)
    for lone in fields:
        gateway.gives(f"OPTIONS with {lone} alone", 401, None, fields=[lone], arguments=options)
    gateway.gives("GET with a preflight's fields", 401, None, fields=fields)


def judge_forgeries(gateway, issuer):
    """The application must get all fields of the token's person, and no Connection field that removes one of them."""
    jane = issuer.token(email="jane@example.com")
    for title, forged in forgeries():
        gateway.gives(title, 200, jane, lambda answer: answer.is_jane
                      and "x-auth-" not in answer.seen.get("CONNECTION", "").lower(), fields=forged)
    if gateway.name in ("envoy", "haproxy"):
        forged = [f"{field.replace('-', '_', 1)}: forged" for field in ["X-Auth-Subject", "X-Auth-Email"]]
        gateway.gives("forged fields over HTTP/2", 200, jane, lambda answer: answer.is_jane, fields=forged,
                      arguments=["--http2-prior-knowledge"])
    for upgrade in ["h2c", "websocket, h2c"]:
        # After this upgrade the application would get further requests without a question to the service.
        fields = ["Connection: Upgrade, HTTP2-Settings", f"Upgrade: {upgrade}", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"]
        # HAProxy refuses a WebSocket without a key, and Envoy takes only the upgrades that its file names.
        expected = {"haproxy": 400, "envoy": 403}.get(gateway.name, 200) if "websocket" in upgrade else 200
        gateway.gives(f"Upgrade: {upgrade}", expected, jane, lambda answer: "h2c" not in answer.seen.get("UPGRADE", ""),
                      fields=fields)
    # Traefik passes these on, as the README says.
    for upgrade in ["TLS/1.0", "foo", "websocket, foo"] if gateway.name != "traefik" else []:
        answer = gateway.ask(jane, fields=["Connection: Upgrade", f"Upgrade: {upgrade}"])
        gateway.tally.check(f"Upgrade: {upgrade}", not answer.seen.get("UPGRADE"), answer)
    for target in [f"127.0.0.1:{PORT}", gateway.url()]:
        # A good token, and a forged request behind it.
        told, _ = exchanged([f"CONNECT {target} HTTP/1.1", f"Host: 127.0.0.1:{PORT}", f"Authorization: Bearer {jane}", "",
                             "GET / HTTP/1.1", f"Host: {target}", "X-Auth-Subject: forged", "Connection: close", "", ""], 10)
        gateway.tally.check(f"CONNECT {target}", told and b"forged" not in told, told)
    gateway.gives("a space before the colon", 400, jane, fields=["X-Auth-Subject : forged"])


def judge_proofs(gateway, issuer):
    """DPoP: the service must judge the proof by the client's own request."""
    jane = issuer.bound(email="jane@example.com")

    def ask(title, expected, *fields, path="/orders?x=1", method="GET", arguments=(), proof=None, **request):
        if proof is None:
            proof = issuer.proof(jane, **({"url": gateway.url(path), "method": method} | request))["proof"]
        answer = gateway.ask(jane, path, [f"DPoP: {proof}", *fields], ["-X", method, *arguments], "DPoP")
        told = {field: value for field, value in answer.seen.items() if field.startswith("X_FORWARDED_") and "forged" in value}
        holds = answer.is_jane and not told if expected == 200 else \
            answer.challenge == 'dpop error="invalid_dpop_proof", algs="es256"'
        gateway.tally.check(title, answer.status == expected and holds, answer)
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
    gateway.gives("no proof", 401, jane, lambda answer: "invalid_dpop_proof" in answer.challenge, scheme="DPoP")
    gateway.gives("an expired token and its proof", 401, issuer.expired(),
                  lambda answer: answer.challenge.startswith('dpop error="invalid_token"'), fields=[f"DPoP: {used}"], scheme="DPoP")
    gateway.gives("as a Bearer", 200, jane, lambda answer: answer.is_jane)
    gateway.gives("as a Bearer beside a proof", 401, jane, lambda answer: "invalid_dpop_proof" in answer.challenge,
                  fields=[f"DPoP: {used}"])


def judge_demand(gateway, issuer):
    """Checks the commented changes for a demand and another field. A name in Cyrillic arrives as percent-encoded UTF-8."""
    name, birthday, subject = "Жанна д’Арк 100%", "01/02/1990", {"x-auth-subject": live.SUBJECT}
    wanted = subject | {"x-auth-name": urllib.parse.quote(name)}
    gateway.gives("a name in Cyrillic", 200, issuer.token(name=name, user_birthday=birthday),
                  lambda answer: answer.identity == wanted, fields=["X-Auth-Name: 1"])
    gateway.gives("a forged name of a token that has none", 200, issuer.token(user_birthday=birthday),
                  lambda answer: answer.identity == subject, fields=["X-Auth-Name: 1", "x_auth_name: 2"])
    for title, token, expected in [("not shown", issuer.token(), 403), ("no token", None, 401)]:
        gateway.gives(f"a demand, {title}", expected, token, path="/orders?permissions=email&original=x")


def judge_optional(gateway, issuer):
    """With ?optional=true a request without a token passes, and the application sees no person in it."""
    gateway.gives("optional, no token", 200, None, lambda answer: not answer.identity, fields=FORGED)
    jane = issuer.token(email="jane@example.com")
    gateway.gives("optional, a good token", 200, jane, lambda answer: answer.is_jane, fields=FORGED)
    gateway.gives("optional, an expired token", 401, issuer.expired())


def judge_cors(gateway, issuer):
    origin = "https://app.example.com"
    for title, token in [("no token", None), ("an expired token", issuer.expired())]:
        gateway.gives(f"a page may read the answer to {title}", 401, token,
                      lambda answer: answer.fields.get("access-control-allow-origin") == origin, fields=[f"Origin: {origin}"])
    gateway.gives("a good token of a page", 200, issuer.token(), fields=[f"Origin: {origin}"])


def judge_limits(gateway, issuer, service):
    """Long tokens pass, and a service that does not answer is an outage of at most ten seconds."""
    for size in 8_000, 16_000, 31_000:
        token = issuer.token(user_friends=[f"{number:017}" for number in range((size - 900) * 3 // 80)])
        gateway.gives(f"a token of {len(token)} bytes", 200, token)
    service.process.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    gateway.gives("a service that stands still", 503, issuer.token(),
                  lambda answer: answer.fields.get("retry-after") and time.monotonic() - began < 10)
    service.process.send_signal(signal.SIGCONT)


def judge_trailers(gateway, issuer):
    """Sends a chunked body with forged fields in its trailer to an application that takes a trailer for a header."""
    lines = [
        "POST /orders HTTP/1.1", f"Host: 127.0.0.1:{PORT}", "Transfer-Encoding: chunked", "Connection: close",
        f"Authorization: Bearer {issuer.token(email='jane@example.com')}", "Trailer: X-Auth-Subject, X_Auth_Email",
        "TE: trailers", "", "5", "hello", "0", "X-Auth-Subject: forged", "X_Auth_Email: forged", "X-Other: kept", "", "",
    ]
    answer, _ = exchanged(lines)
    found = re.search(rb"\{.*\}", answer)
    application = json.loads(found[0]) if found else {}
    # HAProxy passes a trailer on as a trailer, so the forged values follow the genuine ones here.
    seen = {field: value.removesuffix(",forged") if gateway.name == "haproxy" else value
            for field, value in identity(application.get("fields", {})).items()}
    gateway.tally.check("forged fields in a trailer", is_jane(seen) and application["body"] == "hello", answer)


def handshake(*fields, path="/socket"):
    """The answer to the handshake of a WebSocket; after a good one the application's line and the echo of a ping."""
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{PORT}", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *fields, "", ""]
    with socket.create_connection(("127.0.0.1", PORT), harness.ANSWER_SECONDS) as client:
        client.sendall("\r\n".join(lines).encode())
        received = b""
        while not re.search(rb"\r\n\r\nsubject=.*\n", received):
            data = client.recv(4096)
            received += data
            if not data or not received.startswith(b"HTTP/1.1 101 "[:len(received)]):
                return received.decode()
        client.sendall(b"ping")
        return (received + client.recv(4)).decode()


def judge_socket(gateway, issuer, place):
    """A WebSocket passes only with a good token at its place, and the application gets the token's subject."""
    def talk(title, token, passes, *fields, upgrade="Connection: Upgrade"):
        at = {"field": {"fields": [f"Authorization: Bearer {token}"]},
              "cookie": {"fields": [f"Cookie: a=b; id_token={token}; c=d"]},
              "subprotocol": {"fields": [f"Sec-WebSocket-Protocol: bearer, {token}"]},
              "query": {"fields": [], "path": f"/socket?x=1&id_token={token}"}}[place]
        answer = handshake(upgrade, *at.pop("fields"), *fields, "X-Auth-Subject: forged", **at)
        holds = answer.startswith("HTTP/1.1 101 ") and answer.endswith(f"subject={live.SUBJECT}\nping") if passes else \
            answer.startswith("HTTP/1.1 401 ")
        gateway.tally.check(f"a WebSocket with {title} in the {place}", holds, answer)

    talk("the token", issuer.token(), True)
    talk("an expired token", issuer.expired(), False)
    if place == "field":
        talk("Upgrade among others, and a token", issuer.token(), True, "X_Auth_Subject: forged",
             upgrade="Connection: keep-alive, Upgrade")
    else:
        talk("no token", "", False)
        talk("a Bearer token before another", issuer.expired(), True, f"Authorization: Bearer {issuer.token()}")


def judge_all(gateway, issuer, service):
    judge(gateway, issuer)
    judge_requests(gateway, issuer)
    judge_preflight(gateway)
    judge_forgeries(gateway, issuer)
    judge_trailers(gateway, issuer)
    judge_proofs(gateway, issuer)
    judge_socket(gateway, issuer, "field")
    judge_limits(gateway, issuer, service)
    if gateway.name in USERS:
        gateway.tally.check(f"serves as {USERS[gateway.name]}", gateway.users() == {USERS[gateway.name]}, gateway.users())


def drive(tally, name, block, program, issuer):
    """Installs the gateway for each change of its files, and starts it with a service in front of the application."""
    def run(judge, what=None, jwks_url=issuer.jwks_url, **settings):
        done = harness.run(["bash", "-euc", block], cwd=HERE)
        tally.check("the Install block", done.returncode == 0, done.stdout + done.stderr)
        if what:
            change(name, what)
        with live.Service(program, jwks_url, **{"listen": "127.0.0.1:8080"} | settings) as service:
            if jwks_url == issuer.jwks_url:
                service.wait_until_ready()
            with Gateway(name, tally) as gateway:
                judge(gateway, service)

    run(lambda gateway, service: judge_all(gateway, issuer, service))
    if name in UNITS:
        asked = pathlib.Path("/run/systemctl.log").read_text()
        tally.check("the block reloads", UNITS[name] in asked, asked)
    run(lambda gateway, _: judge_optional(gateway, issuer), "optional")
    run(lambda gateway, _: judge_demand(gateway, issuer), "demand", auth_headers="X-Auth-Subject=sub,X-Auth-Name=name")
    run(lambda gateway, _: judge_cors(gateway, issuer), "cors")
    run(lambda gateway, _: gateway.gives("outage", 503, issuer.token()), jwks_url="http://127.0.0.1:9/")
    if name in ("nginx", "caddy", "envoy"):
        # Every user of this machine may write to the socket.
        run(lambda gateway, _: judge(gateway, issuer), "socket", listen=f"unix:{SOCKET}", listen_mode="0666")
    for place in ["cookie", "subprotocol", "query"] if name != "traefik" else []:
        run(lambda gateway, _: judge_socket(gateway, issuer, place), place)


def inside(program, names):
    """Runs the whole test in the namespaces."""
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="gateways-"))
    harness.output(["mount", "-t", "tmpfs", "tmpfs", scratch])
    for folder in ["/etc", "/var"]:
        writable(pathlib.Path(folder), scratch)
    harness.output(["mount", "-t", "tmpfs", "tmpfs", "/run"])
    for folder in ["haproxy", "lock", "apache2", pathlib.Path(SOCKET).parent]:
        ("/run" / pathlib.Path(folder)).mkdir()
    harness.output(["ip", "link", "set", "lo", "up"])
    (scratch / "systemctl").write_text('#!/bin/sh\necho "$@" >>/run/systemctl.log\n')
    (scratch / "systemctl").chmod(0o755)
    os.environ["PATH"] = f"{scratch}:{os.environ['PATH']}"
    wsgi_application.start(3000)
    tallies = []
    with live.Issuer(program) as issuer:
        for name, block in blocks().items():
            if name in names and harness.installed(PROGRAMS.get(name, name)):
                tallies.append(Tally(name))
                try:
                    drive(tallies[-1], name, block, program, issuer)
                except (RuntimeError, OSError) as error:
                    tallies[-1].check("", False, error)
                print(f"{name}: {tallies[-1]} checks", flush=True)
    return 1 if any(tally.failed for tally in tallies) else 0


def main():
    chosen = harness.arguments(__doc__, [*UNITS, *COMMANDS], inside=False)
    if chosen.inside:
        return inside(chosen.binary, chosen.names)
    if missing := {folder.name for folder in HERE.iterdir() if folder.is_dir()} - blocks().keys():
        sys.exit(f"no Install block for {missing}")
    if os.geteuid() != 0:
        harness.skip("installing gateways needs root")
        return 0
    tools = chosen.tools or harness.ROOT / ".build/tools/gateways"
    harness.environment_with(tools, TOOLS)
    environment = os.environ | {"PATH": f"{tools}/bin:{os.environ['PATH']}"}
    command = ["unshare", "--mount", "--net", sys.executable, __file__, "--inside", "--binary", chosen.binary, *chosen.names]
    return subprocess.run(command, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
