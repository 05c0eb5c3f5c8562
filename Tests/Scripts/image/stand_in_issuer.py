#!/usr/bin/env python3
"""An issuer that shares no code with the product: standard library and the `openssl` command only.

  stand_in_issuer.py make FOLDER HOST_NAME          CA, server certificate, signing key, JWK Set
  stand_in_issuer.py mint FOLDER APP_ID NONCE       one id token, on standard output
  stand_in_issuer.py serve FOLDER ADDRESS PORT      the JWK Set over HTTPS, until killed
  stand_in_issuer.py names ADDRESS HOST_NAME        a DNS server that knows one name: its own address
"""

import json
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402
from harness import base64url  # noqa: E402

KEY_ID = "5c1de31a5fbb4ef08c0e0c3ca0c6d0a1e2f3a4b5"
JWKS_PATH = "/.well-known/oauth/openid/jwks/"


def make(folder: pathlib.Path, host_name: str) -> None:
    harness.Authority(harness.Folder(folder)).issue("server", f"DNS:{host_name}")
    harness.output(["openssl", "genrsa", "-out", folder / "signing.key", "2048"])
    modulus = harness.output(["openssl", "rsa", "-in", folder / "signing.key", "-noout", "-modulus"]).strip().split("=")[1]
    key = {"kid": KEY_ID, "kty": "RSA", "alg": "RS256", "use": "sig", "n": base64url(bytes.fromhex(modulus)), "e": "AQAB"}
    (folder / "jwks.json").write_text(json.dumps({"keys": [key]}))


def mint(folder: pathlib.Path, app_id: str, nonce: str) -> None:
    now = int(time.time())
    header = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
    claims = {
        "iss": "https://www.facebook.com", "aud": app_id, "sub": "10158372912345678", "iat": now, "exp": now + 3600,
        "jti": "R47F." + "0123456789abcdef" * 4, "nonce": nonce, "email": "jane@example.com",
        "given_name": "Jane", "family_name": "Doe", "name": "Jane Doe",
        "picture": "https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1",
    }
    # The issuer's own JSON text escapes the solidus and the at sign.
    payload = json.dumps(claims, separators=(",", ":")).replace("/", "\\/").replace("@", "\\u0040")
    signing_input = base64url(json.dumps(header, separators=(",", ":")).encode()) + "." + base64url(payload.encode())
    signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", folder / "signing.key"], input=signing_input.encode(),
                               check=True, capture_output=True).stdout
    print(f"{signing_input}.{base64url(signature)}")


def serve(folder: pathlib.Path, address: str, port: int) -> None:
    body = (folder / "jwks.json").read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    server = harness.HTTPServer((address, port), harness.Handler)
    server.answer, server.media_type = lambda asked: (200, body) if asked.path == JWKS_PATH else (404, b""), "application/json"
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


def names(address: str, host_name: str) -> None:
    """Serves DNS (RFC 1035, section 4): one question in, one answer out. Any other name or type has no data."""
    encoded = b"".join(bytes([len(label)]) + label.encode() for label in host_name.split(".")) + b"\0"
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    while True:
        query, client = server.recvfrom(512)
        end = query.find(b"\0", 12) + 5
        if len(query) < 17 or end < 17:
            continue
        name, kind = query[12 : end - 4].lower(), query[end - 4 : end - 2]
        known = name == encoded and kind == b"\0\1"
        answer = b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 60, 4) + socket.inet_aton(address) if known else b""
        flags = b"\x81\x80" if name == encoded else b"\x81\x83"
        counts = struct.pack(">HHHH", 1, 1 if known else 0, 0, 0)
        server.sendto(query[:2] + flags + counts + query[12:end] + answer, client)


def main() -> None:
    match sys.argv[1:]:
        case ["make", folder, host_name]:
            make(pathlib.Path(folder), host_name)
        case ["mint", folder, app_id, nonce]:
            mint(pathlib.Path(folder), app_id, nonce)
        case ["serve", folder, address, port]:
            serve(pathlib.Path(folder), address, int(port))
        case ["names", address, host_name]:
            names(address, host_name)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
