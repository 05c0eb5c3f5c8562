#!/usr/bin/env python3
"""Makes short attacks on the test server on loopback, which must still answer other clients.

Usage: http_attacks.py [SERVER [CONNECTIONS [NAME...]]]. SERVER is the test server of this package (by default that of the
debug build). CONNECTIONS is the number of slow or idle connections (default 10,000, fewer with a low descriptor limit).
NAME is one of idle, slow, churn, pipeline, never_reads (default: all). The exit code is 1 if a bound is broken. An attack
is named and skipped if its tool is not installed.
"""
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

from attack_parts import PAUSES, bound
from live import ROOT, Figures, check, failures, free_port, raise_descriptor_limit, skip

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
# Bounds of private memory (RssAnon): of an idle connection, of a busy one, and of the process alone.
IDLE_BYTES = 1536
BUSY_BYTES = 20 * 1024
BASE_KIB = 4 * 1024


class Server(Figures):
    """The test server."""

    def __init__(self, path):
        self.port = free_port()
        self.process = subprocess.Popen([path, f"127.0.0.1:{self.port}", "2"], stdout=subprocess.DEVNULL)
        for _ in range(1_200):
            try:
                self.connect().close()
                return
            except OSError:
                time.sleep(0.05)
        sys.exit(f"{path} does not start")

    def connect(self, timeout=5):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def stop(self):
        self.process.terminate()
        return self.process.wait(30)


class Probe(threading.Thread):
    """An honest client that uses a kept connection and new ones, and records the time of each answer."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.times = []
        self.errors = 0
        self.over = False
        PAUSES.take()
        self.start()

    def run(self):
        kept = self.server.connect()
        while not self.over:
            self.ask(kept)
            try:
                with self.server.connect() as fresh:
                    self.ask(fresh)
            except OSError:
                self.errors += 1
            time.sleep(0.02)
        kept.close()

    def ask(self, client):
        began = time.monotonic()
        try:
            client.sendall(REQUEST)
            if b" 200 " not in client.recv(1000):
                self.errors += 1
        except OSError:
            self.errors += 1
        self.times.append((time.monotonic() - began) * 1000)

    def judge(self, name):
        # An attack that was quick to set up lasts a little longer, until there are enough answers to judge.
        deadline = time.monotonic() + 10
        while len(self.times) <= 100 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.over = True
        self.join()
        self.times.sort()
        p99 = self.times[int(len(self.times) * 0.99)]
        check(self.errors == 0 and len(self.times) > 20, f"{name}: {len(self.times)} others answered, {self.errors} not")
        most = bound(None, full=False)
        check(p99 < most, f"{name}: p99 {p99:.1f} ms for others, at most {most:.1f}")


def slowhttptest(server, connections):
    if not shutil.which("slowhttptest"):
        skip("slowhttptest is not installed")
        return
    modes = {"slow heads": ["-H", "-i", "2"], "slow bodies": ["-B", "-i", "2", "-s", "8192", "-x", "10"],
             "slow readers": ["-X", "-w", "1", "-y", "4", "-n", "1", "-z", "1", "-k", "3"],
             "ranges": ["-R", "-a", "10", "-b", "3000"]}
    for name, mode in modes.items():
        before = server.descriptors()
        probe = Probe(server)
        tool = subprocess.Popen(
            ["slowhttptest", *mode, "-c", str(connections), "-r", "4000", "-l", "6", "-p", "3",
             "-u", f"http://127.0.0.1:{server.port}/"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(4)
        busy, memory = server.descriptors() - before, server.memory()
        output = tool.communicate()[0].decode(errors="replace")
        probe.judge(name)
        check("NO" not in re.findall(r"service available:\S*\s+(?:\x1b\[[0-9;]*m)*(\w+)", output), f"{name}: the tool's own probe")
        bound = BASE_KIB + max(busy, 0) * BUSY_BYTES // 1024
        check(memory <= bound, f"{name}: {memory} KiB with {busy} connections, bound {bound}")
        check(server.settle(before + 2), f"{name}: every connection is closed")


def idle(server, connections):
    before = server.descriptors()
    probe = Probe(server)
    memory = server.memory()
    clients = []
    for _ in range(connections):
        client = server.connect()
        client.sendall(REQUEST)
        clients.append(client)
    for client in clients:
        client.recv(1000)
    each = (server.memory() - memory) * 1024 / connections
    probe.judge(f"{connections} idle connections")
    check(each <= IDLE_BYTES, f"{connections} idle connections: {each:.0f} bytes each")
    time.sleep(1)
    switches = server.wake_ups()
    time.sleep(10)
    switches = server.wake_ups() - switches
    check(switches == 0, f"{connections} idle connections: {switches} wake-ups in 10 s")
    for client in clients:
        client.close()
    check(server.settle(before + 2), "idle connections: every one is closed")


def churn(server, count):
    before, memory = server.descriptors(), server.memory()
    reset = struct.pack("ii", 1, 0)
    for number in range(count):
        client = server.connect()
        client.sendall(REQUEST if number % 2 else b"GET / HT")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        client.close()
    check(server.settle(before), f"{count} resets: descriptors are as before")
    check(server.memory() <= memory + 512, f"{count} resets: {server.memory()} KiB, before {memory}")


def pipeline(server):
    with server.connect(30) as client:
        sender = threading.Thread(target=client.sendall, args=(REQUEST * 10_000,))
        sender.start()
        received = b""
        while data := client.recv(1 << 20):
            received += data
        sender.join()
    check(received.count(b"HTTP/1.1 200") == 10_000, f"pipeline: {received.count(b'HTTP/1.1 200')} of 10,000 answered")


def never_reads(server):
    before, memory = server.descriptors(), server.memory()
    clients = []
    body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16000\r\n\r\n" + b"x" * 16000
    for _ in range(50):
        client = server.connect()
        client.setblocking(False)
        clients.append(client)
    probe = Probe(server)
    end, worst = time.monotonic() + 7, 0
    while time.monotonic() < end:
        for client in clients:
            try:
                client.send(body)
            except OSError:
                pass
        worst = max(worst, server.memory())
        time.sleep(0.02)
    probe.judge("readers that never read")
    check(worst - memory <= 50 * 100, f"readers that never read: {worst - memory} KiB for 50 of them")
    for client in clients:
        client.close()
    check(server.settle(before + 2), "readers that never read: every one is closed")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, ".build", "debug", "http11-probe-server")
    hard = raise_descriptor_limit()
    wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    connections = min(wanted, hard - 200, 9_900)
    attacks = {
        "idle": lambda: idle(server, connections), "slow": lambda: slowhttptest(server, connections),
        "churn": lambda: churn(server, 20_000), "pipeline": lambda: pipeline(server),
        "never_reads": lambda: never_reads(server),
    }
    names = sys.argv[3:] or list(attacks)
    if unknown := set(names) - set(attacks):
        sys.exit(f"no such attack: {', '.join(sorted(unknown))}")
    server = Server(path)
    for name in names:
        attacks[name]()
    check(server.stop() == 0, "the server ends with exit code 0")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
