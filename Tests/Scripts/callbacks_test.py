#!/usr/bin/env python3
"""Plays Facebook and the app's backend with Python's standard library alone, against the real service.

  1. signed requests made here, with and without padding, are accepted, and forged ones are refused;
  2. the example receivers (Python, Node) verify the webhooks, and so does the library `standardwebhooks` if installed.

usage: callbacks_test.py
"""

import base64
import hashlib
import hmac
import http.client
import http.server
import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import live
from live import free_port

USER = "218471"
SECRET = "whsec_" + base64.b64encode(os.urandom(32)).decode()
STATUS = "https://app.example/deletion"
EXAMPLES = live.ROOT / "Tests" / "Examples"


def expect(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def signed_request(secret=live.Issuer.app_secret, padded=False, **members):
    now = int(time.time())
    payload = {"algorithm": "HMAC-SHA256", "expires": now + 3600, "issued_at": now, "user_id": USER} | members
    encoded = base64.urlsafe_b64encode(json.dumps(payload).encode())
    encoded = encoded if padded else encoded.rstrip(b"=")
    signature = base64.urlsafe_b64encode(hmac.new(secret.encode(), encoded, hashlib.sha256).digest())
    return ((signature if padded else signature.rstrip(b"=")) + b"." + encoded).decode()


def call(service, name, text, timeout=live.ANSWER_SECONDS):
    """Sends a callback; returns the status, the JSON answer, and the seconds it took."""
    form = urllib.parse.urlencode({"signed_request": text}).encode()
    began = time.monotonic()
    try:
        with urllib.request.urlopen(f"http://{service.address}/callbacks/{name}", form, timeout=timeout) as answer:
            status, body = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, body = error.code, error.read()
    return status, json.loads(body), time.monotonic() - began


class Backend:
    """Receives webhooks. A function of the request's number and its handler answers each."""

    def __init__(self, answer):
        self.events = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.events.append((dict(self.headers), body))
                answer(len(outer.events), self)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/webhooks"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def reply(handler, status, body=b""):
    handler.send_response(status)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def service(program, issuer, url, folder):
    secret = pathlib.Path(folder) / "webhook-secret"
    secret.write_text(SECRET + "\n")
    return live.Service(program, issuer.jwks_url, graph=issuer, callbacks_url=url, callbacks_secret_file=str(secret),
                        data_deletion_status_url=STATUS)


def independent(program, issuer, folder):
    backend = Backend(lambda number, handler: reply(handler, 204))
    with service(program, issuer, backend.url, folder) as running:
        codes = set()
        for padded in (False, True):
            for user in (USER, int(USER)):
                status, answer, _ = call(running, "data-deletion", signed_request(padded=padded, user_id=user))
                expect(status == 200, f"{status} {answer}")
                expect(answer["url"] == f"{STATUS}?code={answer['confirmation_code']}", answer)
                expect(answer["confirmation_code"].isalnum() and 20 <= len(answer["confirmation_code"]) <= 40, answer)
                codes.add(answer["confirmation_code"])
        expect(len(codes) == 4, codes)
        taken = len(backend.events)
        for text in (signed_request(secret="another-secret-of-16"), signed_request(algorithm="none"),
                     signed_request(issued_at=int(time.time()) - 90_000), signed_request(user_id="me"),
                     signed_request(code="AQBx"), signed_request(oauth_token="EAA"), signed_request(user_id="0218471"),
                     signed_request(expires=int(time.time()) - 90), signed_request()[:-1],
                     signed_request().split(".")[1]):
            for name in ("deauthorize", "data-deletion"):
                status, answer, _ = call(running, name, text)
                expect(status == 403 and answer["code"] == "invalid_signed_request", f"{status} {answer}")
        expect(len(backend.events) == taken, "a forgery was delivered")
        check_library(backend.events)
    print(f"independent: {taken} taken, 20 forgeries refused, none of them delivered")


def check_library(events):
    """Verifies the webhooks with the public library, if it is installed."""
    try:
        from standardwebhooks.webhooks import Webhook
    except ImportError:
        print("library standardwebhooks: SKIPPED: not installed")
        return
    for headers, body in events:
        Webhook(SECRET).verify(body.decode(), {name.lower(): value for name, value in headers.items()})
    print(f"library standardwebhooks: {len(events)} webhooks verified")


def examples(program, issuer, folder):
    commands = {"python": [sys.executable, str(EXAMPLES / "webhook.py")], "node": ["node", str(EXAMPLES / "webhook.mjs")]}
    for name, command in commands.items():
        if not shutil.which(command[0]):
            print(f"example {name}: SKIPPED: not installed")
            continue
        port = free_port()
        url = f"http://127.0.0.1:{port}/webhooks"
        with live.Process([*command, str(port)], {"WEBHOOK_SECRET": SECRET}) as receiver, \
                service(program, issuer, url, folder) as running:
            wait_for(port)
            status, answer, _ = call(running, "data-deletion", signed_request())
            expect(status == 200, f"{name}: {status} {answer} {receiver.output()}")
            receiver.find(f"(delete {live.APP_ID} {USER} {answer['confirmation_code']})")
            status, answer, _ = call(running, "deauthorize", signed_request())
            expect(status == 200 and answer == {}, f"{name}: {status} {answer}")
            receiver.find(f"(log out {live.APP_ID} {USER})")
            headers = {"webhook-id": "msg_x", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
            expect(post(port, headers) == 400, f"{name}: a forged webhook was taken")
            body = b'{"type":"login.deauthorized","data":{"app_id":"1","user_id":"2"}}'
            stale = str(int(time.time()) - 301)
            key = base64.b64decode(SECRET.removeprefix("whsec_"))
            code = hmac.new(key, f"msg_x.{stale}.".encode() + body, hashlib.sha256).digest()
            headers |= {"webhook-timestamp": stale, "webhook-signature": "v1," + base64.b64encode(code).decode()}
            expect(post(port, headers, body) == 400, f"{name}: an old webhook was taken")
            expect(post(port, {}) == 400, f"{name}: a webhook without fields was taken")
        print(f"example {name}: both events taken, three bad webhooks refused")


def wait_for(port):
    deadline = time.monotonic() + live.START_SECONDS
    while time.monotonic() < deadline:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    sys.exit("FAILED: the receiver does not listen")


def post(port, headers, body=b"{}"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=live.ANSWER_SECONDS)
    connection.request("POST", "/webhooks", body, headers)
    return connection.getresponse().status


def main():
    program = live.build()
    with live.Issuer(program) as issuer, tempfile.TemporaryDirectory() as folder:
        independent(program, issuer, folder)
        examples(program, issuer, folder)


if __name__ == "__main__":
    main()
