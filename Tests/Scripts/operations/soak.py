"""Runs a mixed load for minutes, with rotations, reloads, forged tokens and slow clients. No request is lost, no client can cause
a 5xx, memory does not grow, and descriptors and threads end in the same numbers."""

import asyncio
import json
import os
import secrets
import time

import live
from harness import check
from live import APP_ID

from .crowd import Crowd
from .forged_keys import forged
from .world import Issuer, binary, verify_body

# The length of the load, without the warm-up before it.
MINUTES = float(os.environ.get("SOAK_MINUTES", "12"))
WARM_UP, ROTATION, RELOAD = 130, 15, 20
# A used nonce is remembered until a minute after its expiry, 120 s in all. The memory of nonces stops growing during the
# warm-up, so later growth has another cause.
NONCE_SECONDS = 60
# The requests of each kind a second.
RATES = {"good": 150, "refused": 50, "gateway": 60, "introspect": 10, "nonce": 10, "login": 5, "revoke": 0.5, "forged": 1,
         "broken": 10}
EXPECTED = {"good": {200}, "refused": {401}, "gateway": {200}, "introspect": {200}, "nonce": {200}, "login": {200},
            "revoke": {204}, "forged": {401, 429}, "broken": {400, 404, 405, 413, 415}}
BROKEN = [("/verify", "{"), ("/verify", "x" * 200_000), ("/nowhere", "{}"), ("/introspect", "{}"), ("/auth/%00", "")]


class Mixture:
    def __init__(self, issuer, service):
        self.issuer, self.service, self.crowd = issuer, service, Crowd(service.port)
        self.key = f"X-Api-Key: {service.key}\r\n"
        self.refused = [issuer.expired(), issuer.foreign(), "a.b.c"]
        self.memory = []
        self.renew()

    def renew(self):
        self.good = [self.issuer.token(sub=str(number)) for number in range(10)]

    def request(self, kind):
        token = secrets.choice(self.good)
        if kind == "good":
            return "/verify", verify_body(token), self.key
        if kind == "refused":
            return "/verify", verify_body(secrets.choice(self.refused)), self.key
        if kind == "gateway":
            return "/auth", "", f"Authorization: Bearer {token}\r\n", "GET"
        if kind == "introspect":
            return "/introspect", f"token={token}", self.key + "Content-Type: application/x-www-form-urlencoded\r\n"
        if kind == "nonce":
            return "/nonces", "{}", self.key
        if kind == "revoke":
            return "/revocations", json.dumps({"app_id": APP_ID, "user_id": str(10**9 + secrets.randbelow(1_000))}), self.key
        if kind == "forged":
            return "/verify", forged(), self.key
        path, body = secrets.choice(BROKEN)
        return path, body, self.key

    async def log_in(self, seconds):
        """Makes whole logins: a nonce, a token with it, its verdict, and the same request once more."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status, text = await self.crowd.send("nonce", "/nonces", "{}", self.key)
            if status == 200:
                nonce = json.loads(text)["nonce"]
                token = await asyncio.to_thread(lambda: self.issuer.token(nonce=nonce))
                body = json.dumps({"id_token": token, "issued_nonce": True})
                await self.crowd.send("login", "/verify", body, self.key)
                await self.crowd.send("refused", "/verify", body, self.key)
            await asyncio.sleep(1 / RATES["login"])

    async def slow(self, seconds):
        """Runs clients that begin a request and leave after a second."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            writers = [(await asyncio.open_connection("127.0.0.1", self.service.port))[1] for _ in range(20)]
            for writer in writers:
                writer.write(b"POST /verify HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{")
            await asyncio.sleep(1)
            for writer in writers:
                writer.close()

    async def operate(self, seconds):
        """Makes rotations and reloads."""
        end, rotated, reloaded = time.monotonic() + seconds, time.monotonic(), time.monotonic()
        while time.monotonic() < end:
            await asyncio.sleep(0.5)
            if time.monotonic() - rotated > ROTATION:
                rotated = time.monotonic()
                await asyncio.to_thread(self.rotate)
            if time.monotonic() - reloaded > RELOAD:
                reloaded = time.monotonic()
                self.service.hang_up()

    async def watch(self, seconds):
        """Records the memory every second, because it rises and falls with the stores' own rounds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.memory.append(self.service.memory())
            await asyncio.sleep(1)

    def rotate(self):
        self.issuer.rotate()
        self.renew()

    async def run(self, seconds):
        await asyncio.gather(
            *(self.crowd.at_rate(kind, rate, seconds, lambda kind=kind: self.request(kind))
              for kind, rate in RATES.items() if kind != "login"),
            self.log_in(seconds), self.slow(seconds), self.operate(seconds), self.watch(seconds))
        self.crowd.close()


def figures(service):
    """Descriptors and threads at rest."""
    time.sleep(3)
    return {"descriptors": service.descriptors(), "threads": service.status("Threads")}


def main():
    with Issuer() as issuer, live.Service(binary(), issuer.jwks_url, workers=2, audit_log="on",
                                          nonce_ttl_seconds=NONCE_SECONDS) as service:
        service.wait_until_ready()
        mixture = Mixture(issuer, service)
        asyncio.run(mixture.run(WARM_UP))
        before = figures(service)
        mixture.memory.clear()
        asyncio.run(mixture.run(60 * MINUTES))
        after = figures(service)
        counts = {kind: mixture.crowd.statuses(kind) for kind in EXPECTED}
        total = sum(sum(count.values()) for count in counts.values())
        busy = sum(count.pop(Crowd.BUSY, 0) for count in counts.values())
        wrong = {kind: count for kind, count in counts.items() if not set(count) <= EXPECTED[kind]}
        check(not wrong, f"soak of {MINUTES:g} min: {total} requests, of other outcomes {wrong}; all {counts}")
        check(all(count.get(0, 0) == 0 for count in counts.values()), "none is lost")
        # No client causes these refusals: the machine was late.
        check(busy <= total / 100, f"{busy} of {total} are refused because the machine is busy with other things")
        middle = len(mixture.memory) // 2
        first, second = max(mixture.memory[:middle]), max(mixture.memory[middle:])
        check(second <= 1.05 * first, f"memory: at most {first} KiB in the first half, {second} in the second")
        for name, value in before.items():
            check(after[name] <= 1.05 * value, f"{name}: {value} before, {after[name]} after")
        check(service.stop() == 0, "SIGTERM ends it with 0")
