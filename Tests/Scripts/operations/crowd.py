"""Sends requests at their times, each on a connection without another waiting request, and records the answers."""

import asyncio
import time


class Crowd:
    """Sends requests to one port and keeps (begin, status, seconds) of each by its kind. A lost request has status 0. A request
    that is refused because the machine is late has status `BUSY`."""

    BUSY = "busy"

    def __init__(self, port):
        self.port, self.idle, self.answers = port, [], {}

    async def connection(self):
        """An idle connection, or a new one. The service closes one that is idle for longer than its limit, and a client opens
        another (RFC 9112, 9.5)."""
        while self.idle:
            reader, writer = self.idle.pop()
            if not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def send(self, kind, path, body, fields="", method="POST"):
        began = time.monotonic()
        writer, text = None, b""
        try:
            reader, writer = await self.connection()
            kind_of_body = "" if "Content-Type" in fields else "Content-Type: application/json\r\n"
            writer.write(f"{method} {path} HTTP/1.1\r\nHost: test\r\n{kind_of_body}{fields}"
                         f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.split(b"content-length: ")[1:]
            text = await reader.readexactly(int(length[0].split(b"\r\n")[0])) if length else b""
            if b"connection: close" in head:
                writer.close()
            else:
                self.idle.append((reader, writer))
            status = int(head[9:12])
            if status == 503 and b'"overloaded"' in text:
                status = self.BUSY
        except (OSError, asyncio.IncompleteReadError, IndexError):
            if writer:
                writer.close()
            status = 0
        self.answers.setdefault(kind, []).append((began, status, time.monotonic() - began))
        return status, text

    async def at_rate(self, kind, rate, seconds, request):
        """Sends `rate` requests a second; `request` gives the path and the body of each."""
        began, sent, tasks = time.monotonic(), 0, set()
        while (now := time.monotonic() - began) < seconds:
            while sent < now * rate:
                task = asyncio.create_task(self.send(kind, *request()))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                sent += 1
            await asyncio.sleep(min(0.005, 0.5 / rate))
        if tasks:
            await asyncio.wait(tasks)

    def statuses(self, kind):
        """The number of answers with each status."""
        counts = {}
        for _, status, _ in self.answers.get(kind, []):
            counts[status] = counts.get(status, 0) + 1
        return dict(sorted(counts.items(), key=str))

    def close(self):
        for _, writer in self.idle:
            writer.close()
        self.idle = []
