#!/usr/bin/env python3
"""Exchanges logins at POST /token and lets other implementations judge the tokens, by the recipes of Consumers.md.

usage: own_token_test.py [--binary FILE] [--tools FOLDER] [NAME...]     (default: every consumer, and the two below)
Each consumer accepts a good token and refuses an expired one, an altered one, an unsigned one, one of HS256 under the public key,
one for another audience, of another issuer or with another's signature, and an id token; each with RSA and with P-256. With
`followers` a new key is put second, then first, then alone, while consumers keep the key set (`--whole`: for the 300 s of its
max-age); `hand-over` runs the code of HandOver.md. `--tools` makes a virtual environment there with the packages. A
consumer that is not installed is named and skipped. The exit code is 1 if anything fails.
"""

import hmac
import json
import re
import sys
import time

import harness
import live
import own_token_followers
import own_token_handover
from harness import base64url, check, failures, from_base64url
from own_token_consumers import CONSUMERS, PACKAGES, Place

ISSUER, AUDIENCE = "https://login.example.com", "https://api.example.com"
GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
TYPE = "urn:ietf:params:oauth:token-type:"
# The lifetime in seconds of the tokens that expire during a test, and the seconds after it that consumers may allow.
SHORT, FORGIVEN = 4, 12


def exchange(service, token, authority=None, **members):
    known = {"grant_type": GRANT, "subject_token_type": TYPE + "id_token", "subject_token": token, "nonce": "n-1"}
    body, fields = harness.form(**known | members)
    context = authority and authority.context()
    status, body = harness.request(service.port, "POST", "/token", body, service.fields | fields, context=context)
    return status, json.loads(body)


def key(binary, *options):
    return harness.output([binary, "signing-key", "new", *options])


def public_key(program, file):
    text = harness.output([program, "signing-key", "public", "--signing-keys-file", file])
    return re.search(r"-----BEGIN.*-----END PUBLIC KEY-----\n", text, re.S)[0]


def altered(token):
    header, payload, signature = token.split(".")
    middle = len(payload) // 2
    return ".".join([header, payload[:middle] + "BA"[payload[middle] != "A"] + payload[middle + 1:], signature])


def resigned(token, algorithm, secret=None):
    """The token with another algorithm in its header, signed with this secret or without a signature."""
    header = json.loads(from_base64url(token.split(".")[0])) | {"alg": algorithm}
    signed = f"{base64url(json.dumps(header).encode())}.{token.split('.')[1]}"
    return f"{signed}.{base64url(hmac.digest(secret, signed.encode(), 'sha256')) if secret else ''}"


def cases(program, service, issuer, file, authority):
    """Tokens by their description; only the first is good. The expired one has expired for every consumer."""
    end = int(time.time()) + SHORT
    short = exchange(service, issuer.token(iat=end - 3600, exp=end), authority)[1]["access_token"]
    good = exchange(service, issuer.token(), authority)[1]["access_token"]
    with live.Service(program, issuer.jwks_url, issuer=ISSUER, signing_keys_file=file, token_audiences=AUDIENCE) as other:
        other.wait_until_ready()
        foreign = exchange(other, issuer.token())[1]["access_token"]
    found = {
        "a good token": good, "an expired one": short, "an altered one": altered(good), "an unsigned one": resigned(good, "none"),
        "one of HS256 under the public key": resigned(good, "HS256", public_key(program, file).encode()),
        "one for another audience": exchange(service, issuer.token(), authority, audience="elsewhere")[1]["access_token"],
        "one with another's signature": ".".join([*good.split(".")[:2], short.split(".")[2]]), "one of another issuer": foreign,
        "an id token": exchange(service, issuer.token(), authority, requested_token_type=TYPE + "id_token")[1]["access_token"],
    }
    while time.time() < end + FORGIVEN:
        time.sleep(0.1)
    return found


def judge(title, tokens, accepts):
    wrong = []
    for what, token in tokens.items():
        accepted, said = accepts(token)
        if accepted != (what == "a good token"):
            wrong.append(f"{what}: {said}")
    check(not wrong, f"{title} accepts a good token and refuses {len(tokens) - 1} others" + "".join(f"; {one}" for one in wrong))


def consumers(program, issuer, names, python, kind, options):
    with harness.Folder() as folder:
        port, file = harness.free_port(), folder.write("keys.pem", key(program, *options))
        authority = harness.Authority(folder)
        settings = authority.settings() | {
            "issuer": f"https://localhost:{port}", "listen": f"127.0.0.1:{port}", "signing_keys_file": file,
            "token_audiences": f"{AUDIENCE},elsewhere",
        }
        with live.Service(program, issuer.jwks_url, **settings) as service:
            service.wait_until_ready()
            place = Place(service, folder, authority, "ES256" if options else "RS256", python, AUDIENCE)
            tokens = cases(program, service, issuer, file, authority)
            folder.write("signing-key.pem", public_key(program, file))
            known = harness.request(service.port, "GET", "/.well-known/jwks.json", context=authority.context())[1]
            folder.write("set.json", known.decode())
            for name in names:
                consumer = CONSUMERS[name](place)
                if consumer is None:
                    harness.skip(f"{name} is not installed")
                    continue
                with consumer as accepts:
                    judge(f"{kind}: {name}", tokens, accepts)


def main():
    chosen = harness.arguments(__doc__, [*CONSUMERS, "followers", "hand-over"], whole=False)
    python = harness.environment_with(chosen.tools, PACKAGES) if chosen.tools else sys.executable
    program, names = chosen.binary, [name for name in CONSUMERS if name in chosen.names]
    with live.Issuer(program) as issuer:
        for kind, options in ("RSA", []), ("P-256", ["--ec"]):
            if names:
                consumers(program, issuer, names, python, kind, options)
        if "followers" in chosen.names:
            own_token_followers.rotations(program, issuer, python, key, exchange, chosen.whole)
        if "hand-over" in chosen.names:
            with harness.Folder() as folder:
                own_token_handover.platforms(program, issuer, python, key(program), exchange, folder)
    print(f"{len(failures)} failed" if failures else "all held")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
