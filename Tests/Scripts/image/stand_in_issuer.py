#!/usr/bin/env python3
"""An issuer that shares no code with the product: standard library and the `openssl` command only.

  stand_in_issuer.py make FOLDER HOST_NAME          CA, server certificate, signing key, JWK Set
  stand_in_issuer.py mint FOLDER APP_ID NONCE       one id token, on standard output
  stand_in_issuer.py serve FOLDER ADDRESS PORT      the JWK Set over HTTPS, until killed
  stand_in_issuer.py names ADDRESS HOST_NAME        a DNS server that knows one name: its own address
"""

import base64
import http.server
import json
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import time

KEY_ID = "5c1de31a5fbb4ef08c0e0c3ca0c6d0a1e2f3a4b5"
JWKS_PATH = "/.well-known/oauth/openid/jwks/"


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments: str, data: bytes | None = None) -> bytes:
    return subprocess.run(["openssl", *arguments], input=data, check=True, capture_output=True).stdout


def make(folder: pathlib.Path, host_name: str) -> None:
    ca, ca_key = str(folder / "ca.pem"), str(folder / "ca.key")
    request, server_key = str(folder / "server.csr"), str(folder / "server.key")
    extensions = folder / "server.ext"
    extensions.write_text(f"subjectAltName=DNS:{host_name}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Private test CA",
            "-keyout", ca_key, "-out", ca)
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host_name}", "-keyout", server_key, "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
            "-extfile", str(extensions), "-out", str(folder / "server.pem"))
    openssl("genrsa", "-out", str(folder / "signing.key"), "2048")
    modulus = openssl("rsa", "-in", str(folder / "signing.key"), "-noout", "-modulus").decode().strip().split("=")[1]
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
    signature = openssl("dgst", "-sha256", "-sign", str(folder / "signing.key"), data=signing_input.encode())
    print(f"{signing_input}.{base64url(signature)}")


def serve(folder: pathlib.Path, address: str, port: int) -> None:
    body = (folder / "jwks.json").read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == JWKS_PATH
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body) if found else 0))
            self.end_headers()
            if found:
                self.wfile.write(body)

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            print(f"{client_address}: {sys.exc_info()[1]}", file=sys.stderr)  # for instance a refused certificate

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    server = Server((address, port), Handler)
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
