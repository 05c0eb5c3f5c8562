#!/usr/bin/env python3
"""Floods the service beside honest users of every kind. None of these may be refused.

usage: flood_test.py [--binary FILE] [--proofs N] [--seconds N] [--store memory|redis] [NAME...]
  proofs     100,000 DPoP proofs by one key
  keys       as many DPoP proofs as fit in the seconds, by one person with 100 keys
  callbacks  100 connections that repeat one genuine callback
  junk       2,000 made-up access tokens a second by one caller, with Graph at 100 ms
A plus sign joins floods that run together, as in `proofs+junk`. By default each runs alone, and then all together. Each
flood runs against one replica with its own memory, and then against two replicas and a Redis with `maxmemory 8mb` and
`noeviction`: the other replica must enforce a revocation within 2 s, and a third replica starts during the flood. `replay` is
`reject`, so every kind of user needs the store. The exit code is 1 if a bound is broken. Without redis-server (REDIS_SERVER
may name another) the second half is named and skipped. For a short run: `--proofs 5000 --seconds 3`.
"""

import collections
import contextlib
import itertools
import json
import multiprocessing
import os
import sys
import threading
import time
import urllib.error

import harness
import live
import redis_groups
from attack_parts import PAUSES, post
from callbacks_test import Backend, signed_request
from dpop_test import forwarded
from flood_parts import HONEST, Device, prover, senders, slow_graph
from harness import check, form

# The key of the caller with made-up access tokens.
OTHER_KEY = "another-key-for-these-tests"
URL = "https://api.example.com/orders"
FORWARDED = forwarded("GET", URL)
# The promised numbers of live proofs that one key and one person may have at a replica.
PROOFS_OF_ONE_KEY, PROOFS_OF_ONE_PERSON = 1_024, 4_096
# The seconds between two requests of one kind of honest user, and those until a revocation is enforced everywhere.
PAUSE, ENFORCED = 0.1, 2
# The most attempts of a request that the service sheds.
ATTEMPTS = 20


class World:
    """An issuer, a Graph, a backend that takes webhooks, and replicas that share their settings."""

    def __init__(self, binary, replicas, redis):
        self.binary, self.shed, self.folder = binary, 0, harness.Folder()
        self.folder.write("clients", live.client_line("backend") + live.client_line("other", OTHER_KEY))
        self.device = Device()
        place = multiprocessing.Queue()
        self.graph = multiprocessing.Process(target=slow_graph, args=(place,), daemon=True)
        self.graph.start()
        self.backend, self.issuer = Backend(), live.Issuer(binary)
        self.settings = {
            "replay": "reject", "access_tokens": "accept", "graph_url": f"http://127.0.0.1:{place.get(timeout=60)}",
            "callbacks_url": self.backend.url, "replay_store": f"redis://127.0.0.1:{redis.port}" if redis else None,
        }
        self.replicas = [self.start() for _ in range(replicas)]

    def start(self):
        replica = live.Service(self.binary, self.issuer.jwks_url, graph=self.issuer, folder=self.folder, **self.settings)
        replica.wait_until_ready()
        # A replica that has just reached its store accepts no earlier nonce, so wait until it issues one.
        while self.ask(replica, "POST", "/nonces", "{}")[0] != 200:
            time.sleep(0.05)
        return replica

    def ask(self, replica, method, path, body=None, fields=None):
        """Sends a request as a caller with a key; returns the status and the object. It asks again if the machine is too busy:
        the service has shed the request unread, or got Redis's answer late."""
        for _ in range(ATTEMPTS):
            status, text = harness.request(replica.port, method, path, body, replica.fields | (fields or {}), timeout=30)
            answer = json.loads(text) if text else {}
            is_late = answer.get("code") == "replay_store_unavailable" and PAUSES.are_recent()
            if answer.get("code") != "overloaded" and not is_late:
                break
            self.shed += 1
            time.sleep(PAUSE)
        return status, answer

    def token(self, **claims):
        """A token of the issuer, which also sheds requests if the machine is too busy."""
        for _ in range(ATTEMPTS):
            with contextlib.suppress(urllib.error.HTTPError):
                return self.issuer.token(**claims)
            time.sleep(PAUSE)
        raise RuntimeError("the issuer makes no token")

    def stop(self):
        codes = [replica.stop() for replica in self.replicas]
        check(set(codes) == {0}, f"the replicas end with exit code {codes}")
        self.issuer.stop()
        self.backend.server.shutdown()
        self.graph.terminate()
        self.folder.__exit__()


def verify(world, replica, **members):
    return world.ask(replica, "POST", "/verify", json.dumps(members))


