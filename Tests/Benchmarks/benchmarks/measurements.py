"""The measurements themselves: each starts a server of its own and ends it."""

import contextlib
import json
import pathlib
import statistics
import sys
import time

from . import peers
from .processes import BUILT, WORK, Program, connect, free_path, harness, live, output, request
from .tokens import APP, BoundTokens, ask, keyed, post_token, post_verify, write_requests

READY = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LIVE = READY.replace(b"readyz", b"livez")
GATEWAY, CALLER_KEY = ("--gateway", "enabled"), "llk_" + "5a" * 32
LEAST = "least possible: receive, hash, send"


def medians(results):
    return {key: statistics.median(result[key] for result in results) for key in results[0]}


class WrongAnswers(Exception):
    """A server did not answer every request with the expected status, so its figures mean nothing."""


class Bench:
    def __init__(self, binary, tokens, keys_url, rounds, seconds):
        self.binary, self.tokens, self.keys_url = binary, tokens, keys_url
        self.rounds, self.seconds = rounds, seconds
        self.good = write_requests("verify", peers.requests_for(None, tokens.tokens))

    def start(self, workers=1, cpus="0", environment=None, keys_url=None, unix=False, more=(), binary=None):
        address = free_path() if unix else harness.free_port()
        arguments = [binary or self.binary, "serve", "--app-ids", APP, "--jwks-urls", keys_url or self.keys_url,
                     "--listen", f"unix:{address}" if unix else f"127.0.0.1:{address}", "--admin-listen", "127.0.0.1:0",
                     "--workers", workers, "--log-level", "error", *more]
        return Program("limited-login", arguments, address, cpus, environment, READY).ready()

    def bare(self):
        return json.loads(output("taskset", "-c", "0", BUILT / "bare-verify", WORK / "key.pem", WORK / "digest",
                                 WORK / "signature", 1))["mean_us"]

    def load(self, program, file, connections=64, rate=0, status=200, seconds=None):
        text = output("taskset", "-c", "1", BUILT / "load-generator", program.address, file, connections,
                      seconds or self.seconds, int(rate), status, program.pid)
        result = json.loads(text[text.index("{"):])
        if result["wrong"] or result["failed"] or not result["requests"]:
            raise WrongAnswers(f"{program.name}: {text}{program.output()[-500:]}")
        return result

    def rounds_of(self, name, program, file):
        """Measures full load, each round beside the bare verification; then, for latency, as many rounds at half of it."""
        full = []
        for _ in range(self.rounds):
            bare = self.bare()
            result = self.load(program, file)
            full.append(result | {"bare_us": bare, "ratio": result["cpu_us"] / bare})
        median = medians(full)
        half = medians([self.load(program, file, rate=median["per_second"] / 2) for _ in range(self.rounds)])
        return median | {"name": name, "half": half, "anonymous_kib": program.memory(), "resident_kib": program.resident()}

    def service(self, workers, cpus, unix=False):
        name = f"**limited-login**, {workers} worker" + ("s" if workers > 1 else "") + (", Unix socket" if unix else "")
        with self.start(workers, cpus, unix=unix) as program:
            return self.rounds_of(name, program, self.good)

    def least(self, unix=False):
        """Measures a loop that only receives, hashes, verifies and sends as many bytes as the service would."""
        with self.start() as program:
            answer = request(program.address, ask(self.tokens.tokens[0]).replace(b"Host:", b"Connection: close\r\nHost:", 1))
        with self.start_least(len(answer.partition(b"\r\n\r\n")[2]), unix=unix) as program:
            return self.rounds_of("least possible: receive, verify, send" + (", Unix socket" if unix else ""), program, self.good)

    def start_least(self, answer_bytes, verifying=True, unix=False):
        address = free_path() if unix else harness.free_port()
        signed = self.tokens.tokens[0]["id_token"].rpartition(".")[0]
        return Program("least-server", [
            BUILT / "least-server", address, WORK / "key.pem" if verifying else "-", WORK / "digest", WORK / "signature",
            len(signed), answer_bytes], address, "0").ready()

    def gateway(self, with_peers=True):
        """Measures the cost of each request for a gateway: `/auth` beside other servers in its place.

        Two starts of one program differ by some per cent, so all servers are started again every few turns. The ratio is to
        the least possible without a verification in the same turn."""
        turns = [turn for _ in range(2 * self.rounds) for turn in self.gateway_turns(with_peers)]
        return {name: {kind: {
            "cpu_us": statistics.median(turn[kind][name] for turn in turns),
            "ratio": statistics.median(turn[kind][name] / turn[kind][LEAST] for turn in turns),
        } for kind in ("again", "distinct")} for name in turns[0]["again"]}

    def gateway_turns(self, with_peers):
        """Starts all servers and measures a few turns. The servers run together and take turns, so that other work of the
        machine affects all of them alike."""
        service = self.start(more=GATEWAY)
        asked = peers.auth(self.tokens.tokens[0]["id_token"])
        answer = request(service.address, asked.replace(b"Host:", b"Connection: close\r\nHost:", 1))
        # Subtract the head of the least server's answer, and the field that this request caused.
        body = len(answer) - len(b"Connection: close\r\nHTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n")
        servers = {
            LEAST: (self.start_least(body, verifying=False), peers.auth),
            "least possible: receive, verify, send": (self.start_least(body), peers.auth),
            "**limited-login** `/auth`": (service, peers.auth),
            "the same, `signature_cache_entries: 0`":
                (self.start(more=(*GATEWAY, "--signature-cache-entries", "0")), peers.auth),
            "**limited-login** `/auth`, Unix socket": (self.start(more=GATEWAY, unix=True), peers.auth),
        }
        for start in peers.GATEWAY_PEERS.values() if with_peers else ():
            name, program, style = start(self.tokens) or (None, None, None)
            if program and program.is_ready():
                servers[name] = (program, style)
        begin = dict.fromkeys(servers, 0)
        turns = []
        try:
            for _ in range(4):
                turn = {"again": {}, "distinct": {}}
                for name, (program, style) in servers.items():
                    file = write_requests("again", peers.requests_for(style, self.tokens.tokens[:200]))
                    turn["again"][name] = self.load(program, file, seconds=1)["cpu_us"]
                for name, (program, style) in servers.items():
                    turn["distinct"][name], begin[name] = self.distinct(program, style, begin[name], seconds=1)
                turns.append(turn)
        finally:
            for program, _ in servers.values():
                program.stop()
        # The memories of signatures fill in the first turn.
        return turns[1:]

    def distinct(self, program, style, begin, seconds):
        """Measures a turn that begins at the token after the last turn's, so that no memory of 10,000 has seen its tokens.
        Returns the cost of a request, and the beginning of the next turn."""
        everything = self.tokens.tokens
        file = write_requests("distinct", peers.requests_for(style, everything[begin:] + everything[:begin]))
        result = self.load(program, file, seconds=seconds)
        return result["cpu_us"], (begin + int(result["requests"] * 1.4)) % len(everything)

    def proofs(self):
        """Measures `/auth` with 200 tokens over and over, each request with a DPoP proof of its own."""
        bound = BoundTokens(self.binary)
        again = write_requests("auth-again", peers.requests_for(peers.auth, self.tokens.tokens[:200]))
        costs = []
        with self.start(keys_url=bound.keys_url, more=(*GATEWAY, "--replay-store-capacity", "1000000")) as program, \
                self.start_least(300, verifying=False) as least, contextlib.closing(bound):
            # A proof's time is in whole seconds. The service refuses a proof from before its memory began.
            time.sleep(2)
            for _ in range(3):
                # More proofs than one processor can judge in a second.
                file = write_requests("auth-proofs", bound.requests(16_000))
                floor = self.load(least, again, seconds=1)["cpu_us"]
                # Use few connections: on a busy machine the service would refuse a queue of expensive requests as overload.
                costs.append((self.load(program, file, connections=8, seconds=1)["cpu_us"], floor))
        return {"cpu_us": statistics.median(cost for cost, _ in costs),
                "ratio": statistics.median(cost / floor for cost, floor in costs)}

    def peer(self, name, program, style):
        file = self.good if style is None else write_requests("bearer", peers.requests_for(style, self.tokens.tokens))
        with program:
            try:
                return self.rounds_of(name, program, file) if program.is_ready() else None
            except WrongAnswers as error:
                print(f"{name} left out: {error}", file=sys.stderr)
                return None

    def floors(self):
        with self.start() as program:
            time.sleep(2)
            anonymous, resident = program.memory(), program.resident()
            wakeups = program.wakeups_per_second(10)
            idle = [connect(program.address) for _ in range(1000)]
            time.sleep(1)
            each = (program.memory() - anonymous) * 1024 / len(idle)
            for peer in idle:
                peer.close()
        starts = sorted(self.start_time() for _ in range(11))
        return {"anonymous_kib": anonymous, "resident_kib": resident, "wakeups_per_second": wakeups,
                "connection_bytes": each, "start_ms": statistics.median(starts),
                "binary_bytes": pathlib.Path(self.binary).stat().st_size}

    def start_time(self):
        """Milliseconds from the start of the process to the first answer on /livez."""
        port = harness.free_port()
        with Program("start", [self.binary, "serve", "--app-ids", APP, "--jwks-urls", self.keys_url, "--listen",
                               f"127.0.0.1:{port}", "--admin-listen", "127.0.0.1:0", "--log-level", "error"], port) as program:
            if not harness.until(lambda: request(port, LIVE).startswith(b"HTTP/1.1 200"), 10, 0.0005):
                raise SystemExit("the service does not start")
            return (time.monotonic() - program.started) * 1000

    def cost(self, program, requests, status=200):
        file = write_requests("one", requests)
        bare = self.bare()
        result = self.load(program, file, status=status, seconds=3)
        return {"cpu_us": result["cpu_us"], "ratio": result["cpu_us"] / bare}

    def rejections(self):
        """The cost of a refusal, by its cause."""
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
        with self.start() as program:
            return {name: self.cost(program, requests, status) for name, (requests, status) in cases.items()}

    def exchange(self):
        """Compares the cost of `POST /token` with `POST /verify` of the same tokens and caller, and with OpenSSL's signature.
        Each turn measures everything, one after the other; each ratio is of two values of one turn."""
        measured = [turn for _ in range(self.rounds) for turn in self.exchange_turns()]
        ratios = {
            "ES256": [turn["ES256"] / turn["verify"] for turn in measured],
            "RS256": [(turn["RS256"] - turn["verify"]) / turn["bare RS256"] for turn in measured],
        }
        return {"cpu_us": medians(measured), "turns": len(measured),
                "ratio": {name: statistics.median(values) for name, values in ratios.items()}}

    def exchange_turns(self):
        """Starts two services, one for each kind of key, and measures a few turns."""
        clients = WORK / "client-keys"
        clients.write_text(live.client_line("bench", CALLER_KEY))
        entries = self.tokens.tokens[:2000]
        verify = write_requests("keyed", [keyed(request, CALLER_KEY) for request in peers.requests_for(None, entries)])
        token = write_requests("token", [keyed(post_token(entry), CALLER_KEY) for entry in entries])
        programs, keys, found = {}, {}, []
        for name, more in (("RS256", ()), ("ES256", ("--ec",))):
            key = harness.output([self.binary, "signing-key", "new", *more])
            keys[name] = harness.Folder(WORK).write(f"signing-key-{name}.pem", key)
            programs[name] = self.start(more=("--client-keys-file", clients, "--issuer", "https://login.example.com",
                                              "--signing-keys-file", keys[name]))

        def cost(program, file):
            # Use few connections: on a busy machine the service would refuse a queue of expensive requests as overload.
            return self.load(program, file, connections=8, seconds=1)["cpu_us"]

        try:
            for _ in range(5):
                turn = {"verify": 0}
                for name, program in programs.items():
                    bare = output("taskset", "-c", "0", BUILT / "bare-verify", keys[name], 0.5)
                    turn[f"bare {name}"] = json.loads(bare)["mean_us"]
                    turn[name] = cost(program, token)
                    turn["verify"] += cost(program, verify) / len(programs)
                found.append(turn)
        finally:
            for program in programs.values():
                program.stop()
        # The first turn warms the services up.
        return found[1:]
