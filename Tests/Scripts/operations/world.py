"""Files, certificates and load around the service and its stand-in issuer, as real processes on loopback."""

import json
import os
import re
import signal
import subprocess

import attack_parts
import live
from harness import ROOT, check

def binary():
    """The program under test: that of the environment, else the newest build."""
    if named := os.environ.get("LIMITED_LOGIN_BINARY"):
        return os.path.abspath(named)
    found = [ROOT / ".build" / kind / "limited-login" for kind in ("release", "debug")]
    found = [path for path in found if path.exists()]
    if not found:
        raise SystemExit("nothing is built: swift build")
    return str(max(found, key=lambda path: path.stat().st_mtime))


class Stays:
    """A process that must not end before its `with` block does."""

    def __exit__(self, *_):
        if self.process.poll() is not None:
            check(False, f"{self.process.args[0]} ended by itself with {self.process.returncode}: {self.output()[-2000:]}")
        self.stop()


class Program(Stays, live.Process):
    """A gateway, or another program beside the service."""

    def __init__(self, folder, command):
        super().__init__([str(part) for part in command], directory=folder.path)


class Issuer(Stays, live.Issuer):
    """The stand-in issuer."""

    def __init__(self):
        super().__init__(binary())


class Service(Stays, live.Server):
    """`limited-login serve`, by default on free ports."""

    def __init__(self, issuer, port=0, admin_port=0, **settings):
        super().__init__(binary(), issuer.jwks_url, listen=f"127.0.0.1:{port}", admin_listen=f"127.0.0.1:{admin_port}",
                         **settings)
        self.wait_until_ready()

    def remove(self):
        """Removes the remains of an ended process."""


def verify_body(token, nonce="n-1"):
    return json.dumps({"id_token": token, "nonce": nonce})


class Certificates:
    """An authority and its certificates, made by openssl."""

    def __init__(self, folder):
        self.folder, self.authority = folder, str(folder.path / "ca.pem")
        attack_parts.authority(folder)

    def issue(self, name):
        """Makes a certificate for localhost, good for servers and clients; returns its file and that of its key."""
        attack_parts.certificate(self.folder, name, "DNS:localhost,IP:127.0.0.1", "serverAuth,clientAuth")
        file, key = (self.folder.path / f"{name}.{kind}" for kind in ("pem", "key"))
        key.chmod(0o644)
        return str(file), str(key)


class Wrk:
    """A load of `POST /verify` by wrk for some seconds."""

    SCRIPT = """
        local bodies = {%s}
        local keys = {%s}
        local number = 0
        wrk.method = "POST"
        wrk.headers["Content-Type"] = "application/json"
        request = function()
            number = number + 1
            if #keys > 0 then wrk.headers["X-Api-Key"] = keys[number %% #keys + 1] end
            return wrk.format(nil, "/verify", nil, bodies[number %% #bodies + 1])
        end
        done = function(summary, latency)
            io.write(string.format("RESULT %%d %%d %%d %%d %%d %%d %%d\\n", summary.requests, summary.errors.status,
                summary.errors.connect, summary.errors.read, summary.errors.write, summary.errors.timeout,
                latency:percentile(99)))
        end
    """

    def __init__(self, folder, url, bodies, seconds, connections=64, threads=1, name="wrk", keys=()):
        lists = [",".join(f"'{text}'" for text in texts) for texts in (bodies, keys)]
        script = folder.write(f"{name}.lua", self.SCRIPT % tuple(lists))
        self.process = subprocess.Popen(
            ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", script, url],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def is_running(self):
        return self.process.poll() is None

    def stop(self):
        """Ends the load early; wrk still reports."""
        self.process.send_signal(signal.SIGINT)

    def result(self):
        """The answered requests, those of them without a 2xx, the socket errors, and the p99 in microseconds."""
        output = self.process.communicate()[0]
        found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", output)
        if not found:
            raise SystemExit("wrk: " + output)
        numbers = [int(number) for number in found.groups()]
        return numbers[0], numbers[1], sum(numbers[2:6]), numbers[6]
