#!/usr/bin/env python3
"""Attacks a running `limited-login serve` on loopback, and holds it to its promises.

Usage: service_attacks.py [--binary FILE] [--full] [NAME...], by default the debug build, every attack, each in short.
  flood   random unknown key IDs: a fetch in 5 s, known keys unaffected, memory flat, a rotation picked up meanwhile
  stop    SIGTERM under full load with new connections coming: no accepted request goes unanswered
  slow    slow heads, bodies and readers (slowhttptest) while others are served
  hoard   one connection, 10,000 requests of 31 KB, each with all but the last byte of the next: memory flat
  readers 300 clients that ask for /openapi.json and do not read: memory flat
  uploads 1,000 connections with 32 KB of fields and an unfinished body: within memory_limit, others served
  churn   connections that send a request and reset: descriptors and memory flat
  crowd   dripping connections of one address on every slot, never idle: 15 honest tokens from another are accepted
  silent  1,000 TLS connections a second that say nothing, or one byte: honest handshakes stay quick
  tickets a client certificate of a few seconds: no session outlives it
`--full` takes the numbers promised: 100,000 unknown key IDs in 10 s, 5 s of load, 10,000 slow connections, 1,000,000
resets. Exit code 1 where a bound is broken. What is not installed is named and left out.
"""
import argparse
import base64
import http.server
import json
import multiprocessing
import os
import random
import resource
import shutil
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

import http_attacks
from http_attacks import BASE_KIB, BUSY_BYTES, WORST_P99_MS, ROOT, check, failures

APP = "1234567890123456"
NONCE = "n-1"
# Seconds in which the service may ask its issuer once more about an unknown key ID, after a burst of two.
INTERVAL = 5
KEYS_PATH = "/.well-known/oauth/openid/jwks/"


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def post_verify(token):
    body = json.dumps({"id_token": token, "nonce": NONCE}).encode()
    return (b"POST /verify HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(body)) + body


def unknown(token, random_numbers):
    """The token under a key ID that nobody has."""
    header = {"alg": "RS256", "typ": "JWT", "kid": f"{random_numbers.getrandbits(160):040x}"}
    return encoded(json.dumps(header).encode()) + token[token.index("."):]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, request, timeout=10):
    """One request on a connection of its own; its status and body."""
    with socket.create_connection(("127.0.0.1", port), timeout) as client:
        client.sendall(request)
        return read_answer(client, bytearray())


def read_answer(client, buffer):
    """The next answer's status and body; what follows it stays in the buffer."""
    while True:
        end = buffer.find(b"\r\n\r\n")
        if end >= 0:
            head = bytes(buffer[:end]).lower()
            at = head.find(b"content-length: ") + 16
            length = int(head[at:].split(b"\r\n")[0])
            if len(buffer) >= end + 4 + length:
                body = bytes(buffer[end + 4:end + 4 + length])
                del buffer[:end + 4 + length]
                return int(head[9:12]), body, b"connection: close" in head
        data = client.recv(1 << 16)
        if not data:
            raise ConnectionError("closed within an answer")
        buffer += data


class Issuer:
    """Serves a key set and counts how often it is asked; a stand-in issuer has minted a token for it."""

    def __init__(self, binary):
        port = free_port()
        minting = subprocess.Popen([binary, "issuer", "--listen", f"127.0.0.1:{port}", "--app-id", APP],
                                   stdout=subprocess.PIPE)
        minting.stdout.readline()
        claims = json.dumps({"nonce": NONCE}).encode()
        mint = b"POST /tokens HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(claims) + claims
        keys = f"GET {KEYS_PATH} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        self.set, self.token = ask(port, keys)[1], json.loads(ask(port, mint)[1])["id_token"]
        ask(port, b"POST /rotate HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        self.rotated_set, self.rotated_token = ask(port, keys)[1], json.loads(ask(port, mint)[1])["id_token"]
        minting.terminate()
        minting.wait()
        self.fetches = 0
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.fetches += 1
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(issuer.set)))
                self.end_headers()
                self.wfile.write(issuer.set)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}{KEYS_PATH}"


