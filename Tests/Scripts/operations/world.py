"""The service, its stand-in issuer and load, as real processes on loopback."""

import json
import re
import signal
import subprocess

import live
from harness import build, check


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
        super().__init__(build())


class Service(Stays, live.Server):
    """`limited-login serve`, by default on free ports."""

    def __init__(self, issuer, port=0, admin_port=0, **settings):
        super().__init__(build(), issuer.jwks_url, listen=f"127.0.0.1:{port}", admin_listen=f"127.0.0.1:{admin_port}",
                         **settings)
        self.wait_until_ready()

    def remove(self):
        """Removes the remains of an ended process."""


def verify_body(token, nonce="n-1"):
    return json.dumps({"id_token": token, "nonce": nonce})


class Wrk:
    """A load of `POST /verify` by wrk for some seconds."""

    SCRIPT = """
        local bodies = {%s}
        local number = 0
        wrk.method = "POST"
        wrk.headers["Content-Type"] = "application/json"
        wrk.headers["X-Api-Key"] = "%s"
        request = function()
            number = number + 1
            return wrk.format(nil, "/verify", nil, bodies[number %% #bodies + 1])
        end
        done = function(summary, latency)
            io.write(string.format("RESULT %%d %%d %%d %%d %%d %%d %%d\\n", summary.requests, summary.errors.status,
                summary.errors.connect, summary.errors.read, summary.errors.write, summary.errors.timeout,
                latency:percentile(99)))
        end
    """

    def __init__(self, folder, url, bodies, seconds, connections=64, key=""):
        script = folder.write("wrk.lua", self.SCRIPT % (",".join(f"'{body}'" for body in bodies), key))
        self.process = subprocess.Popen(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", script, url],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def stop(self, what, allowed=lambda: 0):
        """Ends the load early, after what has been done under it; wrk still reports."""
        check(self.process.poll() is None, f"{what} while the load lasted")
        self.process.send_signal(signal.SIGINT)
        self.judge("meanwhile", 1_000, allowed())

    def judge(self, when, least, allowed=0):
        """Checks that so many requests were answered, all but the allowed number by a 2xx, and that no connection broke."""
        output = self.process.communicate()[0]
        found = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", output)
        if not found:
            raise SystemExit("wrk: " + output)
        count, failed, *broken, slow = (int(number) for number in found.groups())
        check(count > least and failed <= allowed and not sum(broken),
              f"{count} requests {when}, {failed} without a 2xx (at most {allowed}), {sum(broken)} broken, p99 {slow} µs")
