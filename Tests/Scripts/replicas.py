"""Replicas of the service that share a secret, and the stand-in issuer of their tokens."""

import json
import pathlib
import subprocess
import tempfile
import time

import live


class Fleet:
    """Replicas that share a secret, and an issuer."""

    def __init__(self, binary, count, environment=None, waits=True):
        self.binary = binary
        self.folder = tempfile.TemporaryDirectory()
        self.secret_file = pathlib.Path(self.folder.name) / "secret"
        self.secrets = [self.new_secret()]
        self.write()
        self.issuer = live.Process([binary, "issuer", "--listen", "127.0.0.1:0"])
        self.issuer_port = int(self.issuer.find(r"stand-in issuer on http://127\.0\.0\.1:(\d+)"))
        self.keys_url = f"http://127.0.0.1:{self.issuer_port}/.well-known/oauth/openid/jwks/"
        variables = {
            "LIMITED_LOGIN_APP_IDS": live.APP_ID, "LIMITED_LOGIN_LISTEN": "127.0.0.1:0",
            "LIMITED_LOGIN_ADMIN_LISTEN": "127.0.0.1:0", "LIMITED_LOGIN_LOG_FORMAT": "json",
            "LIMITED_LOGIN_JWKS_URLS": self.keys_url,
            "LIMITED_LOGIN_NONCE_SECRET_FILE": str(self.secret_file),
        }
        self.services = [live.Process([binary, "serve"], variables | (environment or {})) for _ in range(count)]
        self.ports = [int(service.find(r'"address":"127\.0\.0\.1:(\d+)"')) for service in self.services]
        for port in self.ports:
            while waits and request(port, "GET", "/readyz")[0] != 200:
                time.sleep(0.01)

    def new_secret(self):
        return subprocess.run([self.binary, "nonce", "secret"], check=True, capture_output=True, text=True).stdout.strip()

    def write(self):
        new = self.secret_file.with_suffix(".new")
        new.write_text("\n".join(self.secrets) + "\n")
        new.rename(self.secret_file)

    def nonce(self, replica=0):
        while True:
            status, answer = request(self.ports[replica % len(self.ports)], "POST", "/nonces", "{}")
            if status == 200:
                return answer["nonce"]
            if status != 503:
                raise RuntimeError(f"/nonces answers {status} {answer}")
            time.sleep(0.01)

    def use(self, nonce):
        """The body of a request that uses the nonce up."""
        token = request(self.issuer_port, "POST", "/tokens", json.dumps({"nonce": nonce}))[1]["id_token"]
        return json.dumps({"id_token": token, "issued_nonce": True})

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
