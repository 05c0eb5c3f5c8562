"""Tests the service while its standard error is not read: a full pipe, a reader that stops, a closed pipe, a closed descriptor, a
full disk; with and without an audit. No answer is late because of it, keys rotate, SIGTERM drains, lost lines are counted exactly.

Beside each service runs a second one with a log that is read, because the machine may be busy with other things. An answer is
late because of the log if it takes 50 ms more than the slowest answers of the second service at that time. A refusal counts if
the second service refuses nothing at that time."""

import asyncio
import bisect
import fcntl
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import urllib.request

import live
from live import APP_ID, check, free_port, read_answer, request, wait_until_ready

from .crowd import Crowd
from .world import Issuer, binary, verify_body

# The length of the load, and its requests a second on each service.
SECONDS, RATE = float(os.environ.get("LOG_SECONDS", "60")), 100
# The seconds beyond which an answer may be late; it is compared with the other service's answers up to NEAR before and after.
LATE, NEAR = 0.05, 0.5
# At the stop running requests have 10 s and the log 2 s; a slow machine gets twice their sum.
STOP_SECONDS = 24
# The most lines besides the audit: those of the start, of changed keys and of the end; and those of refusals in a second.
OTHER_LINES, REFUSAL_LINES = 20, 11
KINDS = ("a full pipe", "a stopped reader", "a closed pipe", "a closed descriptor", "a full disk")


