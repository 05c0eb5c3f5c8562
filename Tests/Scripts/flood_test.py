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
import socket
import sys
import threading
import time
import urllib.error
import urllib.parse

import harness
import live
import redis_groups
from attack_parts import post
from callbacks_test import Backend, signed_request
from dpop_test import forwarded
from flood_parts import Device, owner_of_keys, prover
from graph_attacks import HONEST, senders, slow_graph
from harness import check

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


class Pulse(threading.Thread):
    """Asks Redis twenty times a second, and remembers when an answer was late: at such a time the machine is at fault."""

    LATE_SECONDS, REMEMBERED_SECONDS = 0.25, 3

    def __init__(self, port):
        super().__init__(daemon=True)
        self.client = socket.create_connection(("127.0.0.1", port), 60)
        self.asked, self.late = None, -self.REMEMBERED_SECONDS
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                self.asked = time.monotonic()
                self.client.sendall(b"PING\r\n")
                if not self.client.recv(64):
                    return
                if time.monotonic() - self.asked > self.LATE_SECONDS:
                    self.late = time.monotonic()
                self.asked = None
                time.sleep(0.05)

    def is_late(self):
        now, asked = time.monotonic(), self.asked
        return now - self.late < self.REMEMBERED_SECONDS or (asked is not None and now - asked > self.LATE_SECONDS)


class World:
    """An issuer, a Graph, a backend that takes webhooks, and replicas that share their settings."""

    def __init__(self, binary, replicas, redis):
        self.binary, self.shed, self.folder = binary, 0, harness.Folder()
        self.pulse = Pulse(redis.port) if redis else None
        self.folder.write("clients", live.client_line("backend") + live.client_line("other", OTHER_KEY))
        self.device = self.folder.path / "device.pem"
        harness.output(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.device])
        place = multiprocessing.Queue()
        self.graph = multiprocessing.Process(target=slow_graph, args=(place,), daemon=True)
        self.graph.start()
        self.backend, self.issuer = Backend(), live.Issuer(binary)
        # The workshop makes the flood's proofs with a key of its own, so that the flood spares the honest users' issuer.
        self.workshop = live.Issuer(binary)
        self.settings = {
            "replay": "reject", "access_tokens": "accept", "graph_url": f"http://127.0.0.1:{place.get(timeout=60)}",
            "callbacks_url": self.backend.url, "replay_store": f"redis://127.0.0.1:{redis.port}" if redis else None,
        }
        self.replicas = [self.start() for _ in range(replicas)]
        self.thumbprint = self.proof(self.token())["key_thumbprint"]

    def start(self):
        replica = live.Service(self.binary, self.issuer.jwks_url, graph=self.issuer, folder=self.folder, **self.settings)
        replica.wait_until_ready()
        # A replica that has just reached its store accepts no earlier nonce, so wait until it issues one.
        while self.ask(replica, "POST", "/nonces", "{}")[0] != 200:
            time.sleep(0.05)
        return replica

    def ask(self, replica, method, path, body=None, fields=None):
        """Sends a request as a caller with a key; returns the status and the object. It asks again if the machine is too busy:
        the service has shed the request unread, or Redis answers late to every client."""
        for _ in range(ATTEMPTS):
            status, text = harness.request(replica.port, method, path, body, replica.fields | (fields or {}), timeout=30)
            answer = json.loads(text) if text else {}
            is_late = answer.get("code") == "replay_store_unavailable" and self.pulse and self.pulse.is_late()
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

    def proof(self, token):
        """A proof of the honest device, with a key of its own."""
        command = [self.binary, "dpop", "make", "--key-file", self.device, "--method", "GET", "--url", URL,
                   "--token-file", self.folder.write(f"token-{threading.get_ident()}", token), "--json"]
        return json.loads(harness.output(command))

    def stop(self):
        codes = [replica.stop() for replica in self.replicas]
        check(set(codes) == {0}, f"the replicas end with exit code {codes}")
        self.issuer.stop()
        self.workshop.stop()
        self.backend.server.shutdown()
        self.graph.terminate()
        self.folder.__exit__()


def form(**members):
    return urllib.parse.urlencode(members), {"Content-Type": "application/x-www-form-urlencoded"}


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
    token = world.token(sub=str(6_000_000 + number), cnf={"jkt": world.thumbprint})
    fields = FORWARDED | {"Authorization": f"DPoP {token}", "DPoP": world.proof(token)["proof"]}
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


def flood_of_proofs(world, choices):
    out, processes = multiprocessing.Queue(), 2
    token = world.token(cnf={"jkt": world.workshop.proof("x", URL)["key_thumbprint"]})
    ports = [replica.port for replica in world.replicas]
    for _ in range(processes):
        arguments = (world.workshop, URL, token, live.Service.key, ports, choices.proofs // processes, out)
        multiprocessing.Process(target=prover, args=arguments, daemon=True).start()

    def end(name):
        answers = sum((out.get(timeout=900) for _ in range(processes)), collections.Counter())
        # Proofs expire after 300 s, so each further 300 s allow as many proofs again.
        most = PROOFS_OF_ONE_KEY * len(world.replicas) * (1 + int(time.monotonic() - began) // 300)
        check(0 < answers[200] <= most and answers["429 too_many_proofs"] > 0,
              f"{name}: {sum(answers.values())} proofs by one key, at most {most} accepted: {dict(answers)}")

    began = time.monotonic()
    return end


def flood_of_keys(world, choices):
    out, devices = multiprocessing.Queue(), [Device() for _ in range(100)]
    tokens = [world.token(sub="8000000", cnf={"jkt": device.thumbprint}) for device in devices]
    ports = [replica.port for replica in world.replicas]
    arguments = (devices, tokens, URL, live.Service.key, ports, choices.seconds, out)
    multiprocessing.Process(target=owner_of_keys, args=arguments, daemon=True).start()

    def end(name):
        answers = out.get(timeout=300)
        most = PROOFS_OF_ONE_PERSON * len(world.replicas)
        check(0 < answers[200] <= most and set(answers) <= {200, "429 too_many_proofs"},
              f"{name}: {sum(answers.values())} proofs by one person with 100 keys, at most {most} accepted: {dict(answers)}")

    return end


def flood_of_callbacks(world, choices):
    out, before = multiprocessing.Queue(), len(world.backend.events)
    message = post("/callbacks/deauthorize", *form(signed_request=signed_request(user_id="33333")))
    arguments = (world.replicas[0].port, "127.0.0.2", lambda _: message, 100_000, 100, out, choices.seconds)
    multiprocessing.Process(target=senders, args=arguments, daemon=True).start()

    def end(name):
        answers = out.get(timeout=300)
        delivered = sum(b'"33333"' in body for _, body in world.backend.events[before:])
        check(set(answers) <= {200, 503, "closed"} and answers[200] > 0 and delivered == 1,
              f"{name}: one callback repeated {sum(answers.values())} times {dict(answers)}, delivered {delivered} times")

    return end


def flood_of_junk(world, choices):
    out = multiprocessing.Queue()
    prefix, key = f"EAAmadeup{time.time_ns()}x", {"X-Api-Key": OTHER_KEY}

    def request(number):
        return post("/verify", json.dumps({"access_token": f"{prefix}{number}x{'0' * 16}"}), key)

    arguments = (world.replicas[0].port, "127.0.0.2", request, 2_000, 500, out, choices.seconds)
    multiprocessing.Process(target=senders, args=arguments, daemon=True).start()

    def end(name):
        answers = out.get(timeout=300)
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
