"""Attacks with tokens under made-up key IDs on a running `limited-login serve`; see `service_attacks.py`."""
import collections
import json
import multiprocessing
import random
import time

from attack_parts import IDLE_BYTES, LIVEZ, Issuer, Known, Service, post_verify
from flood_parts import Clients, Exchange
from harness import base64url, check

# The seconds between two fetches for unknown key IDs, and the most seconds that such a request waits.
INTERVAL, LONGEST_WAIT = 5, 6
WORKERS, PLACES = 2, 512
# More connections than requests can wait at a time.
CONNECTIONS = 3_000
# The most memory for the key IDs that are remembered as unknown.
KEY_IDS_KIB = 512


def unknown(token, numbers, algorithm="RS256"):
    """The token under a key ID that is in no set."""
    header = {"alg": algorithm, "typ": "JWT", "kid": f"{numbers.getrandbits(160):040x}"}
    return base64url(json.dumps(header).encode()) + token[token.index("."):]


def unsupported(token, numbers):
    """A token of the same length that is refused for its algorithm, before its key is looked up."""
    return unknown(token, numbers, "RS512")


def flooder(port, token, make, count, rate, connections, seed, start, out):
    """Sends `count` requests, each with a key ID of its own, at no more than `rate` a second; puts the number of each status and
    the seconds that sending took."""
    numbers, clients = random.Random(seed), Clients(port, connections)
    # Send one request on each connection first: the memory that it keeps from then on is no part of the attack.
    for _ in range(connections):
        clients.send(LIVEZ)
    clients.settle(60)
    clients.statuses.clear()
    start.wait(60)
    began = time.monotonic()
    clients.send_at(rate, lambda _: post_verify(make(token, numbers)), lambda sent: sent < count)
    took = time.monotonic() - began
    clients.settle(2 * LONGEST_WAIT)
    out.put((clients.statuses, took))


class Flood:
    """Processes that are connected, and begin to send at the same time."""

    def __init__(self, service, token, make, full):
        self.count, self.seconds, processes = (100_000, 10, 4) if full else (20_000, 4, 2)
        self.start, self.out = multiprocessing.Barrier(processes + 1), multiprocessing.Queue()
        self.processes = [multiprocessing.Process(target=flooder, args=(
            service.port, token, make, self.count // processes, self.count / processes / self.seconds,
            CONNECTIONS // processes, seed, self.start, self.out)) for seed in range(processes)]
        for process in self.processes:
            process.start()
        while self.start.n_waiting < processes:
            time.sleep(0.05)

    def answers(self):
        """The number of each status, and the seconds that the slowest process took to send."""
        parts = [self.out.get(timeout=120) for _ in self.processes]
        statuses = sum((collections.Counter(part) for part, _ in parts), collections.Counter())
        return dict(statuses), max(took for _, took in parts)


def flood(binary, full):
    issuer = Issuer(binary)
    with Service(binary, issuer, workers=WORKERS) as service:
        flooded(service, issuer, full)


def flooded(service, issuer, full):
    known = post_verify(issuer.token)
    quiet = beside_others(service, issuer, known, full)
    began = time.monotonic()
    # The memory of refused key IDs is allocated for the first one.
    request = post_verify(unknown(issuer.token, random.Random("first")))
    Exchange(service.port).ask([request])
    flooding = Flood(service, issuer.token, unknown, full)
    memory = most = service.memory()
    honest = Known(service.port, known, flooding.seconds)
    flooding.start.wait(60)
    half = time.monotonic() + flooding.seconds / 2
    while time.monotonic() < half:
        most = max(most, service.memory())
        time.sleep(0.05)
    pick_up(service, issuer)
    most = max(most, service.memory())
    honest.judge(f"flood (p99 {quiet:.2f} ms beside as many requests that wait for nothing)", max(2 * quiet, 1), full)
    statuses, took = flooding.answers()
    # 429 is the answer to requests beyond the places.
    check(set(statuses) == {401, 429} and sum(statuses.values()) == flooding.count,
          f"flood: {flooding.count} requests in {took:.1f} s: {statuses}")
    made, allowed = issuer.fetches - 1, 1 + int((time.monotonic() - began) / INTERVAL)
    check(made <= allowed, f"flood: {made} fetches for unknown key IDs, at most {allowed}")
    # A waiting connection may hold the memory of an idle one, and its request.
    waiting = WORKERS * PLACES * (IDLE_BYTES + len(request)) // 1024
    check(most - memory <= waiting + KEY_IDS_KIB,
          f"flood: memory grew by {most - memory} KiB, at most {waiting} for requests that wait and {KEY_IDS_KIB}")


def beside_others(service, issuer, known, full):
    """The p99 in ms of known keys beside as many requests that do not wait. Clients and service share the processors, so only
    a comparison with this p99 shows the cost of the key IDs."""
    flooding = Flood(service, issuer.token, unsupported, full)
    honest = Known(service.port, known, flooding.seconds)
    flooding.start.wait(60)
    p99 = honest.judge(f"known keys beside {flooding.count} requests of another algorithm")
    statuses, took = flooding.answers()
    check(statuses == {401: flooding.count}, f"which take {took:.1f} s: {statuses}")
    return p99


def pick_up(service, issuer):
    """A flood causes one fetch in five seconds, so a new key is picked up after that interval."""
    statuses, rotated_at, client = [], time.monotonic(), Exchange(service.port)
    issuer.set = issuer.rotated_set
    while statuses[-1:] != [200] and time.monotonic() < rotated_at + 60:
        statuses.append(client.ask([post_verify(issuer.rotated_token)])[0][0])
        time.sleep(0.1)
    picked_up = time.monotonic() - rotated_at
    check(picked_up <= INTERVAL + 1, f"flood: a rotation in its middle was picked up after {picked_up:.1f} s")
    check(set(statuses) <= {200, 429}, f"flood: a new key's token waits or is 429 until then: {sorted(set(statuses))}")
