"""The clients that flood the service, and a slow Graph; see `flood_test.py` and `service_attacks.py`."""
import asyncio
import collections
import contextlib
import hashlib
import json
import os
import select
import socket
import time

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from dpop_test import forwarded
from harness import base64url, read_answer
from live import APP_ID


class Clients:
    """Connections of one process, with one request at a time on each: a waiting request would delay those behind it. `statuses`
    counts the answers. A request that is refused because the machine is late has the status `BUSY`, a lost one `LOST`."""

    BUSY, LOST = "busy", "closed"

    # The most requests that are sent before answers are read, and the most seconds of delay that a late sender makes up for.
    AT_ONCE, DEBT = 50, 1

    def __init__(self, port, count, source="127.0.0.1"):
        self.address, self.source = ("127.0.0.1", port), (source, 0)
        self.poll, self.open, self.idle, self.statuses = select.epoll(), {}, [], collections.Counter()
        # When each connection was last asked, and the longest time of an answer in seconds.
        self.began, self.longest = {}, 0
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
            number = self.idle.pop()
            self.began[number] = time.monotonic()
            self.open[number][0].sendall(request)

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
                status, body, closes = read_answer(client, buffer)
            except BlockingIOError:
                continue
            except OSError:
                status, body, closes = self.LOST, b"", True
            if number in self.idle:
                # The connection had no request, so nothing is lost.
                self.idle.remove(number)
            else:
                self.statuses[self.BUSY if status == 503 and b'"overloaded"' in body else status] += 1
                self.longest = max(self.longest, time.monotonic() - self.began[number])
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


class Device:
    """A P-256 key that makes DPoP proofs (RFC 9449)."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        point = self.key.public_key().public_numbers()
        key = {"crv": "P-256", "kty": "EC"} | {name: base64url(getattr(point, name).to_bytes(32, "big")) for name in "xy"}
        self.thumbprint = base64url(hashlib.sha256(json.dumps(key, separators=(",", ":")).encode()).digest())
        self.head = base64url(json.dumps({"typ": "dpop+jwt", "alg": "ES256", "jwk": key}).encode())

    def proof(self, method, url, token, name):
        claims = {"htm": method, "htu": url, "iat": int(time.time()), "jti": name,
                  "ath": base64url(hashlib.sha256(token.encode()).digest())}
        text = f"{self.head}.{base64url(json.dumps(claims).encode())}"
        numbers = utils.decode_dss_signature(self.key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{base64url(b''.join(number.to_bytes(32, 'big') for number in numbers))}"


def prover(devices, tokens, url, key, ports, goes_on, out):
    """Sends proofs of the devices in turn, 20 at a time, to the replicas in turn, while `goes_on(number)`; puts the number of each
    answer."""
    answers, fields = collections.Counter(), "".join(f"{name}: {value}\r\n" for name, value in forwarded("GET", url).items())
    replicas, number = [Exchange(port) for port in ports], 0
    while goes_on(number):
        requests = []
        for number in range(number + 1, number + 21):
            device, token = devices[number % len(devices)], tokens[number % len(devices)]
            proof = device.proof("GET", url, token, f"{os.getpid()}-{number}")
            requests.append(f"GET /auth HTTP/1.1\r\nHost: a\r\nX-Api-Key: {key}\r\nAuthorization: DPoP {token}\r\n{fields}"
                            f"DPoP: {proof}\r\n\r\n".encode())
        for status, body in replicas[number // 20 % len(replicas)].ask(requests):
            answers[200 if status == 200 else f"{status} {json.loads(body).get('code')}"] += 1
    out.put(answers)


# The beginning of honest access tokens; the slow Graph knows no others.
HONEST = "EAAhonest"


def slow_graph(port):
    """Runs a Graph that knows the honest tokens and takes a tenth of a second for each answer; puts its port."""
    async def serve(reader, writer):
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
                await asyncio.sleep(0.1)
                data = {"is_valid": HONEST in path, "scopes": []}
                if HONEST in path:
                    data |= {"app_id": APP_ID, "type": "USER", "expires_at": 4_000_000_000, "user_id": "77"}
                body = json.dumps({"data": data} if "/debug_token" in path else {"id": "77"}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                             + body)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    async def run():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def senders(port, make, rate, count, seconds, out):
    """Runs `count` clients of one address, each with a request of its own from `make(number)`; puts the number of each status."""
    clients, end = Clients(port, count, "127.0.0.2"), time.monotonic() + seconds
    clients.send_at(rate, make, lambda _: time.monotonic() < end)
    # A request waits for Graph for five seconds.
    clients.settle(10)
    out.put(dict(clients.statuses))
