"""Sessions of the login servers, changed as somebody with the server's secret could: moved into the past, or signed anew.

Each function takes a good session, in its cookie or the server's file, and moves the moment at which it ends.
"""

import base64
import hashlib
import hmac
import json
import pathlib
import re
import struct
import urllib.parse
import zlib

# How long a session lasts, in seconds, as each login server states it.
LIFETIME = 3_600


def mac(secret, text, algorithm=hashlib.sha256):
    return hmac.new(secret, text, algorithm).digest()


def decoded(text):
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


def node(value, secret, seconds):
    """cookie-parser: `s:j:JSON.MAC`, percent-encoded; `until` is in milliseconds."""
    session = json.loads(urllib.parse.unquote(value)[4:].rpartition(".")[0])
    if "until" in session:
        session["until"] -= seconds * 1_000
    text = "j:" + json.dumps(session)
    signature = base64.b64encode(mac(secret, text.encode())).decode().rstrip("=")
    return urllib.parse.quote(f"s:{text}.{signature}", safe="")


def flask(value, secret, seconds):
    """itsdangerous: `JSON.DATE.MAC`, each in base64; compressed JSON begins with a dot."""
    payload, date, _ = value.encode().rsplit(b".", 2)
    session = json.loads(zlib.decompress(decoded(payload[1:])) if payload.startswith(b".") else decoded(payload))
    if "until" in session:
        session["until"] -= seconds
    date = int.from_bytes(decoded(date), "big") - seconds
    parts = json.dumps(session).encode(), date.to_bytes(4, "big")
    text = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    key = mac(secret, b"cookie-session", hashlib.sha1)
    return (text + b"." + base64.urlsafe_b64encode(mac(key, text, hashlib.sha1)).rstrip(b"=")).decode()


def gorilla(value, secret, seconds):
    """securecookie: base64 of `DATE|base64 of the session in gob|MAC`; gob has twice an int64, after the number of its bytes."""
    date, session, _ = decoded(value.encode()).split(b"|", 2)

    def earlier(match):
        return match[1] + struct.pack(">I", struct.unpack(">I", match[2])[0] - 2 * seconds)

    session = re.sub(rb"(until.{0,8}int64.{1,8}?\xfc)(.{4})", earlier, decoded(session), flags=re.S)
    text = b"%d|%s" % (int(date) - seconds, base64.urlsafe_b64encode(session))
    signed = text + b"|" + mac(secret, b"__Host-session|" + text)
    return base64.urlsafe_b64encode(signed).decode()


def php(folder):
    """PHP: a file for each session, named by its id."""
    def change(value, _secret, seconds):
        file = pathlib.Path(folder) / f"sess_{value}"
        file.write_text(re.sub(r"(until\|i:)(\d+)", lambda match: match[1] + str(int(match[2]) - seconds), file.read_text()))
        return value
    return change
