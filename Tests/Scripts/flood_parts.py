"""The clients that flood the service; see `flood_test.py` and `service_attacks.py`."""
import base64
import collections
import contextlib
import hashlib
import json
import secrets
import select
import socket
import time

from attack_parts import post
from dpop_test import forwarded
from harness import read_answer


class Clients:
    """Connections of one process, with one request at a time on each: a waiting request would delay those behind it."""

    # The most requests that are sent before answers are read, and the most seconds of delay that a late sender makes up for.
    AT_ONCE, DEBT = 50, 1

    def __init__(self, port, count, source="127.0.0.1"):
        self.address, self.source = ("127.0.0.1", port), (source, 0)
        self.poll, self.open, self.idle, self.statuses = select.epoll(), {}, [], collections.Counter()
        for _ in range(count):
            self.connect()

    def connect(self):
        client = socket.create_connection(self.address, 60, source_address=self.source)
        client.setblocking(False)
        self.poll.register(client, select.EPOLLIN)
        self.open[client.fileno()] = client, bytearray()
        self.idle.append(client.fileno())

    def send(self, request):
        # If the service has closed the connection, the next read reports it.
        with contextlib.suppress(OSError):
            self.open[self.idle.pop()][0].sendall(request)

    def send_at(self, rate, make, goes_on):
        """Sends `make(number)` at no more than `rate` a second while `goes_on(number)`."""
        began, sent = time.monotonic(), 0
        while goes_on(sent):
            began = max(began, time.monotonic() - self.DEBT - sent / rate)
            due = int((time.monotonic() - began) * rate) + 1
            for _ in range(min(due - sent, len(self.idle), self.AT_ONCE)):
                if goes_on(sent):
                    self.send(make(sent))
                    sent += 1
            self.receive()

    def receive(self):
        """Reads the answers that come within some milliseconds, and counts the statuses."""
        for number, _ in self.poll.poll(0.002):
            client, buffer = self.open[number]
            try:
                status, _, closes = read_answer(client, buffer)
            except BlockingIOError:
                continue
            except OSError:
                status, closes = "closed", True
            if number in self.idle:
                # The connection had no request, so nothing is lost.
                self.idle.remove(number)
            else:
                self.statuses[status] += 1
            if closes:
                del self.open[number]
                client.close()
                self.connect()
            else:
                self.idle.append(number)

    def settle(self, seconds):
        """Waits until each request has its answer."""
        end = time.monotonic() + seconds
        while len(self.idle) < len(self.open) and time.monotonic() < end:
            self.receive()


class Exchange:
    """A connection that sends several requests at a time. It connects again if the server has closed the connection."""

    def __init__(self, port):
        self.port, self.client = port, None

    def ask(self, requests):
        answers = []
        while len(answers) < len(requests):
            if not self.client:
                self.client, self.buffer = socket.create_connection(("127.0.0.1", self.port), 60), bytearray()
            try:
                self.client.sendall(b"".join(requests[len(answers):]))
                for _ in requests[len(answers):]:
                    status, body, closes = read_answer(self.client, self.buffer)
                    answers.append((status, body))
                    if closes:
                        self.client = None
                        break
            except OSError:
                self.client = None
        return answers


def prover(workshop, url, token, key, ports, count, out):
    """Lets the workshop's device make proofs, 20 at a time, and sends each once; puts the number of each answer."""
    answers = collections.Counter()
    making = post("/proofs", json.dumps({"id_token": token, "method": "GET", "url": url}))
    head = "".join(f"{name}: {value}\r\n" for name, value in forwarded("GET", url).items())
    head = f"GET /auth HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\nAuthorization: DPoP {token}\r\n{head}DPoP: ".encode()
    workshop = Exchange(int(workshop.address.rsplit(":", 1)[1]))
    replicas = [Exchange(port) for port in ports]
    for start in range(0, count, 20):
        made = workshop.ask([making] * min(20, count - start))
        proofs = [json.loads(body)["proof"].encode() for status, body in made if status == 200]
        for status, body in replicas[start // 20 % len(replicas)].ask([head + proof + b"\r\n\r\n" for proof in proofs]):
            answers[200 if status == 200 else f"{status} {json.loads(body).get('code')}"] += 1
    out.put(answers)


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Device:
    """A P-256 key that signs fast: its signatures share one random number. That gives the key away, and spares the curve."""

    PRIME, ORDER = 2**256 - 2**224 + 2**192 + 2**96 - 1, 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    BASE = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
            0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)

    def __init__(self):
        self.secret, chance = secrets.randbelow(self.ORDER - 1) + 1, secrets.randbelow(self.ORDER - 1) + 1
        self.start, self.inverse = self.multiple(chance)[0] % self.ORDER, pow(chance, -1, self.ORDER)
        x, y = (base64url(number.to_bytes(32)) for number in self.multiple(self.secret))
        key = {"crv": "P-256", "kty": "EC", "x": x, "y": y}
        self.thumbprint = base64url(hashlib.sha256(json.dumps(key, separators=(",", ":")).encode()).digest())
        self.head = base64url(json.dumps({"typ": "dpop+jwt", "alg": "ES256", "jwk": key}).encode())

    @classmethod
    def sum(cls, one, other):
        if one is None or other is None:
            return one or other
        rise, run = (3 * one[0] ** 2 - 3, 2 * one[1]) if one == other else (other[1] - one[1], other[0] - one[0])
        slope = rise * pow(run, -1, cls.PRIME)
        x = (slope**2 - one[0] - other[0]) % cls.PRIME
        return x, (slope * (one[0] - x) - one[1]) % cls.PRIME

    @classmethod
    def multiple(cls, count):
        result, power = None, cls.BASE
        while count:
            if count & 1:
                result = cls.sum(result, power)
            power, count = cls.sum(power, power), count >> 1
        return result

    def proof(self, method, url, token, name):
        claims = {"htm": method, "htu": url, "iat": int(time.time()), "jti": name,
                  "ath": base64url(hashlib.sha256(token.encode()).digest())}
        text = f"{self.head}.{base64url(json.dumps(claims).encode())}"
        digest = int.from_bytes(hashlib.sha256(text.encode()).digest())
        end = self.inverse * (digest + self.start * self.secret) % self.ORDER
        return f"{text}.{base64url(self.start.to_bytes(32) + end.to_bytes(32))}"


def owner_of_keys(devices, tokens, url, key, ports, seconds, out):
    """Sends proofs of one person's devices in turn, 20 at a time, to the replicas in turn; puts the number of each answer."""
    answers, fields = collections.Counter(), "".join(f"{name}: {value}\r\n" for name, value in forwarded("GET", url).items())
    replicas, number, end = [Exchange(port) for port in ports], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        requests = []
        for number in range(number + 1, number + 21):
            device, token = devices[number % len(devices)], tokens[number % len(devices)]
            requests.append(f"GET /auth HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\nAuthorization: DPoP {token}\r\n{fields}"
                            f"DPoP: {device.proof('GET', url, token, str(number))}\r\n\r\n".encode())
        for status, body in replicas[number // 20 % len(replicas)].ask(requests):
            answers[200 if status == 200 else f"{status} {json.loads(body).get('code')}"] += 1
    out.put(answers)
