#!/usr/bin/env python3
"""Plays Facebook and the app's backend with Python's standard library alone, against the real service.

  1. signed requests made here, with and without padding, are accepted;
  2. the example receivers (Python, Node) verify the webhooks.

usage: callbacks_test.py
"""

import base64
import hashlib
import hmac
import json
import os
import shutil
import sys
import time

import harness
import live
from harness import check, free_port

USER = "218471"
SECRET = "whsec_" + base64.b64encode(os.urandom(32)).decode()
STATUS = "https://app.example/deletion"
EXAMPLES = harness.ROOT / "Tests" / "Examples"


def signed_request(secret=live.Issuer.app_secret, padded=False, **members):
    now = int(time.time())
    payload = {"algorithm": "HMAC-SHA256", "expires": now + 3600, "issued_at": now, "user_id": USER} | members
    encoded = base64.urlsafe_b64encode(json.dumps(payload).encode())
    encoded = encoded if padded else encoded.rstrip(b"=")
    signature = base64.urlsafe_b64encode(hmac.new(secret.encode(), encoded, hashlib.sha256).digest())
    return ((signature if padded else signature.rstrip(b"=")) + b"." + encoded).decode()


def call(service, name, text):
    """Sends a callback; returns the status and the JSON answer."""
    status, body = harness.request(service.port, "POST", f"/callbacks/{name}", *harness.form(signed_request=text))
    return status, json.loads(body)


class Backend:
    """Receives webhooks, and answers 204."""

    def __init__(self):
        self.events, self.server = [], harness.serve(self.take)
        self.url = self.server.url + "/webhooks"

    def take(self, request):
        self.events.append((dict(request.headers), request.body))
        return 204, b""


def service(program, issuer, url, folder):
    return live.Service(program, issuer.jwks_url, graph=issuer, callbacks_url=url,
                        callbacks_secret_file=folder.write("webhook-secret", SECRET + "\n"), data_deletion_status_url=STATUS)


def independent(program, issuer, folder):
    with service(program, issuer, Backend().url, folder) as running:
        for padded in (False, True):
            for user in (USER, int(USER)):
                status, answer = call(running, "data-deletion", signed_request(padded=padded, user_id=user))
                check(status == 200 and answer["url"] == f"{STATUS}?code={answer['confirmation_code']}",
                      f"a deletion is taken: {status} {answer}")
        status, answer = call(running, "data-deletion", signed_request(secret="another-secret-of-16"))
        check(status == 403 and answer["code"] == "invalid_signed_request", f"another secret's is refused: {status} {answer}")


def examples(program, issuer, folder):
    commands = {"python": [sys.executable, EXAMPLES / "webhook.py"], "node": ["node", EXAMPLES / "webhook.mjs"]}
    for name, command in commands.items():
        if not shutil.which(command[0]):
            harness.skip(f"example {name}: not installed")
            continue
        port = free_port()
        with live.Process([*command, str(port)], {"WEBHOOK_SECRET": SECRET}) as receiver, \
                service(program, issuer, f"http://127.0.0.1:{port}/webhooks", folder) as running:
            harness.listens(port, receiver.process)
            status, answer = call(running, "data-deletion", signed_request())
            is_told = receiver.wait_for(f"delete {live.APP_ID} {USER} {answer.get('confirmation_code')}")
            check(status == 200 and is_told, f"example {name}: a deletion: {status} {answer} {receiver.output()}")
            status, answer = call(running, "deauthorize", signed_request())
            is_told = receiver.wait_for(f"log out {live.APP_ID} {USER}")
            check((status, answer) == (200, {}) and is_told, f"example {name}: a removed app: {status} {answer}")
            fields = running.fields | {"Content-Type": "application/json"}
            status, _ = harness.request(running.port, "POST", "/revocations", json.dumps({"user_id": "42"}), fields)
            check(status == 204 and receiver.wait_for(f"log out {live.APP_ID} 42"), f"example {name}: a revocation: {status}")
            headers = {"webhook-id": "msg_x", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
            body = b'{"type":"login.deauthorized","data":{"app_id":"1","user_id":"2"}}'
            stale = str(int(time.time()) - 301)
            code = hmac.digest(base64.b64decode(SECRET.removeprefix("whsec_")), f"msg_x.{stale}.".encode() + body, "sha256")
            old = headers | {"webhook-timestamp": stale, "webhook-signature": "v1," + base64.b64encode(code).decode()}
            statuses = [harness.request(port, "POST", "/webhooks", body, fields)[0] for fields in (headers, old, {})]
            check(statuses == [400] * 3, f"example {name}: a forged, an old and a bare webhook are refused: {statuses}")


def main():
    program = harness.arguments(__doc__).binary
    with live.Issuer(program) as issuer, harness.Folder() as folder:
        independent(program, issuer, folder)
        examples(program, issuer, folder)
    return 1 if harness.failures else 0


if __name__ == "__main__":
    sys.exit(main())
