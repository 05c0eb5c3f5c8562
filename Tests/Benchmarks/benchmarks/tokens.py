"""Distinct tokens in Facebook's wire style, minted by the stand-in issuer once and kept for further runs."""

import hashlib
import http.client
import json
import struct
import time
import urllib.parse

from .processes import WORK, harness, live, output

APP = "1234567890123456"
DAY = 86_400


def claims(index, expires):
    """A login with every permission of Limited Login granted."""
    return {
        "sub": str(10_000_000_000_000_000 + index), "nonce": f"n-{index:06d}-4f0c2a7de1b94b5f",
        "iat": expires - DAY * 31, "exp": expires, "aud": APP,
        "email": f"jane.doe.{index}@example.com", "given_name": "Jane", "middle_name": "Quinn",
        "family_name": f"Doe-{index}", "name": f"Jane Quinn Doe-{index}",
        "picture": f"https://platform-lookaside.fbsbx.com/platform/profilepic/?asid={index}&height=100&width=100&ext=1",
        "user_friends": [str(20_000_000_000_000_000 + index + friend) for friend in range(3)],
        "user_birthday": "01/02/1990", "user_age_range": {"min": 21},
        "user_link": f"https://www.facebook.com/app_scoped_user_id/{index}/",
        "user_hometown": {"id": "112233445566778", "name": "Springfield, Oregon"},
        "user_location": {"id": "108424279189115", "name": "New York, New York"}, "user_gender": "female",
    }


class Tokens:
    """Minted tokens, the issuer's keys, and a loopback server for the keys."""

    def __init__(self, binary, count):
        self.file = WORK / f"tokens-{count}.json"
        if self.file.exists():
            self.data = json.loads(self.file.read_text())
        if not self.file.exists() or self.data["expires"] < time.time() + DAY:
            self.data = self.mint(binary, count)
            self.file.write_text(json.dumps(self.data))
        self.tokens = self.data["tokens"]

    @staticmethod
    def mint(binary, count):
        expires = int(time.time()) + 30 * DAY
        with Issuer(binary) as issuer:
            tokens = [{"nonce": body["nonce"], "id_token": issuer.token(body)}
                      for body in (claims(index, expires) for index in range(count))]
            special = {"expired": issuer.token(claims(1, int(time.time()) - 10 * DAY))}
            keys = json.loads(harness.request(issuer.port, "GET", "/.well-known/oauth/openid/jwks/")[1])
        return {"expires": expires, "tokens": tokens, "special": special, "jwks": keys}

    def key_of(self, token):
        kid = json.loads(harness.from_base64url(token.split(".")[0]))["kid"]
        return next(key for key in self.data["jwks"]["keys"] if key["kid"] == kid)

    def write_bare_inputs(self):
        """The key as PEM, a digest and a signature, for the bare verification."""
        token = self.tokens[0]["id_token"]
        key = self.key_of(token)
        numbers = "".join(f"{part}=INTEGER:0x{harness.from_base64url(key[part]).hex()}\n" for part in ("n", "e"))
        (WORK / "key.cnf").write_text(f"asn1=SEQUENCE:key\n[key]\n{numbers}")
        output("openssl", "asn1parse", "-noout", "-genconf", WORK / "key.cnf", "-out", WORK / "key.der")
        output("openssl", "rsa", "-RSAPublicKey_in", "-inform", "DER", "-in", WORK / "key.der", "-pubout", "-out", WORK / "key.pem")
        signing_input, _, signature = token.rpartition(".")
        (WORK / "digest").write_bytes(hashlib.sha256(signing_input.encode()).digest())
        (WORK / "signature").write_bytes(harness.from_base64url(signature))

    def serve_keys(self):
        """Starts a loopback server for the JWK Set, and returns its URL."""
        body = json.dumps(self.data["jwks"]).encode()
        (WORK / "jwks.json").write_bytes(body)
        return harness.serve(lambda _: body).url + "/.well-known/oauth/openid/jwks/"


class Issuer(live.Issuer):
    """The stand-in issuer, asked on one connection."""

    def __init__(self, binary):
        super().__init__(binary)
        self.client = http.client.HTTPConnection(self.address)

    def ask(self, path, members):
        for _ in range(2):
            try:
                self.client.request("POST", path, json.dumps(members), {"Content-Type": "application/json"})
                return json.loads(self.client.getresponse().read())
            except (OSError, http.client.HTTPException):
                # The server has ended the connection after its number of requests.
                self.client.close()
        raise SystemExit(f"the stand-in issuer does not answer {path}")

    def token(self, claims):
        return super().token(**claims)


class BoundTokens:
    """200 tokens that are bound to a device's key, and its proofs (RFC 9449): one for each request, since a proof is good
    once and for five minutes."""

    def __init__(self, binary):
        self.issuer = Issuer(binary)
        self.keys_url, self.close = self.issuer.jwks_url, self.issuer.stop
        expires = int(time.time()) + DAY
        key = self.proof(self.issuer.token({}))["key_thumbprint"]
        self.tokens = [self.issuer.token(claims(index, expires) | {"iat": expires - 2 * DAY, "cnf": {"jkt": key}})
                       for index in range(200)]

    def proof(self, token):
        return self.issuer.proof(token, "https://api.example.com/orders")

    def requests(self, count):
        forwarded = (b"X-Forwarded-Method: GET\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: api.example.com\r\n"
                     b"X-Forwarded-Uri: /orders\r\n\r\n")
        for index in range(count):
            token = self.tokens[index % len(self.tokens)]
            yield auth(token).replace(b"Bearer", b"DPoP", 1)[:-2] + b"DPoP: " + self.proof(token)["proof"].encode() \
                + b"\r\n" + forwarded


def post_verify(body):
    text = json.dumps(body, separators=(",", ":")).encode()
    return (b"POST /verify HTTP/1.1\r\nHost: login.example.com\r\nContent-Type: application/json\r\n"
            b"Content-Length: " + str(len(text)).encode() + b"\r\n\r\n" + text)


def ask(entry):
    """A request about a token with its nonce."""
    return post_verify({"id_token": entry["id_token"], "nonce": entry["nonce"]})


def keyed(request, key):
    """The same request with a caller's key."""
    return request.replace(b"\r\n", b"\r\nX-Api-Key: " + key.encode() + b"\r\n", 1)


def post_token(entry):
    """A request that exchanges a login for a token of the service's own (RFC 8693 section 2.1)."""
    form = urllib.parse.urlencode({
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "subject_token": entry["id_token"], "nonce": entry["nonce"]}).encode()
    return (b"POST /token HTTP/1.1\r\nHost: login.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            b"Content-Length: " + str(len(form)).encode() + b"\r\n\r\n" + form)


def bearer(token):
    """A request to a gateway with the token."""
    return (b"GET / HTTP/1.1\r\nHost: login.example.com\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n")


def auth(token):
    """A gateway's request to this service about the token."""
    return bearer(token).replace(b"GET / ", b"GET /auth ", 1)


def write_requests(name, requests):
    path = WORK / f"{name}.requests"
    with open(path, "wb") as file:
        for text in requests:
            file.write(struct.pack("<I", len(text)) + text)
    return path
