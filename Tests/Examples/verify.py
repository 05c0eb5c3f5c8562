#!/usr/bin/env python3
"""Asks limited-login about an id token, or without a nonce about an access token.

VERIFY_URL=http://127.0.0.1:8080 verify.py TOKEN [NONCE]      exit code 0 accepted, 1 refused, 3 try again
"""

import json
import os
import sys
import urllib.error
import urllib.request


def verify(token, nonce=None):
    """The answer to a good token; a refusal is an HTTPError whose body has the stable `code`."""
    fields = {"Content-Type": "application/json"}
    if os.environ.get("VERIFY_KEY"):
        fields["X-Api-Key"] = os.environ["VERIFY_KEY"]
    url = os.environ.get("VERIFY_URL", "http://127.0.0.1:8080") + "/verify"
    body = json.dumps({"id_token": token, "nonce": nonce} if nonce else {"access_token": token}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, fields), timeout=10) as answer:
        return json.load(answer)


def main():
    try:
        profile = verify(*sys.argv[1:])["profile"]
        print(profile["user_id"], profile.get("name", ""))
        return 0
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        print(problem["code"], problem["detail"], file=sys.stderr)
        # Nobody can tell in an outage (5xx, and 429 of Facebook) whether the token is good, so nobody is logged out for it.
        return 3 if error.code == 429 or error.code >= 500 else 1
    except OSError as error:
        print(error, file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
