#!/usr/bin/env python3
"""Takes limited-login's webhooks and verifies them by hand (Standard Webhooks).

WEBHOOK_SECRET=whsec_... webhook.py PORT

With the public library (PyPI `standardwebhooks`) `verify` is
`Webhook(secret).verify(body, headers)`.
"""

import base64
import binascii
import hashlib
import hmac
import http.server
import json
import os
import sys
import time

TOLERANCE_SECONDS = 300


def verify(secret: str, headers, body: bytes) -> dict:
    """The event; ValueError if the webhook is not the service's, or is too old."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    identifier, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        raise ValueError("the webhook is too old, or a clock is wrong")
    message = f"{identifier}.{timestamp}.".encode() + body
    expected = hmac.new(key, message, hashlib.sha256).digest()
    for signature in headers["webhook-signature"].split(" "):
        version, _, digits = signature.partition(",")
        if version == "v1" and hmac.compare_digest(base64.b64decode(digits), expected):
            return json.loads(body)
    raise ValueError("no signature fits")


def handle(identifier: str, event: dict):
    """Put the work into a queue here and return at once. The queue should drop an identifier that it knows."""
    data = event["data"]
    if event["type"] in ("login.deauthorized", "login.revoked"):
        print("log out", data["app_id"], data["user_id"], identifier, flush=True)
    elif event["type"] == "user.data_deletion_requested":
        print("delete", data["app_id"], data["user_id"], data["confirmation_code"], identifier, flush=True)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), 65_536))
        try:
            event = verify(os.environ["WEBHOOK_SECRET"], self.headers, body)
        except (ValueError, TypeError, KeyError, AttributeError, binascii.Error):
            self.send_response(400)
        else:
            handle(self.headers["webhook-id"], event)
            self.send_response(204)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    if len(sys.argv) != 2 or not os.environ.get("WEBHOOK_SECRET"):
        print("usage: WEBHOOK_SECRET=whsec_... webhook.py PORT", file=sys.stderr)
        sys.exit(64)
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
