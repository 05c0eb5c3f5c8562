"""The measurements themselves: each starts a server of its own and ends it."""

import json
import os
import pathlib
import resource
import signal
import socket
import statistics
import sys
import tempfile
import time

from . import peers
from .processes import HERE, Program, WORK, free_port, output
from .tokens import APP, post_verify, write_requests

TOOLS = HERE / ".build" / "release"
READY = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LIVE = READY.replace(b"readyz", b"livez")


class WrongAnswers(Exception):
    """A server did not answer every request with the status it owed: its figures mean nothing."""


class Bench:
    def __init__(self, binary, tokens, keys_url, rounds, seconds):
        self.binary, self.tokens, self.keys_url = binary, tokens, keys_url
        self.rounds, self.seconds = rounds, seconds
        self.good = write_requests("verify", peers.requests_for(None, tokens.tokens))

    def start(self, workers=1, cpus="0", apps=APP, environment=None, keys_url=None, path=None):
        port = path or free_port()
        listen = f"unix:{path}" if path else f"127.0.0.1:{port}"
        arguments = [self.binary, "serve", "--app-ids", apps, "--jwks-urls", keys_url or self.keys_url,
                     "--listen", listen, "--admin-listen", "127.0.0.1:0", "--workers", workers,
                     "--log-level", "error"]
        program = Program("limited-login", arguments, port, cpus, environment, READY)
        if not program.wait_until_ready():
            raise SystemExit(program.log.read_text())
        return program

    def bare(self, figure="mean_us"):
        return json.loads(output("taskset", "-c", "0", TOOLS / "bare-verify", WORK / "key.pem", WORK / "digest",
                                 WORK / "signature", 1))[figure]

    def load(self, program, file, connections=64, rate=0, status=200, seconds=None):
        text = output("taskset", "-c", "1", TOOLS / "load-generator", program.port, file, connections,
                      seconds or self.seconds, int(rate), status, program.pid)
        result = json.loads(text[text.index("{"):])
        if result["wrong"] or result["failed"] or not result["requests"]:
            raise WrongAnswers(f"{program.name}: {text}{program.log.read_text()[-500:]}")
        return result

    def rounds_of(self, name, program, file):
        """Full load, each round beside the bare verification; then half the throughput found, for latency."""
        full = []
        for _ in range(self.rounds):
            bare = self.bare()
            result = self.load(program, file)
            full.append(result | {"bare_us": bare, "ratio": result["cpu_us"] / bare})
        median = {key: statistics.median(result[key] for result in full) for key in full[0]}
        half = self.load(program, file, rate=median["per_second"] / 2)
        anonymous, resident = program.memory()
        return median | {"name": name, "half": half, "anonymous_kib": anonymous, "resident_kib": resident}

    def service(self, workers, cpus):
        return self.in_rounds(f"**limited-login**, {workers} worker" + ("s" if workers > 1 else ""), workers, cpus)

    def service_by_socket(self):
        """One worker on a Unix socket."""
        # Not in WORK, whose path may be longer than a socket's may be.
        with tempfile.TemporaryDirectory() as folder:
            return self.in_rounds("**limited-login**, 1 worker, Unix socket", 1, "0", f"{folder}/http.sock")

    def in_rounds(self, name, workers, cpus, path=None):
        program = self.start(workers, cpus, path=path)
        try:
            return self.rounds_of(name, program, self.good)
        finally:
            program.stop()

    def peer(self, name, program, style):
        file = self.good if style is None else write_requests("bearer", peers.requests_for(style, self.tokens.tokens))
        try:
            return self.rounds_of(name, program, file) if program.wait_until_ready() else None
        except WrongAnswers as error:
            print(f"{name} left out: {error}", file=sys.stderr)
            return None
        finally:
            program.stop()

    def floors(self):
        program = self.start()
        try:
            time.sleep(2)
            anonymous, resident = program.memory()
            wakeups = program.wakeups_per_second(10)
            idle = []
            for _ in range(1000):
                idle.append(socket.create_connection(("127.0.0.1", program.port)))
            time.sleep(1)
            each = (program.memory()[0] - anonymous) * 1024 / len(idle)
            for peer in idle:
                peer.close()
        finally:
            program.stop()
        starts = sorted(self.start_time() for _ in range(11))
        return {"anonymous_kib": anonymous, "resident_kib": resident, "wakeups_per_second": wakeups,
                "connection_bytes": each, "start_ms": statistics.median(starts),
                "binary_bytes": pathlib.Path(self.binary).stat().st_size}

    def start_time(self):
        """Milliseconds from the start of the process to the first answer on /livez."""
        port = free_port()
        program = Program("start", [self.binary, "serve", "--app-ids", APP, "--jwks-urls", self.keys_url, "--listen",
                                    f"127.0.0.1:{port}", "--admin-listen", "127.0.0.1:0", "--log-level", "error"], port)
        try:
            while time.monotonic() < program.started + 10:
                try:
                    with socket.create_connection(("127.0.0.1", port)) as peer:
                        peer.sendall(LIVE)
                        if peer.recv(4096).startswith(b"HTTP/1.1 200"):
                            return (time.monotonic() - program.started) * 1000
                except OSError:
                    time.sleep(0.0005)
            raise SystemExit("the service does not start")
        finally:
            program.stop()

    def allocations(self, requests=4000):
        """Heap allocations of one accepted request in steady state, counted by a preloaded interposer."""
        file = WORK / "allocations"
        environment = dict(os.environ, LD_PRELOAD=str(TOOLS / "libAllocationCounter.so"),
                           ALLOCATION_COUNT_FILE=str(file))
        program = self.start(environment=environment)

        def count():
            file.write_text("")
            os.kill(program.pid, signal.SIGUSR2)
            end = time.monotonic() + 5
            while time.monotonic() < end:
                text = file.read_text()
                if len(text) == 42:
                    return int(text.split()[0])
                time.sleep(0.005)
            raise SystemExit("the allocation counter does not answer")

        def ask(number):
            with socket.create_connection(("127.0.0.1", program.port)) as peer:
                for index in range(number):
                    entry = self.tokens.tokens[index % len(self.tokens.tokens)]
                    peer.sendall(post_verify({"id_token": entry["id_token"], "nonce": entry["nonce"]}))
                    answer = b""
                    while b"\r\n\r\n" not in answer:
                        answer += peer.recv(65536)
                    if not answer.startswith(b"HTTP/1.1 200"):
                        raise SystemExit(answer.decode())
                    head, _, body = answer.partition(b"\r\n\r\n")
                    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                    while len(body) < length:
                        body += peer.recv(65536)

        try:
            ask(1000)
            before = count()
            ask(requests)
            return (count() - before) / requests
        finally:
            program.stop()

    def cost(self, program, requests, status=200):
        file = write_requests("one", requests)
        bare = self.bare()
        result = self.load(program, file, status=status, seconds=3)
        return {"cpu_us": result["cpu_us"], "ratio": result["cpu_us"] / bare}

    def rejections(self):
        """What a refusal costs, by its cause."""
        entries = self.tokens.tokens[:2000]
        expired = self.tokens.data["special"]["expired"]

        def replaced(token, part, change):
            parts = token.split(".")
            parts[part] = change(parts[part])
            return ".".join(parts)

        def asked(change, nonce=None):
            return [post_verify({"id_token": change(entry["id_token"]), "nonce": nonce or entry["nonce"]})
                    for entry in entries]

        flip = lambda text: text[:40] + ("A" if text[40] != "A" else "B") + text[41:]
        unknown = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6InVua25vd24ifQ"
        cases = {
            "accepted": (asked(lambda token: token), 200),
            "bad signature": (asked(lambda token: replaced(token, 2, flip)), 401),
            "nonce of another login": (asked(lambda token: token, "another"), 401),
            "expired": (asked(lambda token: expired), 401),
            "unknown key": (asked(lambda token: replaced(token, 0, lambda _: unknown)), 401),
            "malformed token": (asked(lambda token: token.replace(".", "!", 1)), 401),
            "malformed JSON": ([request[:-1] + b"!" for request in asked(lambda token: token)], 400),
        }
        program = self.start()
        try:
            return {name: self.cost(program, requests, status) for name, (requests, status) in cases.items()}
        finally:
            program.stop()

    def curves(self):
        """How the cost grows with the number of apps, keys, connections and workers, and with the token's size."""
        curves = {"apps": {}, "keys": {}, "token bytes": {}, "connections": {}, "workers": {}}
        requests = peers.requests_for(None, self.tokens.tokens[:5000])

        def measured(curve, size, program, requests=requests):
            try:
                curves[curve][size] = self.cost(program, requests)
            finally:
                program.stop()

        for count in (1, 100, 10_000, 100_000):
            config = WORK / "apps.json"
            others = [str(5_000_000_000_000_000 + index) for index in range(count - 1)]
            config.write_text(json.dumps({"app_ids": others + [APP]}))
            measured("apps", count, self.start_with(config))
        for count in (2, 8, 64):
            url = self.tokens.serve_keys(count - len(self.tokens.data["jwks"]["keys"]))
            measured("keys", count, self.start(keys_url=url))
        special = self.tokens.data["special"]
        nonce = self.tokens.tokens[2]["nonce"]
        for token in [special["small"]] + list(special["sizes"].values()):
            measured("token bytes", len(token), self.start(), [post_verify({"id_token": token, "nonce": nonce})])
        for count in range(1, len(os.sched_getaffinity(0)) + 1):
            measured("workers", count, self.start(workers=count, cpus=None))
        curves["connections"] = self.connection_curve()
        return curves

    def connection_curve(self):
        """All connections in turn, at a third of what the service can do: with every one of thousands busy it would
        rightly refuse some for overload. Ends earlier where fewer descriptors may be open."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        curve = {}
        program = self.start()
        try:
            rate = self.load(program, self.good, seconds=3)["per_second"] / 3
            for count in (1, 10, 100, 1000, 9_900):
                if count + 100 > most:
                    break
                bare = self.bare()
                result = self.load(program, self.good, connections=count, rate=rate, seconds=5)
                curve[count] = {"cpu_us": result["cpu_us"], "ratio": result["cpu_us"] / bare}
        finally:
            program.stop()
        return curve

    def start_with(self, config):
        port = free_port()
        program = Program("limited-login", [
            self.binary, "serve", "--config", config, "--jwks-urls", self.keys_url, "--listen", f"127.0.0.1:{port}",
            "--admin-listen", "127.0.0.1:0", "--workers", "1", "--log-level", "error"], port, "0", probe=READY)
        if not program.wait_until_ready():
            raise SystemExit(program.log.read_text())
        return program
