#!/usr/bin/env python3
"""Revokes logins on one replica and lets another one judge their tokens, while the Redis server of both is killed, hung,
emptied and restarted under load.

usage: revocation_test.py [--binary FILE]
No token is accepted that a replica knew as revoked, and no verdict waits. The exit code is 1 if a bound is broken. Without
redis-server (REDIS_SERVER may name another, such as valkey-server) the test is skipped.
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import socket
import sys
import tempfile
import threading
import time

import live
import redis_groups
from live import check
from replicas import Fleet, request

KEY = "a-key-for-these-tests"
FIELDS = {"X-Api-Key": KEY}


class KeyedFleet(Fleet):
    """Replicas that demand a key of their callers."""

    def __init__(self, binary, count, environment=None, waits=True):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
            keys.write(f"test {hashlib.sha256(KEY.encode()).hexdigest()}\n")
            keys.flush()
            super().__init__(binary, count, {"LIMITED_LOGIN_CLIENT_KEYS_FILE": keys.name} | (environment or {}), waits)

    def token(self, user, age=30):
        """The body of a request about a token that was issued some seconds ago."""
        now = int(time.time())
        claims = {"sub": str(user), "nonce": "n-1", "iat": now - age, "exp": now + 3600}
        token = request(self.issuer_port, "POST", "/tokens", json.dumps(claims))[1]["id_token"]
        return json.dumps({"id_token": token, "nonce": "n-1"})


def outcome(port, body):
    status, answer = request(port, "POST", "/verify", body, FIELDS)
    return "accepted" if status == 200 else answer.get("code", str(status))


def revoke(port, user):
    return request(port, "POST", "/revocations", json.dumps({"user_id": str(user)}), FIELDS)[0]


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


class Load:
    """Threads that let every replica judge tokens."""

    def __init__(self, fleet, users=400):
        self.fleet = fleet
        self.good = [fleet.token(9_000_000 + number) for number in range(20)]
        self.bodies = {user: fleet.token(user) for user in range(1, users + 1)}
        self.revoked = []
        self.answers = {}
        self.accepted_after = 0
        self.wrong = []
        self.times = []
        self.over = threading.Event()
        self.lock = threading.Lock()

    def judge(self, number):
        port = self.fleet.ports[number % 2]
        turn = 0
        while not self.over.is_set():
            turn += 1
            with self.lock:
                known = self.revoked[-1 - turn % 50 :: -37][:3]
            for user, replica in known:
                # This replica took the revocation, so it must know it in any state of Redis.
                if replica == number % 2 and (code := outcome(port, self.bodies[user])) != "login_revoked":
                    with self.lock:
                        self.wrong.append((user, code))
            body = self.good[turn % len(self.good)]
            began = time.monotonic()
            code = outcome(port, body)
            took = time.monotonic() - began
            with self.lock:
                self.times.append(took)
                if code != "accepted":
                    self.wrong.append(("good", code))

    def revoke(self):
        for user in self.bodies:
            if self.over.is_set():
                return
            status = revoke(self.fleet.ports[user % 2], user)
            with self.lock:
                self.answers[status] = self.answers.get(status, 0) + 1
                self.revoked.append((user, user % 2))
            time.sleep(0.02)

    def run(self, during):
        threads = [threading.Thread(target=self.judge, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            time.sleep(2)
            with self.lock:
                quiet, self.times = self.times, []
            revoker = threading.Thread(target=self.revoke)
            threads.append(revoker)
            revoker.start()
            during()
            with self.lock:
                disturbed = self.times
        finally:
            self.over.set()
            for thread in threads:
                thread.join()
        return quiet, disturbed


def disturbed(binary):
    server = redis_groups.started()
    fleet = KeyedFleet(binary, 2, {"LIMITED_LOGIN_REPLAY_STORE": f"redis://127.0.0.1:{server.port}"})

    def kill():
        server.kill()
        time.sleep(0.5)
        server.start()

    def hang():
        server.hang()
        time.sleep(1.5)
        server.go_on()

    def empty():
        with socket.create_connection(("127.0.0.1", server.port), 5) as client:
            client.sendall(b"FLUSHALL\r\n")
            client.recv(64)

    def all_of_them():
        for disturb in (kill, hang, empty, kill, empty, hang):
            time.sleep(1)
            disturb()
        time.sleep(3)

    try:
        load = Load(fleet)
        quiet, busy = load.run(all_of_them)
        check(not load.wrong, f"disturbed: {len(load.revoked)} logins revoked ({load.answers}), {len(busy)} good tokens "
              f"accepted, no known revocation forgotten {load.wrong[:5]}")
        p99, quiet_p99 = percentile(busy, 0.99), percentile(quiet, 0.99)
        check(p99 < max(3 * quiet_p99, quiet_p99 + 30), f"disturbed: p99 of good tokens {p99:.1f} ms, before {quiet_p99:.1f} ms")
        deadline = time.monotonic() + 30
        unknown = {user for user, _ in load.revoked}
        for port in fleet.ports:
            while time.monotonic() < deadline and any(outcome(port, load.bodies[user]) != "login_revoked" for user in unknown):
                time.sleep(0.2)
        late = KeyedFleet(binary, 1, {"LIMITED_LOGIN_REPLAY_STORE": f"redis://127.0.0.1:{server.port}",
                                      "LIMITED_LOGIN_JWKS_URLS": fleet.keys_url})
        for what, ports in (("both replicas", fleet.ports), ("a third, which starts now,", late.ports)):
            known = sum(all(outcome(port, load.bodies[user]) == "login_revoked" for port in ports) for user in unknown)
            check(known == len(unknown), f"disturbed: in the end {what} know {known} of {len(unknown)}")
        late.stop()
    finally:
        fleet.stop()
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", help="the program; else it is built")
    binary = str(pathlib.Path(parser.parse_args().binary or live.build()).resolve())
    if shutil.which(live.REDIS_PROGRAM):
        disturbed(binary)
    else:
        live.skip(f"{live.REDIS_PROGRAM} is not installed")
    return 1 if live.failures else 0


if __name__ == "__main__":
    sys.exit(main())
