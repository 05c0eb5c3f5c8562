#!/usr/bin/env python3
"""Exchanges logins at POST /token and lets other implementations judge the tokens, by the recipes of Consumers.md.

usage: own_token_test.py [--binary FILE] [--tools FOLDER] [NAME...]     (default: every consumer, and rotation)
Each consumer accepts a good token and refuses an expired one, an altered one, an unsigned one, one of HS256 under the public key,
one for another audience, of another issuer or with another's signature, and an id token; each with RSA and with P-256. In
`rotation` a new key is put second, then first, then alone, under load; `followers` keep the key set meanwhile (`--whole`: for the
300 s of its max-age); `hand-over` runs the code of HandOver.md. `--tools` makes a virtual environment there with the packages. A
consumer that is not installed is named and skipped. The exit code is 1 if anything fails.
"""

import base64
import contextlib
import hmac
import http.client
import json
import re
import ssl
import sys
import threading
import time
import urllib.parse

import harness
import live
import own_token_followers
import own_token_handover
from attack_parts import certificates
from harness import check, failures
from own_token_consumers import CONSUMERS, PACKAGES, Place

ISSUER, AUDIENCE = "https://login.example.com", "https://api.example.com"
GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
TYPE = "urn:ietf:params:oauth:token-type:"
# The lifetime in seconds of the tokens that expire during a test, and the seconds after it that consumers may allow.
SHORT, FORGIVEN = 4, 12


def post(service, path, body, fields, authority=None, method="POST"):
    """Sends one request as the service's backend; over TLS if there is an authority."""
    if not authority:
        return harness.request(service.port, method, path, body, service.fields | fields)
    context = ssl.create_default_context(cafile=str(authority))
    secure = http.client.HTTPSConnection("localhost", service.port, timeout=harness.ANSWER_SECONDS, context=context)
    with contextlib.closing(secure) as client:
        client.request(method, path, body, service.fields | fields)
        answer = client.getresponse()
        return answer.status, answer.read()


def exchange(service, token, authority=None, **form):
    known = {"grant_type": GRANT, "subject_token_type": TYPE + "id_token", "subject_token": token, "nonce": "n-1"}
    fields = {"Content-Type": "application/x-www-form-urlencoded"}
    status, body = post(service, "/token", urllib.parse.urlencode(known | form), fields, authority)
    return status, json.loads(body)


def key(binary, *options):
    return harness.output([binary, "signing-key", "new", *options])


def public_key(program, file):
    text = harness.output([program, "signing-key", "public", "--signing-keys-file", file])
    return re.search(r"-----BEGIN.*-----END PUBLIC KEY-----\n", text, re.S)[0]


def encoded(part):
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


def altered(token):
    header, payload, signature = token.split(".")
    middle = len(payload) // 2
    return ".".join([header, payload[:middle] + "BA"[payload[middle] != "A"] + payload[middle + 1:], signature])


def resigned(token, algorithm, secret=None):
    """The token with another algorithm in its header, signed with this secret or without a signature."""
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "==")) | {"alg": algorithm}
    signed = f"{encoded(json.dumps(header).encode())}.{token.split('.')[1]}"
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), 'sha256')) if secret else ''}"


def cases(program, service, issuer, file, authority=None, forgiven=1):
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
    while time.time() < end + forgiven:
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
        settings = certificates(folder) | {
            "issuer": f"https://localhost:{port}", "listen": f"127.0.0.1:{port}", "signing_keys_file": file,
            "token_audiences": f"{AUDIENCE},elsewhere",
        }
        with live.Service(program, issuer.jwks_url, **settings) as service:
            service.wait_until_ready()
            place = Place(service, folder, "ES256" if options else "RS256", python, AUDIENCE)
            tokens = cases(program, service, issuer, file, place.authority, FORGIVEN)
            folder.write("signing-key.pem", public_key(program, file))
            folder.write("set.json", post(service, "/.well-known/jwks.json", None, {}, place.authority, "GET")[1].decode())
            for name in names:
                consumer = CONSUMERS[name](place)
                if consumer is None:
                    harness.skip(f"{name} is not installed")
                    continue
                with consumer as accepts:
                    judge(f"{kind}: {name}", tokens, accepts)