class Quiet(live.Figures):
    """A service on known ports, with a standard error of this kind."""

    def __init__(self, issuer, kind, audit):
        self.kind, self.audit = kind, audit
        self.port, self.admin_port = free_port(), free_port()
        self.reader, self.lines, self.reads, self.has_stopped = None, [], threading.Event(), False
        settings = {"app_ids": APP_ID, "jwks_urls": issuer.jwks_url, "listen": f"127.0.0.1:{self.port}", "workers": "1",
                    "admin_listen": f"127.0.0.1:{self.admin_port}", "log_format": "json", "audit_log": audit}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LIMITED_LOGIN_")}
        environment |= {f"LIMITED_LOGIN_{name.upper()}": value for name, value in settings.items()}
        log, shell = self.log(kind), 'exec "$0" serve'
        if kind == "a closed descriptor":
            shell += " 2>&-"
        self.process = subprocess.Popen(["/bin/sh", "-c", shell, binary()], env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=log, cwd=tempfile.gettempdir())
        os.close(log)
        self.name = f"{kind}, audit {audit}"
        if not wait_until_ready(self.admin_port):
            raise RuntimeError(f"{self.name}: it does not start")

    def log(self, kind):
        if kind == "a full disk":
            return os.open("/dev/full", os.O_WRONLY)
        if kind == "a closed descriptor":
            return os.open(os.devnull, os.O_WRONLY)
        self.reader, writer = os.pipe()
        if kind == "a closed pipe":
            os.close(self.reader)
            self.reader = None
            return writer
        # The smallest pipe, one page, is soon as full as that of a slow reader.
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        if kind == "a full pipe":
            os.write(writer, b"\n" * 4096)
        else:
            self.reads.set()
        threading.Thread(target=self.read, daemon=True).start()
        return writer

    def read(self):
        rest = b""
        while self.reads.wait():
            data = os.read(self.reader, 65_536)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            self.lines += [line.decode() for line in lines if line]
            if self.kind == "a stopped reader" and len(self.lines) >= 13 and not self.has_stopped:
                self.has_stopped = True
                self.reads.clear()

    def dropped(self):
        text = request(self.admin_port, "GET", "/metrics")[1].decode()
        return int(float(re.search(r"^limited_login_log_lines_dropped_total (\S+)$", text, re.M).group(1)))

    def drops(self, least):
        """The number of dropped lines, once it reaches `least` or ten seconds have passed."""
        deadline = time.monotonic() + 10
        while (dropped := self.dropped()) < least and time.monotonic() < deadline:
            time.sleep(0.05)
        return dropped

    def flood(self, count):
        """Sends refused tokens as fast as they are answered, which cause more lines than any queue holds. Returns the number of
        audited answers, and the most other lines that the service writes."""
        body = verify_body("a.b.c")
        one = (f"POST /verify HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
               f"{body}").encode()
        with live.socket.create_connection(("127.0.0.1", self.port), 20) as client:
            buffer, audited, began = bytearray(), 0, time.monotonic()
            for _ in range(count // 50):
                client.sendall(one * 50)
                for _ in range(50):
                    audited += read_answer(client, buffer)[0] != 503
        return audited, OTHER_LINES + REFUSAL_LINES * int(time.monotonic() - began + 2)

    def close(self):
        """Lets the log be read again, and ends the service. Returns the exit code (None if it did not end) and the seconds."""
        self.reads.set()
        began = time.monotonic()
        self.process.terminate()
        try:
            return self.process.wait(STOP_SECONDS), time.monotonic() - began
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None, time.monotonic() - began


async def load(issuer, services):
    good = [issuer.token()]

    def rotate():
        urllib.request.urlopen(f"http://{issuer.address}/rotate", b"", timeout=30).close()
        good[0] = issuer.token()

    async def rotation():
        await asyncio.sleep(SECONDS / 2)
        await asyncio.to_thread(rotate)
        return time.monotonic()

    crowds = [Crowd(service.port) for service in services]
    *_, rotated = await asyncio.gather(
        *(crowd.at_rate("good", RATE, SECONDS, lambda: ("/verify", verify_body(good[0]))) for crowd in crowds), rotation())
    for crowd in crowds:
        crowd.close()
    return crowds, rotated


def late(crowd, control, rotated):
    """The number of requests that took much longer than those on the other service at that time. Requests around a rotation do
    not count: the first ones with a new key wait for a fetch, and each service fetches at its own time."""
    others = sorted(control.answers["good"])
    times = [began for began, _, _ in others]
    count = 0
    for began, status, seconds in crowd.answers["good"]:
        if status == 200 and (seconds <= LATE or rotated - 2 <= began <= rotated + 6):
            continue
        near = others[bisect.bisect(times, began - NEAR):bisect.bisect(times, began + seconds + NEAR)]
        if status == 200:
            count += seconds > LATE + max((other for _, _, other in near), default=0)
        else:
            count += all(other == 200 for _, other, _ in near)
    return count


def counts(service, requests, others):
    """Checks that every line is either written or counted as dropped, and that the log reports the dropped ones."""
    audits = sum('"message":"audit"' in line for line in service.lines)
    told = sum(int(json.loads(line)["count"]) for line in service.lines if '"log lines dropped"' in line)
    return audits, told, 0 <= audits + told - (requests if service.audit == "on" else 0) <= others


def try_one(issuer, kind, audit):
    control, service = Quiet(issuer, "a reader", audit), Quiet(issuer, kind, audit)
    try:
        (usual, crowd), rotated = asyncio.run(load(issuer, [control, service]))
        statuses = crowd.statuses("good")
        requests = sum(statuses.values())
        count = late(crowd, usual, rotated)
        slowest = [max(seconds for _, _, seconds in one.answers["good"]) * 1_000 for one in (crowd, usual)]
        check(count == 0 and statuses.get(200, 0) > 0,
              f"{service.name}: {requests} requests, {statuses}, {count} late because of it, slowest {slowest[0]:.0f} ms (with a "
              f"reader {slowest[1]:.0f} ms)")
        check(request(service.port, "POST", "/verify", verify_body(issuer.token()))[0] == 200,
              f"{service.name}: the new key is in force")
        check(request(service.admin_port, "GET", "/livez")[0] == 200, f"{service.name}: it is alive")
        # A request that is refused for lack of time is not in the audit.
        flooded, others = service.flood(10_000)
        audited = statuses.get(200, 0) + 1 + flooded
        # Each refused request of the load may have a line.
        others += requests - statuses.get(200, 0)
        lost = audited if audit == "on" and kind in ("a closed pipe", "a full disk") else 0
        dropped = service.drops(lost)
        code, seconds = service.close()
        check(code == 0, f"{service.name}: SIGTERM ends it with {code} after {seconds:.1f} s")
        if service.reader is None:
            check(lost <= dropped <= lost + others,
                  f"{service.name}: of {audited} audited answers {dropped} lines are counted as dropped")
            return
        time.sleep(0.2)
        audits, told, is_exact = counts(service, audited, others)
        check(is_exact and told >= dropped,
              f"{service.name}: of {audited} audited answers {audits} lines written, {told} told as dropped")
    finally:
        for one in (control, service):
            one.close()


def main():
    with Issuer() as issuer:
        for kind in KINDS:
            for audit in ("on", "off"):
                try_one(issuer, kind, audit)