# The requests of each kind of honest user; `number` is different each time.
def id_token(world, replica, number):
    return verify(world, replica, id_token=world.token(nonce=f"n-{number}"), nonce=f"n-{number}")


def issued_nonce(world, replica, _):
    status, answer = world.ask(replica, "POST", "/nonces", "{}")
    if status != 200:
        return status, answer
    return verify(world, replica, id_token=world.token(nonce=answer["nonce"]), issued_nonce=True)


def refresh(world, replica, number):
    return verify(world, replica, id_token=world.token(sub=str(5_000_000 + number)), subject=str(5_000_000 + number))


def access_token(world, replica, number):
    return verify(world, replica, access_token=f"{HONEST}{os.getpid()}x{number}{'0' * 16}")


def proof(world, replica, number):
    token = world.token(sub=str(6_000_000 + number), cnf={"jkt": world.device.thumbprint})
    fields = FORWARDED | {"Authorization": f"DPoP {token}", "DPoP": world.device.proof("GET", URL, token, f"honest-{number}")}
    return world.ask(replica, "GET", "/auth", None, fields)


def bearer(world, replica, _):
    return world.ask(replica, "GET", "/auth", None, {"Authorization": f"Bearer {world.token()}"})


def introspection(world, replica, _):
    status, answer = world.ask(replica, "POST", "/introspect", *form(token=world.token()))
    return (status if answer.get("active") else 0), answer


def callback(world, replica, name, user):
    return world.ask(replica, "POST", f"/callbacks/{name}", *form(signed_request=signed_request(user_id=str(user))))


def deauthorize(world, replica, number):
    return callback(world, replica, "deauthorize", 1_000 + number)


def data_deletion(world, replica, number):
    return callback(world, replica, "data-deletion", 900_000 + number)


KINDS = [id_token, issued_nonce, refresh, access_token, proof, bearer, introspection, deauthorize, data_deletion]


class Users:
    """Honest users, with one thread for each kind, that ask the replicas in turn; and a thread that revokes logins."""

    def __init__(self, world):
        self.world, self.over, self.answers = world, threading.Event(), collections.defaultdict(collections.Counter)
        self.slowest, self.revoked = 0, []
        self.threads = [threading.Thread(target=self.run, args=(kind,)) for kind in KINDS]
        self.threads.append(threading.Thread(target=self.revoke))
        for thread in self.threads:
            thread.start()

    def run(self, kind):
        number = 0
        while not self.over.wait(PAUSE):
            number += 1
            try:
                status, answer = kind(self.world, self.world.replicas[number % len(self.world.replicas)], number)
                told = 200 if status == 200 else f"{status} {answer.get('code')}"
            except OSError as error:
                told = repr(error)
            self.answers[kind.__name__][told] += 1

    def revoke(self):
        number = 7_000_000
        while not self.over.wait(5 * PAUSE):
            number += 1
            here, there = self.world.replicas[number % 2 - 1], self.world.replicas[-(number % 2)]
            fields = {"Authorization": f"Bearer {self.world.token(sub=str(number), iat=int(time.time()) - 30)}"}
            before = self.world.ask(there, "GET", "/auth", None, fields)[0]
            began = time.monotonic()
            status = self.world.ask(here, "POST", "/revocations", json.dumps({"user_id": str(number)}))[0]
            code = None
            while code != "login_revoked" and time.monotonic() - began < 10 * ENFORCED:
                code = self.world.ask(there, "GET", "/auth", None, fields)[1].get("code")
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.answers["revocation"][200 if (before, status, code) == (200, 204, "login_revoked") else
                                       f"{before} {status} {code}"] += 1
            self.revoked.append(fields)

    def end(self, name):
        self.over.set()
        for thread in self.threads:
            thread.join()
        count = sum(answers.total() for answers in self.answers.values())
        refused = {kind: dict(answers) for kind, answers in self.answers.items() if set(answers) != {200}}
        least = min(answers[200] for answers in self.answers.values())
        check(len(self.answers) == len(KINDS) + 1 and not refused,
              f"{name}: {count} honest requests of {len(self.answers)} kinds, at least {least} of each accepted, "
              f"refused: {refused}; {self.world.shed} asked again")
        check(self.slowest < ENFORCED, f"{name}: the slowest of {len(self.revoked)} revocations is enforced "
              f"{'by the other replica ' if len(self.world.replicas) > 1 else ''}after {self.slowest * 1000:.0f} ms")


