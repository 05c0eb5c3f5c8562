#!/usr/bin/env python3
"""Asks limited-login about a login, whose nonce comes from your session:

VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... verify.py TOKEN nonce NONCE

`verify.py TOKEN subject USER` asks about the refreshed token of your session's user; `verify.py TOKEN` about an access token.
Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.
"""

import http.client
import json
import os
import sys
import urllib.error
import urllib.request


class Refused(Exception):
    """The token is refused; `code` is stable."""

    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")
        self.code = code


class Unavailable(Exception):
    """There is no verdict now: keep the session, and try again."""


def verify(token, **binding):
    """The answer to a good token. The binding, `nonce` or `subject`, comes from the session, never from the client."""
    members = {"id_token" if token.startswith("eyJ") else "access_token": token} | binding
    fields = {"Content-Type": "application/json"}
    if os.environ.get("VERIFY_KEY"):
        fields["X-Api-Key"] = os.environ["VERIFY_KEY"]
    url = os.environ.get("VERIFY_URL", "http://127.0.0.1:8080") + "/verify"
    try:
        try:
            question = urllib.request.Request(url, json.dumps(members).encode(), fields)
            with urllib.request.urlopen(question, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            status, problem = error.code, json.load(error)
            code, detail = problem["code"], problem["detail"]
    except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException) as error:
        raise Unavailable(f"{url}: {error}") from error
    # This server's own key is missing or wrong: an outage, not a refusal.
    if code == "unauthorized_client":
        raise Unavailable(f"{code}: set VERIFY_KEY to a key that the service knows")
    raise Refused(code, detail) if status == 401 else Unavailable(f"{code}: {detail}")


def main():
    if len(sys.argv) not in (2, 4):
        print("usage: verify.py TOKEN [nonce NONCE | subject USER]", file=sys.stderr)
        return 64
    try:
        profile = verify(sys.argv[1], **dict([sys.argv[2:]] if sys.argv[2:] else []))["profile"]
        print(profile["user_id"], profile.get("name", ""))
        return 0
    except (Refused, Unavailable) as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, Refused) else 3


if __name__ == "__main__":
    sys.exit(main())
