#!/usr/bin/env python3
"""Attacks a running `limited-login serve` on loopback, and checks its promises.

Usage: service_attacks.py [--binary FILE] [--full] [NAME...], by default every attack, each in short.
  flood   random unknown key IDs: a fetch in 5 s, known keys unaffected, memory flat, a rotation picked up meanwhile
  slow    slow heads, bodies and readers (slowhttptest) while others are served
  uploads 1,000 connections with an unfinished body of 48 KiB, half of it or all but a byte behind 32 KB of fields, over
          TCP, TLS and a Unix socket: within memory_limit, others served
  records 2,200 TLS connections that begin a record and never end it: the same
  parked  1,000 requests that wait for a Redis or a Graph that hangs, with 32 KB behind each: the same, and none lost at SIGTERM
  crowd   dripping connections of one address on every slot, never idle: 15 honest tokens from another are accepted
  silent  1,000 TLS connections a second that say nothing, or one byte: honest handshakes stay quick
  stalled 3,900 handshakes of one address that never end: honest ones from another stay quick
  hellos  500 TLS hellos of 131,000 and of 16,384 bytes that never end: within memory_limit
`--full` uses the promised numbers: 100,000 unknown key IDs in 10 s, 5 s of load, 10,000 slow connections.
The exit code is 1 if a bound is broken. An attack is named and skipped if its tool is not installed.
"""
import contextlib
import multiprocessing
import resource
import socket
import subprocess
import sys
import time

from attack_parts import BASE_KIB, BUSY_BYTES, WORST_P99_MS, Issuer, Known, Service, post_verify
from key_attacks import flood
from harness import arguments, check, failures, installed, raise_descriptor_limit, read_answer
from memory_attacks import parked, records, uploads
from tls_attacks import hellos, silent, stalled

# The options of slowhttptest for each kind of slowness, with the path at the end.
SLOW = {
    "slow heads": "-H -i 2 -u /verify",
    "slow bodies": "-B -i 2 -s 8192 -x 10 -f application/json -u /verify",
    "slow readers": "-X -w 1 -y 4 -n 1 -z 1 -k 3 -u /livez",
    "ranges": "-R -a 10 -b 3000 -u /livez",
}


def slow(binary, full):
    if not installed("slowhttptest"):
        return
    connections = min(10_000 if full else 2_000, raise_descriptor_limit() - 500)
    issuer = Issuer(binary)
    with Service(binary, issuer) as service:
        for name, mode in SLOW.items():
            slowed(service, issuer, name, mode.split(), connections, full)


def slowed(service, issuer, name, mode, connections, full):
    before = service.descriptors()
    seconds = 10 if full else 5
    known = Known(service.port, post_verify(issuer.token), seconds)
    # One process alone does not open connections as fast as this server closes them.
    number = 4 if full else 1
    command = ["slowhttptest", *mode[:-1], f"http://127.0.0.1:{service.port}{mode[-1]}", "-c", str(connections // number),
               "-r", "5000", "-l", str(seconds - 2), "-p", "3"]
    tools = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(number)]
    busy, memory, broken = 0, 0, None
    while any(tool.poll() is None for tool in tools):
        held, used = service.descriptors() - before, service.memory()
        if used > BASE_KIB + max(held, 0) * BUSY_BYTES // 1024:
            broken = (held, used)
        busy, memory = max(busy, held), max(memory, used)
        time.sleep(0.1)
    known.judge(name, WORST_P99_MS, full)
    check(broken is None, f"{name}: at most {busy} connections and {memory} KiB; over the bound at {broken}")
    check(service.settle(before + 2), f"{name}: every connection is closed")


def drip_shares(port, count, held, over):
    """Opens connections that are never idle: every half second each ends its request and begins the next in the same write."""
    begin, go_on = b"GET /livez HTTP/1.1\r\nHost: a\r\n", b"\r\nGET /livez HTTP/1.1\r\nHost: a\r\n"
    clients = []
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", port), 10)
        client.setblocking(False)
        client.send(begin)
        clients.append(client)
    held.put(count)
    while not over.is_set():
        began = time.monotonic()
        for client in clients:
            with contextlib.suppress(OSError):
                client.send(go_on)
                client.recv(4096)
        over.wait(max(0, began + 0.5 - time.monotonic()))


def crowd(binary, _full):
    issuer = Issuer(binary)
    # With the default limit the connections' memory runs short first, with a higher one their slots.
    for memory in "64MiB", "256MiB":
        with Service(binary, issuer, data_limit=resource.RLIM_INFINITY, memory_limit=memory) as service:
            crowded(service, issuer, memory)


def crowded(service, issuer, memory):
    # More than the 10,000 slots, so that each worker runs short however the kernel distributes the connections.
    processes, count = 4, 11_000
    held, over = multiprocessing.Queue(), multiprocessing.Event()
    attackers = [multiprocessing.Process(target=drip_shares, args=(service.port, count // processes, held, over), daemon=True)
                 for _ in range(processes)]
    for process in attackers:
        process.start()
    for _ in attackers:
        held.get(timeout=120)
    open_before = service.descriptors()
    statuses, times = [], []
    for _ in range(15):
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", service.port), 10, source_address=("127.0.0.2", 0)) as client:
            client.sendall(post_verify(issuer.token))
            statuses.append(read_answer(client, bytearray())[0])
        times.append((time.monotonic() - began) * 1000)
        time.sleep(0.3)
    over.set()
    for process in attackers:
        process.join()
    made_room = sum(service.metric(f'http_server_connections_closed_total{{cause="{cause}"}}') or 0
                    for cause in ("memory", "limit", "peer_limit"))
    check(statuses == [200] * 15 and made_room >= 15,
          f"crowd: {count} dripping connections from one address, {open_before} descriptors with {memory}, {made_room:.0f} "
          f"closed for others; {statuses.count(200)} of 15 tokens from elsewhere accepted, slowest {max(times):.0f} ms")


ATTACKS = {"flood": flood, "slow": slow, "uploads": uploads, "records": records, "parked": parked, "crowd": crowd, "silent": silent,
           "stalled": stalled, "hellos": hellos}


def main():
    chosen = arguments(__doc__, ATTACKS, full=False)
    raise_descriptor_limit()
    for name in chosen.names:
        ATTACKS[name](chosen.binary, chosen.full)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