class Load:
    """Honest clients that exchange logins and use the tokens until these expire."""

    clients = 4

    def __init__(self, service, issuer):
        self.service, self.issuer = service, issuer
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.exchanged = self.asked = self.last_end = 0
        self.refused = []
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(self.clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def run(self):
        while not self.stopping.is_set():
            end = int(time.time()) + SHORT
            status, body = exchange(self.service, self.issuer.token(iat=end - 3600, exp=end))
            self.count(end, "exchanged", status, body)
            while status == 200 and time.time() < end and not self.stopping.is_set():
                fields = {"Authorization": f"Bearer {body['access_token']}"}
                self.count(end, "asked", *harness.request(self.service.port, "GET", "/auth", fields=fields))
                # Without a pause the load would take the processors from other programs.
                self.stopping.wait(0.01)

    def count(self, end, what, status, body):
        with self.lock:
            setattr(self, what, getattr(self, what) + 1)
            self.last_end = max(self.last_end, end)
            # A refusal does not count if the token expired before the answer came.
            if status != 200 and time.time() < end:
                self.refused.append((what, status, body))

    def goes_on(self):
        """Waits until each client has had a new token and used it."""
        exchanged, asked = self.exchanged, self.asked
        if not harness.until(lambda: self.exchanged >= exchanged + 2 * self.clients and self.asked >= asked + 2 * self.clients):
            raise RuntimeError("the load does not go on")


def rotate(program, issuer, kind, options):
    """Puts the new key second, then first, and alone once the old tokens have expired. No honest token may be refused."""
    with harness.Folder() as folder:
        old, new = key(program, *options), key(program)
        file = folder.write("keys.pem", old)
        own = {"issuer": ISSUER, "signing_keys_file": file, "token_audiences": AUDIENCE}
        with live.Service(program, issuer.jwks_url, **own) as service:
            service.wait_until_ready()
            kept = exchange(service, issuer.token())[1]["access_token"]
            with Load(service, issuer) as load:
                load.goes_on()
                for count, text in enumerate([old + new, new + old, new], 1):
                    if text == new:
                        # Meanwhile the load uses tokens of the new key.
                        last = load.last_end
                        while time.time() <= last:
                            time.sleep(0.05)
                    folder.write("keys.pem", text)
                    service.hang_up()
                    if not service.wait_for('"configuration reloaded"', count):
                        raise RuntimeError("no reload:\n" + service.output())
                    load.goes_on()
            check(not load.refused, f"{kind}: the key changes under load: {len(load.refused)} of {load.exchanged} exchanges and "
                  f"{load.asked} questions refused" + "".join(f"; {one}" for one in load.refused[:3]))
            status = harness.request(service.port, "GET", "/auth", fields={"Authorization": f"Bearer {kept}"})[0]
            check(status == 401, f"{kind}: a token of the key that is gone is refused ({status})")


def main():
    chosen = harness.arguments(__doc__, [*CONSUMERS, "rotation", "followers", "hand-over"], whole=False)
    python = harness.environment_with(chosen.tools, PACKAGES) if chosen.tools else sys.executable
    program, names = chosen.binary, [name for name in CONSUMERS if name in chosen.names]
    with live.Issuer(program) as issuer:
        for kind, options in ("RSA", []), ("P-256", ["--ec"]):
            if names:
                consumers(program, issuer, names, python, kind, options)
            if "rotation" in chosen.names:
                rotate(program, issuer, kind, options)
        if "followers" in chosen.names:
            own_token_followers.rotations(program, issuer, python, key, exchange, chosen.whole)
        if "hand-over" in chosen.names:
            with harness.Folder() as folder:
                own_token_handover.platforms(program, issuer, python, key(program), exchange, folder)
    print(f"{len(failures)} failed" if failures else "all held")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
