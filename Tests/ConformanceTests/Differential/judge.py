"""Judges id tokens with joserfc, an independent verifier, and names each rule this project adds to it.

Usage: judge.py FILE. The file's first line is a JSON object with `keys` (a JWK Set), `now`, `skew`, `issuers`,
`app` and `nonce`; every other line is a token. For each token one line is printed: `accept`, `refuse`, or
`stricter RULE` if joserfc accepts and RULE is the first added rule that refuses.
"""
import json
import math
import sys

from joserfc import jwt
from joserfc.jwk import KeySet
from joserfc.util import urlsafe_b64decode


class Stricter(Exception):
    pass


def once(pairs):
    if len({name for name, _ in pairs}) != len(pairs):
        raise Stricter("repeated member")
    return dict(pairs)


def finite(text):
    if len(text) > 64 or math.isinf(float(text)):
        raise Stricter("number out of range")
    return float(text)


def whole(text):
    if len(text) > 64:
        raise Stricter("number out of range")
    return int(text)


def constant(name):
    raise Stricter("NaN or Infinity")


def depth(value):
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def strict_json(raw):
    """Parses these bytes as JSON with the rules of RFC 8725 and RFC 7493 that json.loads leaves out."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Stricter("not UTF-8")
    if text.startswith("\ufeff"):
        raise Stricter("byte-order mark")
    value = json.loads(text, object_pairs_hook=once, parse_float=finite, parse_int=whole, parse_constant=constant)
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise Stricter("lone surrogate")
    if depth(value) > 16:
        raise Stricter("too deep")
    return value


def demand(holds, rule):
    if not holds:
        raise Stricter(rule)


def text(value):
    return isinstance(value, str) and value != ""


def time(value):
    is_number = type(value) in (int, float)
    demand(is_number, "time of the wrong type")
    demand(0 <= value <= 2**53, "time out of range")


def added_rules(token, setup):
    parts = token.split(".")
    header = strict_json(urlsafe_b64decode(parts[0].encode()))
    demand(header["alg"] == "RS256", "algorithm")
    demand("crit" not in header and "b64" not in header, "critical header")
    demand("typ" not in header or header["typ"] == "JWT", "typ is not JWT")
    demand(not {"cty", "zip", "enc", "p2c", "p2s"} & set(header), "nested or encrypted")
    demand(text(header.get("kid")), "no key ID")
    claims = strict_json(urlsafe_b64decode(parts[1].encode()))
    demand(isinstance(claims, dict), "claims are no object")
    demand(claims.get("iss") in setup["issuers"], "issuer")
    audience = claims.get("aud")
    if isinstance(audience, list):
        demand(len(audience) == 1, "several audiences")
        audience = audience[0]
    demand(audience == setup["app"], "audience")
    demand("azp" not in claims or claims["azp"] == audience, "authorized party")
    time(claims.get("exp"))
    demand(setup["now"] < claims["exp"] + setup["skew"], "the last second of the skew")
    time(claims.get("iat"))
    if "nbf" in claims:
        time(claims["nbf"])
    subject = claims.get("sub")
    demand(text(subject) and subject.isascii() and len(subject) <= 255, "subject")
    demand(text(claims.get("jti")), "token ID")
    demand(claims.get("nonce") == setup["nonce"], "nonce")
    demand("at_hash" not in claims or text(claims["at_hash"]), "at_hash")


def judge(token, keys, registry, setup):
    try:
        decoded = jwt.decode(token, keys, algorithms=["RS256"])
        registry.validate(decoded.claims)
    except Exception:
        return "refuse"
    try:
        added_rules(token, setup)
    except Stricter as rule:
        return f"stricter {rule}"
    return "accept"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        setup = json.loads(file.readline())
        tokens = file.read().splitlines()
    keys = KeySet.import_key_set(setup["keys"])
    registry = jwt.JWTClaimsRegistry(
        now=setup["now"],
        leeway=setup["skew"],
        iss={"essential": True, "values": setup["issuers"]},
        aud={"essential": True, "value": setup["app"]},
        sub={"essential": True},
        jti={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": setup["nonce"]},
    )
    for token in tokens:
        print(judge(token, keys, registry, setup))


main()
