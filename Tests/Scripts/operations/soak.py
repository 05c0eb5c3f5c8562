"""Runs a mixed load for minutes, with rotations, reloads, forged tokens and slow clients. No request is lost, no client can cause
a 5xx, memory does not grow, and descriptors and threads end in the same numbers."""

import collections
import concurrent.futures
import functools
import json
import os
import secrets
import time

import live
from attack_parts import close, post
from flood_parts import Clients, Exchange
from harness import build, check

from .forged_keys import forged
from .world import Issuer, verify_body

# The length of the load, without the warm-up before it.
MINUTES = float(os.environ.get("SOAK_MINUTES", "12"))
WARM_UP, ROTATION, RELOAD = 130, 15, 20
# A used nonce is remembered until a minute after its expiry, 120 s in all. The memory of nonces stops growing during the
# warm-up, so later growth has another cause.
NONCE_SECONDS = 60
# The requests of each kind a second, and the whole logins.
RATES = {"good": 150, "refused": 50, "gateway": 60, "introspect": 10, "nonce": 10, "revoke": 0.5, "forged": 1, "broken": 10}
LOGINS = 5
EXPECTED = {"good": {200}, "refused": {401}, "gateway": {200}, "introspect": {200}, "nonce": {200}, "login": {200},
            "revoke": {204}, "forged": {401, 429}, "broken": {400, 404, 405, 413, 415}}
BROKEN = [("/verify", "{"), ("/verify", "x" * 200_000), ("/nowhere", "{}"), ("/introspect", "{}"), ("/auth/%00", "")]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Mixture:
    def __init__(self, issuer, service):
        self.issuer, self.service, self.memory = issuer, service, []
        self.refused = [issuer.expired(), issuer.foreign(), "a.b.c"]
        self.statuses = {kind: collections.Counter() for kind in EXPECTED}
        self.rotate()

    def rotate(self):
        self.issuer.rotate()
        self.good = [self.issuer.token(sub=str(number)) for number in range(10)]

    def request(self, kind):
        token = secrets.choice(self.good)
        if kind == "gateway":
            return f"GET /auth HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        path, body, fields = {
            "good": lambda: ("/verify", verify_body(token), {}),
            "refused": lambda: ("/verify", verify_body(secrets.choice(self.refused)), {}),
            "introspect": lambda: ("/introspect", f"token={token}", FORM),
            "nonce": lambda: ("/nonces", "{}", {}),
            "revoke": lambda: ("/revocations", json.dumps({"user_id": str(10**9 + secrets.randbelow(1_000))}), {}),
            "forged": lambda: ("/verify", verify_body(forged()), {}),
            "broken": lambda: (*secrets.choice(BROKEN), {}),
        }[kind]()
        return post(path, body, self.service.fields | fields)

    def send(self, kind, end):
        clients = Clients(self.service.port, 20)
        clients.send_at(RATES[kind], lambda _: self.request(kind), lambda _: time.monotonic() < end)
        clients.settle(20)
        self.statuses[kind] += clients.statuses

    def log_in(self, end):
        """Makes whole logins: a nonce, a token with it, its verdict, and the same request once more."""
        clients = Exchange(self.service.port)

        def ask(kind, path, body):
            [(status, text)] = clients.ask([post(path, body, self.service.fields)])
            self.statuses[kind][Clients.BUSY if b'"overloaded"' in text else status] += 1
            return status, text

        while time.monotonic() < end:
            status, text = ask("nonce", "/nonces", "{}")
            if status == 200:
                nonce = json.loads(text)["nonce"]
                body = json.dumps({"id_token": self.issuer.token(nonce=nonce), "issued_nonce": True})
                ask("login", "/verify", body)
                ask("refused", "/verify", body)
            time.sleep(1 / LOGINS)

    def slow(self, end):
        """Runs clients that begin a request and leave after a second."""
        while time.monotonic() < end:
            clients = [self.service.connect() for _ in range(20)]
            for client in clients:
                client.sendall(b"POST /verify HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
            time.sleep(1)
            close(clients)

    def operate(self, end):
        """Makes rotations and reloads, and records the memory every second: it rises and falls with the stores' own rounds."""
        seconds = 0
        while time.monotonic() < end:
            time.sleep(1)
            seconds += 1
            if seconds % ROTATION == 0:
                self.rotate()
            if seconds % RELOAD == 0:
                self.service.hang_up()
            self.memory.append(self.service.memory())

    def run(self, seconds):
        end = time.monotonic() + seconds
        work = [functools.partial(self.send, kind) for kind in RATES] + [self.log_in, self.slow, self.operate]
        with concurrent.futures.ThreadPoolExecutor(len(work)) as pool:
            for done in [pool.submit(one, end) for one in work]:
                done.result()


def figures(service):
    """Descriptors and threads at rest."""
    time.sleep(3)
    return {"descriptors": service.descriptors(), "threads": service.status("Threads")}


def main():
    with Issuer() as issuer, live.Service(build(), issuer.jwks_url, workers=2, audit_log="on",
                                          nonce_ttl_seconds=NONCE_SECONDS) as service:
        service.wait_until_ready()
        mixture = Mixture(issuer, service)
        mixture.run(WARM_UP)
        before = figures(service)
        mixture.memory.clear()
        mixture.run(60 * MINUTES)
        after, counts = figures(service), mixture.statuses
        total = sum(count.total() for count in counts.values())
        busy = sum(count.pop(Clients.BUSY, 0) for count in counts.values())
        wrong = {kind: count for kind, count in counts.items() if not set(count) <= EXPECTED[kind]}
        check(not wrong, f"soak of {MINUTES:g} min: {total} requests, of other outcomes {wrong}; all "
              f"{ {kind: dict(count) for kind, count in counts.items()} }")
        # No client causes these refusals: the machine was late.
        check(busy <= total / 100, f"{busy} of {total} are refused because the machine is busy with other things")
        middle = len(mixture.memory) // 2
        first, second = max(mixture.memory[:middle]), max(mixture.memory[middle:])
        check(second <= 1.05 * first, f"memory: at most {first} KiB in the first half, {second} in the second")
        for name, value in before.items():
            check(after[name] <= 1.05 * value, f"{name}: {value} before, {after[name]} after")
        check(service.stop() == 0, "SIGTERM ends it with 0")
