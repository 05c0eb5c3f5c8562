"""The clients that flood the service; see `flood_test.py`."""
import asyncio
import collections
import json
import socket
import time
import urllib.parse

from dpop_test import forwarded
from live import read_answer


class Exchange:
    """A connection on which requests go out several at a time; made anew where the server has had enough of it."""

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
    """Has the workshop's device make proofs, 20 at a time, and sends each once; puts how often each answer came."""
    answers = collections.Counter()
    ask = json.dumps({"id_token": token, "method": "GET", "url": url}).encode()
    making = (b"POST /proofs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(ask)
              + ask)
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


def repeater(port, text, seconds, out):
    """100 connections from one address repeat one callback."""
    body, answers = urllib.parse.urlencode({"signed_request": text}).encode(), collections.Counter()
    message = (b"POST /callbacks/deauthorize HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body)) + body

    async def client(end):
        writer = None
        while time.monotonic() < end:
            try:
                if not writer:
                    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
                writer.write(message)
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
                answers[int(head[9:12])] += 1
                if b"connection: close" in head:
                    writer = None
            except (OSError, asyncio.IncompleteReadError):
                writer = None

    async def run():
        end = time.monotonic() + seconds
        await asyncio.gather(*(client(end) for _ in range(100)))

    asyncio.run(run())
    out.put(answers)