class Service(http_attacks.Server):
    """The program itself."""

    def __init__(self, binary, issuer, *flags, data_limit=resource.RLIM_INFINITY):
        self.port, self.admin = free_port(), free_port()
        self.issuer = issuer
        self.process = subprocess.Popen(
            [binary, "serve", "--app-ids", APP, "--jwks-urls", issuer.url, "--listen", f"127.0.0.1:{self.port}",
             "--admin-listen", f"127.0.0.1:{self.admin}", "--log-level", "critical", *flags], stdin=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (data_limit, data_limit)))
        for _ in range(400):
            try:
                if ask(self.admin, b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        sys.exit(f"{binary} does not get ready")


def known_latency(port, request, seconds, out):
    """An honest client, 200 requests a second: its latencies in ms, and what was not answered 200.

    At the limit of connections an idle one makes room: then it asks once more on a new one, as HTTP clients do.
    """
    times, wrong = [], 0
    client, buffer = socket.create_connection(("127.0.0.1", port), 10), bytearray()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        status, closes = 0, True
        for _ in range(2):
            try:
                client.sendall(request)
                status, _, closes = read_answer(client, buffer)
                break
            except OSError:
                client, buffer = socket.create_connection(("127.0.0.1", port), 10), bytearray()
        times.append((time.monotonic() - began) * 1000)
        wrong += status != 200
        if closes:
            client.close()
            client = socket.create_connection(("127.0.0.1", port), 10)
        time.sleep(0.005)
    times.sort()
    out.put((times[len(times) // 2], times[int(len(times) * 0.99)], len(times), wrong))


def flooder(port, token, count, rate, seed, out):
    """Sends `count` requests with random key IDs, 20 in a write, at no more than `rate` a second."""
    numbers, statuses = random.Random(seed), {}
    client, buffer = socket.create_connection(("127.0.0.1", port), 10), bytearray()
    began, sent = time.monotonic(), 0
    while sent < count:
        batch = min(20, count - sent)
        client.sendall(b"".join(post_verify(unknown(token, numbers)) for _ in range(batch)))
        for _ in range(batch):
            status, _, closes = read_answer(client, buffer)
            statuses[status] = statuses.get(status, 0) + 1
            if closes:
                # The last answer before the server's limit of requests: what was sent behind it is not answered.
                client.close()
                client, buffer = socket.create_connection(("127.0.0.1", port), 10), bytearray()
                break
        sent += batch
        time.sleep(max(0, began + sent / rate - time.monotonic()))
    out.put((statuses, time.monotonic() - began))


def run_known(port, request, seconds):
    out = multiprocessing.Queue()
    process = multiprocessing.Process(target=known_latency, args=(port, request, seconds, out))
    process.start()
    return process, out


def flood(binary, full):
    total, seconds, clients = (100_000, 10, 4) if full else (20_000, 4, 2)
    issuer = Issuer(binary)
    service = Service(binary, issuer)
    known = post_verify(issuer.token)
    _, out = run_known(service.port, known, seconds)
    p50, quiet, count, wrong = out.get(timeout=60)
    check(wrong == 0, f"without the flood: {count} known keys answered, p50 {p50:.2f} ms, p99 {quiet:.2f} ms")
    began = time.monotonic()
    # The memory of refused key IDs is made at the first one.
    ask(service.port, post_verify(unknown(issuer.token, random.Random(0))))
    memory, fetches = service.memory(), issuer.fetches - 1
    results = multiprocessing.Queue()
    flooders = [multiprocessing.Process(target=flooder, args=(
        service.port, issuer.token, total // clients, total / clients / seconds, seed, results)) for seed in range(clients)]
    _, out = run_known(service.port, known, seconds)
    for process in flooders:
        process.start()
    time.sleep(seconds / 2)
    pick_up(service, issuer)
    p50, loaded, count, wrong = out.get(timeout=60)
    statuses, took = {}, 0
    for _ in flooders:
        part, part_took = results.get(timeout=60)
        took = max(took, part_took)
        for status, number in part.items():
            statuses[status] = statuses.get(status, 0) + number
    # 503 is for key IDs that nobody has asked the issuer about, the budget being spent.
    check(set(statuses) <= {401, 503}, f"flood: {statuses} in {took:.1f} s")
    check(wrong == 0, f"flood: {count} known keys answered, p50 {p50:.2f} ms, p99 {loaded:.2f} ms")
    # Below a millisecond the p99 is the machine's scheduling, not the server's; the short run shares its machine.
    check(loaded <= (max(2 * quiet, 1) if full else WORST_P99_MS), f"flood: p99 of known keys {loaded:.2f} ms, without {quiet:.2f} ms")
    made, most = issuer.fetches - 1, 2 + int((time.monotonic() - began) / INTERVAL)
    check(made <= most, f"flood: {made} fetches for unknown key IDs ({fetches} before it), at most {most}")
    grown = service.memory() - memory
    check(grown <= 512, f"flood: memory grew by {grown} KiB")
    check(service.stop() == 0, "flood: the service ends with exit code 0")


def pick_up(service, issuer):
    """A refetch in five seconds is the budget: no flood can spend more, nor keep a new key out for longer."""
    numbers, statuses, rotated_at = random.Random(1), [], time.monotonic()
    issuer.set = issuer.rotated_set
    while statuses[-1:] != [200] and time.monotonic() < rotated_at + 60:
        statuses.append(ask(service.port, post_verify(issuer.rotated_token))[0])
        ask(service.port, post_verify(unknown(issuer.token, numbers)))
        time.sleep(0.1)
    picked_up = time.monotonic() - rotated_at
    check(picked_up <= INTERVAL + 1, f"flood: a rotation in its middle was picked up after {picked_up:.1f} s")
    check(set(statuses) <= {200, 503}, f"flood: a new key's token is 503 until then: {sorted(set(statuses))}")


def loader(port, request, keeps, out):
    """Asks until the server is gone; counts answers, and requests on a made connection that had none."""
    answered, lost = 0, []
    while True:
        try:
            client = socket.create_connection(("127.0.0.1", port), 10)
        except OSError:
            break
        buffer, closes = bytearray(), False
        try:
            while not closes:
                client.sendall(request)
                status, _, closes = read_answer(client, buffer)
                if status != 200:
                    lost.append(f"status {status}")
                answered += 1
                closes = closes or not keeps
        except OSError as error:
            lost.append(repr(error))
        client.close()
    out.put((answered, lost))


def stop(binary, full):
    issuer = Issuer(binary)
    for _ in range(3 if full else 1):
        service = Service(binary, issuer)
        out = multiprocessing.Queue()
        clients = [multiprocessing.Process(target=loader, args=(service.port, post_verify(issuer.token), number % 2, out))
                   for number in range(12)]
        for process in clients:
            process.start()
        time.sleep(5 if full else 2)
        began = time.monotonic()
        code = service.stop()
        took = time.monotonic() - began
        results = [out.get(timeout=60) for _ in clients]
        answered, lost = sum(part[0] for part in results), sum((part[1] for part in results), [])
        check(code == 0 and not lost and answered > 1000,
              f"SIGTERM under load: {answered} answered, not answered {lost[:3]} ({len(lost)}), exit code {code} in {took:.2f} s")


def slow(binary, full):
    if not shutil.which("slowhttptest"):
        print("SKIPPED: slowhttptest is not installed")
        return
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    connections = min(10_000 if full else 2_000, hard - 500)
    issuer = Issuer(binary)
    service = Service(binary, issuer)
    url = f"http://127.0.0.1:{service.port}"
    modes = {"slow heads": ["-H", "-i", "2", "-u", url + "/verify"],
             "slow bodies": ["-B", "-i", "2", "-s", "8192", "-x", "10",
                              "-f", "application/json", "-u", url + "/verify"],
             "slow readers": ["-X", "-w", "1", "-y", "4", "-n", "1", "-z", "1", "-k", "3", "-u", url + "/livez"],
             "ranges": ["-R", "-a", "10", "-b", "3000", "-u", url + "/livez"]}
    for name, mode in modes.items():
        before = service.descriptors()
        seconds = 10 if full else 5
        _, out = run_known(service.port, post_verify(issuer.token), seconds)
        # One of them alone does not open so many connections as fast as this server closes them.
        number = 4 if full else 1
        tools = [subprocess.Popen(["slowhttptest", *mode, "-c", str(connections // number), "-r", "5000", "-l",
                                   str(seconds - 2), "-p", "3"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for _ in range(number)]
        busy, memory, broken = 0, 0, None
        while any(tool.poll() is None for tool in tools):
            held, used = service.descriptors() - before, service.memory()
            if used > BASE_KIB + max(held, 0) * BUSY_BYTES // 1024:
                broken = (held, used)
            busy, memory = max(busy, held), max(memory, used)
            time.sleep(0.1)
        p50, p99, count, wrong = out.get(timeout=60)
        check(wrong == 0 and p99 < WORST_P99_MS,
              f"{name}: {count} tokens of others accepted, {wrong} not, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
        check(broken is None, f"{name}: at most {busy} connections and {memory} KiB; over the bound at {broken}")
        check(service.settle(before + 2), f"{name}: every connection is closed")
    check(service.stop() == 0, "slow: the service ends with exit code 0")


# What the process may have of its own, its threads' stacks of 8 MB each included.
DATA_LIMIT = 256 << 20
# Requests near the greatest the grammar lets through.
FIELDS = b"".join(b"X-Filler-%d: %s\r\n" % (number, b"a" * 7_700) for number in range(4))


def hoard(binary, full):
    service = Service(binary, Issuer(binary), data_limit=DATA_LIMIT)
    request = b"GET /livez HTTP/1.1\r\nHost: a\r\n" + FIELDS + b"\r\n"
    count = 9_999 if full else 2_000
    with service.connect(30) as client:
        client.sendall(request)
        buffer = bytearray()
        read_answer(client, buffer)
        memory, most, answered = service.memory(), 0, 0
        client.sendall(request[:-1])
        for number in range(count - 2):
            client.sendall(request[-1:] + request[:-1])
            answered += read_answer(client, buffer)[0] == 200
            if number % 100 == 0:
                most = max(most, service.memory())
        most = max(most, service.memory())
    check(answered == count - 2, f"hoard: {answered} of {count - 2} answered")
    check(most - memory <= 1024, f"hoard: one connection, {count} requests of {len(request)} bytes: memory + {most - memory} KiB")
    check(service.stop() == 0, "hoard: the service ends with exit code 0")


def slow_readers(binary, full):
    service = Service(binary, Issuer(binary), data_limit=DATA_LIMIT)
    request = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
    size = len(ask(service.port, request)[1])
    memory, clients, most = service.memory(), [], 0
    for _ in range(300):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", service.port))
        client.sendall(request * 20)
        clients.append(client)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        most = max(most, service.memory())
        time.sleep(0.05)
    grown = most - memory
    check(grown <= 10 * 1024, f"readers: 300 of 20 times {size} bytes each: memory + {grown} KiB")
    for client in clients:
        client.close()
    check(service.stop() == 0, "readers: the service ends with exit code 0")


def resident(service):
    with open(f"/proc/{service.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


def uploads(binary, full):
    issuer = Issuer(binary)
    service = Service(binary, issuer, data_limit=DATA_LIMIT)
    _, out = run_known(service.port, post_verify(issuer.token), 6)
    head = b"POST /verify HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 16384\r\n" + FIELDS
    clients, most = [], 0
    for number in range(1_000):
        client = service.connect(30)
        try:
            client.sendall(head + b"\r\n" + b"x" * 16_383)
        except OSError:
            pass
        clients.append(client)
        if number % 50 == 0:
            most = max(most, service.memory())
    for _ in range(10):
        most = max(most, service.memory())
        time.sleep(0.1)
    p50, p99, count, wrong = out.get(timeout=60)
    check(wrong == 0, f"uploads: {count} tokens of others accepted, {wrong} not, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    check(most <= 56 * 1024, f"uploads: 1,000 of {len(head) + 16_385} bytes each, {most} KiB of the process's own, "
          f"{resident(service)} KiB resident with its files")
    for client in clients:
        client.close()
    check(service.stop() == 0, "uploads: the service ends with exit code 0")


def resetter(port, request, count):
    reset = struct.pack("ii", 1, 0)
    for number in range(count):
        client = socket.socket()
        client.connect(("127.0.0.1", port))
        client.send(request if number % 2 else request[:40])
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        client.close()


def churn(binary, full):
    issuer = Issuer(binary)
    service = Service(binary, issuer)
    request = post_verify(issuer.token)
    resetter(service.port, request, 2_000)
    service.settle(0)
    before, memory = service.descriptors(), service.memory()
    count, began, marks = 1_000_000 if full else 20_000, time.monotonic(), []
    for _ in range(10):
        clients = [multiprocessing.Process(target=resetter, args=(service.port, request, count // 20)) for _ in range(2)]
        for process in clients:
            process.start()
        for process in clients:
            process.join()
        marks.append(service.memory())
    took = time.monotonic() - began
    check(service.settle(before), f"churn: {count} resets in {took:.0f} s, {service.descriptors()} descriptors, before {before}")
    check(max(marks) <= memory + 1024, f"churn: {memory} KiB before, then at each tenth {marks}")
    check(ask(service.port, request)[0] == 200, "churn: a token is accepted afterwards")
    check(service.stop() == 0, "churn: the service ends with exit code 0")


def drip_shares(port, count, held, over):
    """Connections that are never idle: each ends its request, and begins the next in the same write, every half second."""
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
            try:
                client.send(go_on)
                client.recv(4096)
            except OSError:
                pass
        over.wait(max(0, began + 0.5 - time.monotonic()))


def crowd(binary, _full):
    issuer = Issuer(binary)
    # By default the memory of connections is short first; with more of it the slots are.
    for memory in "64MiB", "256MiB":
        service = Service(binary, issuer, "--memory-limit", memory)
        processes, slots = 4, 10_000
        held, over = multiprocessing.Queue(), multiprocessing.Event()
        attackers = [multiprocessing.Process(target=drip_shares, args=(service.port, slots // processes, held, over))
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
        check(statuses == [200] * 15 and (memory == "64MiB" or open_before >= slots),
              f"crowd: 10,000 dripping connections from one address, {open_before} descriptors with {memory}; "
              f"{statuses.count(200)} of 15 tokens from elsewhere accepted, slowest {max(times):.0f} ms")
        check(service.stop() == 0, "crowd: the service ends with exit code 0")


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(text)


NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"]


def certificates(folder):
    """Makes an authority and a certificate for localhost; the flags with which the service uses it."""
    openssl(folder, "req", "-x509", *NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Authority", "-days", "30",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl(folder, "req", *NEW_KEY, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    write(folder, "names", "subjectAltName=DNS:localhost,IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n"
          "subjectKeyIdentifier=hash\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n")
    openssl(folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-out", "server.pem",
            "-days", "30", "-extfile", "names")
    return ["--tls-certificate-file", f"{folder}/server.pem", "--tls-key-file", f"{folder}/server.key"]


def client_certificate(folder, seconds):
    """Makes a client's certificate that ends in so many seconds."""
    openssl(folder, "req", *NEW_KEY, "-keyout", "client.key", "-out", "client.csr", "-subj", "/CN=caller")
    write(folder, "index.txt", "")
    write(folder, "serial", "01\n")
    write(folder, "ca.conf", "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\n"
          "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
    end = time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
    openssl(folder, "ca", "-batch", "-config", "ca.conf", "-cert", "ca.pem", "-keyfile", "ca.key", "-in", "client.csr",
            "-out", "client.pem", "-notext", "-startdate", "200101000000Z", "-enddate", end)


def silent_clients(port, seconds, first, over, out):
    """500 connections a second, each held for as long as the server lets it, that say nothing or one byte."""
    held, began, count = [], time.monotonic(), 0
    while not over.is_set() and time.monotonic() < began + seconds:
        client = socket.socket()
        try:
            client.connect(("127.0.0.1", port))
            client.send(first)
        except OSError:
            pass
        held.append(client)
        count += 1
        if len(held) > 5_000:
            held.pop(0).close()
        time.sleep(max(0, began + count / 500 - time.monotonic()))
    out.put(count / (time.monotonic() - began))


def handshakes(port, folder, seconds):
    """Honest handshakes one by one: the times in ms, and how many failed."""
    context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
    times, failed, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        try:
            with socket.create_connection(("127.0.0.1", port), 10) as plain, \
                    context.wrap_socket(plain, server_hostname="localhost"):
                times.append((time.monotonic() - began) * 1000)
        except OSError:
            failed += 1
        time.sleep(0.02)
    return times, failed


def silent(binary, full):
    seconds = 20 if full else 6
    with tempfile.TemporaryDirectory() as folder:
        service = Service(binary, Issuer(binary), *certificates(folder))
        quiet = statistics.median(handshakes(service.port, folder, 3)[0])
        for name, first in {"silent": b"", "one byte": b"\x16"}.items():
            over, rates = multiprocessing.Event(), multiprocessing.Queue()
            attackers = [multiprocessing.Process(target=silent_clients, args=(service.port, seconds, first, over, rates))
                         for _ in range(2)]
            for process in attackers:
                process.start()
            time.sleep(1)
            times, failed = handshakes(service.port, folder, seconds - 1)
            over.set()
            rate = sum(rates.get(timeout=60) for _ in attackers)
            median = statistics.median(times)
            check(failed == 0 and median <= 3 * quiet,
                  f"{name}: {rate:.0f} connections a second for {seconds} s; {len(times)} honest handshakes, {failed} failed, "
                  f"median {median:.1f} ms, quiet {quiet:.1f} ms, worst {max(times):.0f} ms")
        check(service.stop() == 0, "silent: the service ends with exit code 0")


def tickets(binary, _full):
    life = 8
    with tempfile.TemporaryDirectory() as folder:
        flags = [*certificates(folder), "--tls-client-ca-file", f"{folder}/ca.pem"]
        service = Service(binary, Issuer(binary), *flags)
        end = time.monotonic() + life
        client_certificate(folder, life)
        sessions = {}
        for version in ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3:
            context = ssl.create_default_context(cafile=f"{folder}/ca.pem")
            context.load_cert_chain(f"{folder}/client.pem", f"{folder}/client.key")
            context.minimum_version = context.maximum_version = version

            def visit(session=None, context=context):
                with socket.create_connection(("127.0.0.1", service.port), 10) as plain, \
                        context.wrap_socket(plain, server_hostname="localhost", session=session) as client:
                    client.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
                    return read_answer(client, bytearray())[0], client.session, client.session_reused

            status, session, _ = visit()
            _, session, reused = visit(session)
            check(status == 200 and not reused, f"tickets: {version.name}: a second handshake is a whole one")
            sessions[version] = (visit, session)
        time.sleep(max(0, end + 1 - time.monotonic()))
        for version, (visit, session) in sessions.items():
            try:
                outcome = f"answered {visit(session)[0]}"
            except OSError as error:
                outcome = "refused" if "expired" in str(error) else repr(error)
            check(outcome == "refused", f"tickets: {version.name}: a session after the certificate's end is {outcome}")
        check(service.stop() == 0, "tickets: the service ends with exit code 0")


ATTACKS = {"flood": flood, "stop": stop, "slow": slow, "hoard": hoard, "readers": slow_readers, "uploads": uploads,
           "churn": churn, "crowd": crowd, "silent": silent, "tickets": tickets}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--binary", default=os.path.join(ROOT, ".build", "debug", "limited-login"))
    options.add_argument("--full", action="store_true")
    options.add_argument("names", nargs="*", choices=[[], *ATTACKS])
    chosen = options.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for name in chosen.names or ATTACKS:
        ATTACKS[name](chosen.binary, chosen.full)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
