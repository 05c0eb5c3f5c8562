"""Attacks on the TLS of a running `limited-login serve`; see `service_attacks.py`."""
import contextlib
import multiprocessing
import select
import socket
import statistics
import time

from attack_parts import PAUSES, Issuer, Service, at_once, bound, close, held
from harness import Authority, Folder, check


def silent_clients(port, seconds, first, over, out):
    """Opens 500 connections a second that send nothing or one byte, and holds each as long as the server allows."""
    held, began, count = [], time.monotonic(), 0
    while not over.is_set() and time.monotonic() < began + seconds:
        client = socket.socket()
        with contextlib.suppress(OSError):
            client.connect(("127.0.0.1", port))
            client.send(first)
        held.append(client)
        count += 1
        if len(held) > 5_000:
            held.pop(0).close()
        time.sleep(max(0, began + count / 500 - time.monotonic()))
    out.put(count / (time.monotonic() - began))


@contextlib.contextmanager
def secure(binary):
    """A service that speaks TLS; gives it, and the function `handshakes` for it."""
    with Folder() as folder:
        authority = Authority(folder)
        context = authority.context()
        with Service(binary, Issuer(binary), **authority.settings()) as service:
            yield service, lambda seconds: handshakes(service.port, context, seconds)


def handshakes(port, context, seconds):
    """Makes honest handshakes one by one; returns the times in ms and the number of failures."""
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
    with secure(binary) as (service, handshakes):
        quiet = statistics.median(handshakes(3)[0])
        for name, first in {"silent": b"", "one byte": b"\x16"}.items():
            over, rates = multiprocessing.Event(), multiprocessing.Queue()
            attackers = [multiprocessing.Process(target=silent_clients, args=(service.port, seconds, first, over, rates))
                         for _ in range(2)]
            for process in attackers:
                process.start()
            time.sleep(1)
            times, failed = handshakes(seconds - 1)
            over.set()
            rate = sum(rates.get(timeout=60) for _ in attackers)
            median = statistics.median(times)
            check(failed == 0 and median <= 3 * quiet,
                  f"{name}: {rate:.0f} connections a second for {seconds} s; {len(times)} honest handshakes, {failed} failed, "
                  f"median {median:.1f} ms, quiet {quiet:.1f} ms, worst {max(times):.0f} ms")


def stalled_clients(port, count, over):
    """Holds `count` connections from one address with one byte of a handshake each, and replaces each one that is closed."""
    held, events = {}, select.epoll()
    while not over.is_set():
        while len(held) < count and not over.is_set():
            client = socket.socket()
            client.bind(("127.0.0.2", 0))
            try:
                client.connect(("127.0.0.1", port))
                client.send(b"\x16")
            except OSError:
                client.close()
                continue
            held[client.fileno()] = client
            events.register(client, select.EPOLLIN)
        for descriptor, _ in events.poll(0.05):
            events.unregister(descriptor)
            held.pop(descriptor).close()


def stalled(binary, full):
    with secure(binary) as (service, handshakes):
        quiet = statistics.median(handshakes(3)[0])
        over = multiprocessing.Event()
        attacker = multiprocessing.Process(target=stalled_clients, args=(service.port, 3_900, over))
        PAUSES.take()
        attacker.start()
        time.sleep(3)
        times, failed = handshakes(20 if full else 6)
        over.set()
        attacker.join(60)
        median, longest = statistics.median(times), bound(3 * quiet, full)
        check(failed == 0 and median <= longest,
              f"stalled: 3,900 connections of one address, one byte each; {len(times)} honest handshakes from another, "
              f"{failed} failed, median {median:.1f} ms, quiet {quiet:.1f} ms, worst {max(times):.0f} ms")


def hellos(binary, _full):
    """Sends 500 hellos without their last byte, of 131,000 bytes and of the largest accepted size."""
    for size in 131_000, 16_384:
        with secure(binary) as (service, handshakes):
            message = b"\x01" + size.to_bytes(3, "big") + b"\x03\x03" + bytes(size - 3)
            records = [message[start:start + 16_384] for start in range(0, len(message), 16_384)]
            bytes_sent = b"".join(b"\x16\x03\x01" + len(record).to_bytes(2, "big") + record for record in records)
            clients, most = held(service, 500, at_once(bytes_sent))
            check(most <= service.bound, f"hellos: 500 of {size} bytes but one, at most {most} KiB resident")
            close(clients)
            _, failed = handshakes(0.5)
            check(failed == 0, f"hellos: of the handshakes after them {failed} failed")
