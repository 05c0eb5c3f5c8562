#!/usr/bin/env python3
"""Exchanges logins at POST /token and has other implementations judge the tokens by the published key set alone.

usage: own_token_test.py [--binary FILE] [--tools FOLDER]
PyJWT, joserfc and Authlib (PyPI) accept a good token and refuse an expired one, an altered one and one for another audience,
each with RSA and with P-256; keys are rotated under them. `--tools` makes a virtual environment there with the packages. What is
not installed is named and left out. Exit code 1 where anything fails.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.parse

import live
from live import check, failures

PACKAGES = ["PyJWT==2.10.1", "joserfc==1.1.0", "Authlib==1.5.2", "cryptography"]
ISSUER, AUDIENCE = "https://login.example.com", "https://api.example.com"
GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
TYPE = "urn:ietf:params:oauth:token-type:"

# Each judges the token on its standard input, with the JWK Set of the argument; exit code 0 says yes.
CONSUMERS = {
    "PyJWT": """
import jwt, sys
key = jwt.PyJWKClient(sys.argv[1]).get_signing_key_from_jwt(token)
jwt.decode(token, key.key, algorithms=["RS256", "ES256"], audience=AUDIENCE, issuer=ISSUER)
""",
    "joserfc": """
import json, sys, urllib.request
from joserfc import jwt
from joserfc.jwk import KeySet
keys = KeySet.import_key_set(json.load(urllib.request.urlopen(sys.argv[1])))
read = jwt.decode(token, keys, algorithms=["RS256", "ES256"])
essential = {"essential": True}
jwt.JWTClaimsRegistry(iss={**essential, "value": ISSUER}, aud={**essential, "value": AUDIENCE}, exp=essential).validate(read.claims)
""",
    "Authlib": """
import json, sys, urllib.request
from authlib.jose import JsonWebKey, JsonWebToken
keys = JsonWebKey.import_key_set(json.load(urllib.request.urlopen(sys.argv[1])))
options = {"iss": {"essential": True, "value": ISSUER}, "aud": {"essential": True, "value": AUDIENCE}, "exp": {"essential": True}}
JsonWebToken(["RS256", "ES256"]).decode(token, keys, claims_options=options).validate()
""",
}


def exchange(service, token, **form):
    fields = {"Content-Type": "application/x-www-form-urlencoded", "X-Api-Key": service.key}
    known = {"grant_type": GRANT, "subject_token_type": TYPE + "id_token", "subject_token": token}
    status, body = live.request(service.port, "POST", "/token", urllib.parse.urlencode(known | form), fields)[:2]
    return status, json.loads(body)


def judge(python, name, key_set, token):
    """Whether a consumer accepts a token, and what it says."""
    source = f"import sys\ntoken = sys.stdin.read()\nISSUER, AUDIENCE = {ISSUER!r}, {AUDIENCE!r}\n{CONSUMERS[name]}"
    command = [python, "-W", "ignore", "-c", source, key_set]
    run = subprocess.run(command, input=token, capture_output=True, text=True, timeout=120)
    return run.returncode == 0, run.stderr[-200:]


def altered(token):
    header, payload, signature = token.split(".")
    middle = len(payload) // 2
    other = "A" if payload[middle] != "A" else "B"
    return ".".join([header, payload[:middle] + other + payload[middle + 1:], signature])


def key(binary, *options):
    return subprocess.run([binary, "signing-key", "new", *options], check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary")
    parser.add_argument("--tools")
    arguments = parser.parse_args()
    python, consumers = sys.executable, dict(CONSUMERS)
    if arguments.tools:
        folder = pathlib.Path(arguments.tools).resolve()
        if not (folder / "bin/pip").exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)])
        if (folder / "bin/pip").exists():
            python = str(folder / "bin/python")
            subprocess.run([str(folder / "bin/pip"), "-q", "--disable-pip-version-check", "install", *PACKAGES])
    for name, module in [("PyJWT", "jwt"), ("joserfc", "joserfc"), ("Authlib", "authlib.jose")]:
        if subprocess.run([python, "-W", "ignore", "-c", f"import {module}"], capture_output=True).returncode:
            print(f"SKIPPED: {name} is not installed")
            del consumers[name]
    program = arguments.binary or live.build()
    with tempfile.TemporaryDirectory() as folder, live.Issuer(program) as issuer:
        for kind, options in ("RSA", []), ("P-256", ["--ec"]):
            file = pathlib.Path(folder) / f"{kind}.pem"
            file.write_text(key(program, *options))
            file.chmod(0o600)
            settings = {"issuer": ISSUER, "signing_keys_file": file, "token_audiences": f"{AUDIENCE},elsewhere"}
            with live.Service(program, issuer.jwks_url, **settings) as service:
                service.wait_until_ready()
                run(python, consumers, kind, service, issuer)
                rotate(program, kind, file, service, issuer)
    print(f"{len(failures)} failed" if failures else "all held")
    return 1 if failures else 0


def run(python, consumers, kind, service, issuer):
    key_set = f"http://{service.address}/.well-known/jwks.json"
    # It ends with the login's own token.
    end = int(time.time()) + 3
    short = exchange(service, issuer.token(iat=end - 3600, exp=end), nonce="n-1")[1]["access_token"]
    good = exchange(service, issuer.token(), nonce="n-1")[1]["access_token"]
    elsewhere = exchange(service, issuer.token(), nonce="n-1", audience="elsewhere")[1]["access_token"]
    while time.time() < end + 1:
        time.sleep(0.1)
    for name in consumers:
        for what, token, is_good in [("a good token", good, True), ("an expired one", short, False),
                                     ("an altered one", altered(good), False), ("one for another audience", elsewhere, False)]:
            accepted, said = judge(python, name, key_set, token)
            check(accepted == is_good, f"{kind}: {name} {'accepts' if is_good else 'refuses'} {what}" +
                  ("" if accepted == is_good else f": {said}"))


def rotate(program, kind, file, service, issuer):
    """The new key comes second, then first, then alone: no token of before is refused until its key is gone."""
    def asked(token):
        return live.request(service.port, "GET", "/auth", fields={"Authorization": f"Bearer {token}"})[0]

    def reload(text, count):
        file.write_text(text)
        service.hang_up()
        service.wait_for('"configuration reloaded"', count)

    old, new = file.read_text(), key(program)
    tokens = [exchange(service, issuer.token(), nonce="n-1")[1]["access_token"]]
    for count, text in enumerate([old + new, new + old, new], 1):
        reload(text, count)
        tokens.append(exchange(service, issuer.token(), nonce="n-1")[1]["access_token"])
        wanted = [200] * len(tokens) if text != new else [401, 401, 200, 200]
        answers = [asked(token) for token in tokens]
        check(answers == wanted, f"{kind}: rotation, step {count}: /auth answers {answers}")


if __name__ == "__main__":
    sys.exit(main())
