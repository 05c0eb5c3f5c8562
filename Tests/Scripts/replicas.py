"""Replicas of the service that share a secret and demand a key, and the stand-in issuer of their tokens."""

import hashlib
import json
import pathlib
import secrets
import tempfile
import time

import live

KEY = "a-key-for-these-tests"
FIELDS = {"X-Api-Key": KEY}


class Fleet:
    """Replicas that share a secret and demand a key of their callers, and an issuer."""

    def __init__(self, binary, count, environment=None, waits=True):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        (folder / "secret").write_text(secrets.token_hex(32) + "\n")
        (folder / "clients").write_text(f"test {hashlib.sha256(KEY.encode()).hexdigest()}\n")
        self.issuer = live.Process([binary, "issuer", "--listen", "127.0.0.1:0"])
        self.issuer_port = int(self.issuer.find(r"stand-in issuer on http://127\.0\.0\.1:(\d+)"))
        self.keys_url = f"http://127.0.0.1:{self.issuer_port}/.well-known/oauth/openid/jwks/"
        variables = {
            "LIMITED_LOGIN_APP_IDS": live.APP_ID, "LIMITED_LOGIN_LISTEN": "127.0.0.1:0",
            "LIMITED_LOGIN_ADMIN_LISTEN": "127.0.0.1:0", "LIMITED_LOGIN_LOG_FORMAT": "json",
            "LIMITED_LOGIN_JWKS_URLS": self.keys_url,
            "LIMITED_LOGIN_NONCE_SECRET_FILE": str(folder / "secret"),
            "LIMITED_LOGIN_CLIENT_KEYS_FILE": str(folder / "clients"),
        }
        self.services = [live.Process([binary, "serve"], variables | (environment or {})) for _ in range(count)]
        self.ports = [int(service.find(r'"address":"127\.0\.0\.1:(\d+)"')) for service in self.services]
        for port in self.ports:
            while waits and request(port, "GET", "/readyz")[0] != 200:
                time.sleep(0.01)

    def nonce(self, replica=0):
        """A nonce; None while the store has not been reached since the start."""
        status, answer = request(self.ports[replica % len(self.ports)], "POST", "/nonces", "{}", FIELDS)
        return answer["nonce"] if status == 200 else None

    def use(self, nonce):
        """The body of a request that uses the nonce up."""
        token = request(self.issuer_port, "POST", "/tokens", json.dumps({"nonce": nonce}))[1]["id_token"]
        return json.dumps({"id_token": token, "issued_nonce": True})

    def token(self, user, age=30):
        """The body of a request about a token that was issued some seconds ago."""
        now = int(time.time())
        claims = {"sub": str(user), "nonce": "n-1", "iat": now - age, "exp": now + 3600}
        token = request(self.issuer_port, "POST", "/tokens", json.dumps(claims))[1]["id_token"]
        return json.dumps({"id_token": token, "nonce": "n-1"})

    def stop(self):
        for process in [*self.services, self.issuer]:
            process.stop()
        self.folder.cleanup()


def request(port, method, path, body=None, fields=None):
    status, text = live.request(port, method, path, body, fields)
    try:
        return status, json.loads(text)
    except ValueError:
        return status, {}


def outcome(port, body):
    status, answer = request(port, "POST", "/verify", body, FIELDS)
    return "accepted" if status == 200 else answer.get("code", str(status))


def revoke(port, user):
    return request(port, "POST", "/revocations", json.dumps({"user_id": str(user)}), FIELDS)[0]
