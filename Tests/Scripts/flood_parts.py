"""The clients that flood the service; see `flood_test.py` and `service_attacks.py`."""
import collections
import contextlib
import json
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
