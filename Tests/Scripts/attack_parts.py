"""Parts that the attacks on the running service share: its issuer, tokens, an honest client, held connections."""
import contextlib
import json
import multiprocessing
import resource
import socket
import threading
import time

import harness
import live
from harness import check, read_answer

NONCE = "n-1"
# The most data memory of the process in bytes (RLIMIT_DATA), with its threads' stacks of 8 MB each.
DATA_LIMIT = 256 << 20
# The longest p99 of an honest client's latency in a short run, without the machine's own pauses.
WORST_P99_MS = 50
# Bounds of private memory (RssAnon): of an idle connection, of a busy one, and of the process alone.
IDLE_BYTES = 1536
BUSY_BYTES = 20 * 1024
BASE_KIB = 4 * 1024
KEYS_PATH = "/.well-known/oauth/openid/jwks/"
LIVEZ = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"


def post(path, body, fields=None):
    """The bytes of a request with this text as its body, JSON unless the fields name another type."""
    fields = {"Host": "a", "Content-Type": "application/json", "Content-Length": len(body)} | (fields or {})
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n{body}".encode()


def post_verify(token):
    return post("/verify", json.dumps({"id_token": token, "nonce": NONCE}))


class Issuer:
    """Serves a key set and counts how often it is asked; a stand-in issuer has minted a token for it."""

    def __init__(self, binary):
        with live.Issuer(binary) as minting:
            self.set, self.token = harness.request(minting.port, "GET", KEYS_PATH)[1], minting.token(nonce=NONCE)
            minting.rotate()
            self.rotated_set, self.rotated_token = harness.request(minting.port, "GET", KEYS_PATH)[1], minting.token(nonce=NONCE)
        self.fetches = 0
        self.url = harness.serve(self.answer).url + KEYS_PATH

    def answer(self, _request):
        self.fetches += 1
        return self.set


class Service(live.Server):
    """`limited-login serve` with a limit of its data memory, ready to answer."""

    def __init__(self, binary, issuer, data_limit=DATA_LIMIT, **settings):
        super().__init__(binary, issuer.url, lambda: resource.setrlimit(resource.RLIMIT_DATA, (data_limit, data_limit)), **settings)
        self.wait_until_ready()

    def __exit__(self, *_):
        check(self.stop() == 0, "the service ends with exit code 0")


def connected(port):
    return socket.create_connection(("127.0.0.1", port), 30)


def known_latency(port, request, seconds, out, connect=connected):
    """Runs an honest client with 200 requests a second; puts its p50 and p99 in ms, the requests, and those without a 200.

    At the limit of connections the service closes idle ones. The client then asks once more on a new one, as HTTP clients do.
    """
    times, wrong = [], 0
    client, buffer = connect(port), bytearray()
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
                client, buffer = connect(port), bytearray()
        times.append((time.monotonic() - began) * 1000)
        wrong += status != 200
        if closes:
            client.close()
            client = connect(port)
        time.sleep(0.005)
    times.sort()
    out.put((times[len(times) // 2], times[int(len(times) * 0.99)], len(times), wrong))


class Known:
    """An honest client in a process of its own."""

    def __init__(self, port, request, seconds, connect=connected):
        PAUSES.take()
        self.out = multiprocessing.Queue()
        multiprocessing.Process(target=known_latency, args=(port, request, seconds, self.out, connect)).start()

    def judge(self, name, goal=float("inf"), full=True):
        """Checks that every request was answered by 200, with a p99 in ms below the goal; returns the p99."""
        p50, p99, count, wrong = self.out.get(timeout=60)
        check(wrong == 0 and p99 <= bound(goal, full),
              f"{name}: {count} requests of others answered, {wrong} not, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
        return p99


class Pauses(threading.Thread):
    """Measures how late the machine wakes a sleeping thread of this process."""

    def __init__(self):
        super().__init__(daemon=True)
        self.longest, self.last = 0, -60
        self.start()

    def run(self):
        while True:
            began = time.monotonic()
            time.sleep(0.005)
            pause = (time.monotonic() - began) * 1000 - 5
            self.longest = max(self.longest, pause)
            if pause > 100:
                self.last = time.monotonic()

    def are_recent(self):
        """True if there was a long pause in the last seconds: at such a time the machine is at fault."""
        return time.monotonic() - self.last < 3

    def take(self):
        """The longest pause in ms since the last call."""
        longest, self.longest = self.longest, 0
        return longest


PAUSES = Pauses()


def bound(goal, full):
    """The longest allowed p99 in ms. A short run shares its machine, so the machine's longest pause is added."""
    pause = PAUSES.take()
    return goal if full else WORST_P99_MS + pause


def held(service, count, send, seconds=1, connect=None):
    """Opens connections and calls `send` with each; gives them, and the service's most resident KiB until some seconds later."""
    clients, most = [], 0
    for number in range(count):
        with contextlib.suppress(OSError):
            clients.append((connect or service.connect)())
            send(clients[-1])
        if number % 50 == 0:
            most = max(most, service.resident())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, service.resident())
        time.sleep(0.1)
    return clients, most


def at_once(data):
    """Sends as much of the bytes as the connection takes now."""
    def send(client):
        client.setblocking(False)
        client.send(data)
    return send


def close(clients):
    for client in clients:
        client.close()