def proofs(world, what, count, processes, most, goes_on):
    """A flood of proofs by one person with so many keys, of which each replica accepts at most `most` at a time."""
    out, devices, began = multiprocessing.Queue(), [Device() for _ in range(count)], time.monotonic()
    tokens = [world.token(sub="8000000", cnf={"jkt": device.thumbprint}) for device in devices]
    arguments = (devices, tokens, URL, live.Service.key, [replica.port for replica in world.replicas], goes_on, out)
    for _ in range(processes):
        multiprocessing.Process(target=prover, args=arguments, daemon=True).start()

    def end(name):
        answers = sum((out.get(timeout=900) for _ in range(processes)), collections.Counter())
        # Proofs expire after 300 s, so each further 300 s allow as many proofs again.
        bound = most * len(world.replicas) * (1 + int(time.monotonic() - began) // 300)
        check(0 < answers[200] <= bound and set(answers) <= {200, "429 too_many_proofs", "503 overloaded"},
              f"{name}: {sum(answers.values())} proofs by {what}, at most {bound} accepted: {dict(answers)}")

    return end


def flood_of_proofs(world, choices):
    return proofs(world, "one key", 1, 2, PROOFS_OF_ONE_KEY, lambda number: number < choices.proofs // 2)


def flood_of_keys(world, choices):
    end = time.monotonic() + choices.seconds
    return proofs(world, "one person with 100 keys", 100, 1, PROOFS_OF_ONE_PERSON, lambda _: time.monotonic() < end)


def repeated(world, choices, make, rate, connections):
    """Starts to send the requests of `make(number)` from one address; gives a function that waits for the number of each status."""
    out = multiprocessing.Queue()
    arguments = (world.replicas[0].port, make, rate, connections, choices.seconds, out)
    multiprocessing.Process(target=senders, args=arguments, daemon=True).start()
    return lambda: out.get(timeout=300)


def flood_of_callbacks(world, choices):
    before = len(world.backend.events)
    message = post("/callbacks/deauthorize", *form(signed_request=signed_request(user_id="33333")))
    answered = repeated(world, choices, lambda _: message, 100_000, 100)

    def end(name):
        answers = answered()
        delivered = sum(b'"33333"' in body for _, body in world.backend.events[before:])
        check(set(answers) <= {200, 503, "busy", "closed"} and answers[200] > 0 and delivered == 1,
              f"{name}: one callback repeated {sum(answers.values())} times {answers}, delivered {delivered} times")

    return end


def flood_of_junk(world, choices):
    prefix, key = f"EAAmadeup{time.time_ns()}x", {"X-Api-Key": OTHER_KEY}
    answered = repeated(world, choices, lambda number: post(
        "/verify", json.dumps({"access_token": f"{prefix}{number}x{'0' * 16}"}), key), 2_000, 500)

    def end(name):
        answers = answered()
        rate = sum(answers.values()) / choices.seconds
        check(200 not in answers and rate > 0, f"{name}: {rate:.0f} made-up access tokens a second: {answers}")

    return end


FLOODS = {"proofs": flood_of_proofs, "keys": flood_of_keys, "callbacks": flood_of_callbacks, "junk": flood_of_junk}


def third(world, users, name):
    """Starts another replica during the flood, which must know the earlier revocations."""
    known = list(users.revoked)
    late = world.start()
    codes = collections.Counter(world.ask(late, "GET", "/auth", None, fields)[1].get("code") for fields in known)
    check(set(codes) == {"login_revoked"}, f"{name}: a third replica starts and knows the logins revoked before: {dict(codes)}")
    check(late.stop() == 0, f"{name}: and ends with exit code 0")


def run(binary, name, store, choices):
    redis = redis_groups.started("--maxmemory", "8mb", "--maxmemory-policy", "noeviction") if store == "redis" else None
    world = World(binary, 2 if redis else 1, redis)
    with contextlib.ExitStack() as stack:
        stack.callback(redis.stop if redis else lambda: None)
        stack.callback(world.stop)
        users = Users(world)
        ends = [FLOODS[part](world, choices) for part in name.split("+")]
        while not users.revoked:
            time.sleep(0.05)
        if redis:
            third(world, users, f"{name}, {store}")
        for end in ends:
            end(f"{name}, {store}")
        users.end(f"{name}, {store}")


def main():
    names = [*FLOODS, *("+".join(parts) for size in (2, 3) for parts in itertools.permutations(FLOODS, size))]
    choices = harness.arguments(__doc__, names, proofs=100_000, seconds=10, store="")
    if choices.names == names:
        choices.names = [*FLOODS, "+".join(FLOODS)]
    harness.raise_descriptor_limit()
    for store in [choices.store] if choices.store else ["memory", "redis"]:
        if store == "memory" or harness.installed(live.REDIS_PROGRAM):
            for name in choices.names:
                run(choices.binary, name, store, choices)
    return 1 if harness.failures else 0


if __name__ == "__main__":
    sys.exit(main())
