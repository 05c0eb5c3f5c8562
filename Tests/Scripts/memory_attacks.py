"""Attacks on the memory of a running `limited-login serve`; see `service_attacks.py`."""
import hashlib
import multiprocessing
import os
import socket
import ssl
import tempfile
import threading
import time

import live
import redis_groups
from attack_parts import Issuer, Service, ask, certificates, known_latency, post_verify, run_known, write
from live import check, read_answer

KEY = "a-key-for-these-tests"
# The size of the largest body that /verify takes.
BODY_BYTES = 49_152
# Fields that make a head almost as long as the grammar allows.
FIELDS = b"".join(b"X-Filler-%d: %s\r\n" % (number, b"a" * 7_700) for number in range(4))


def hoard(binary, full):
    service = Service(binary, Issuer(binary))
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
    service = Service(binary, Issuer(binary))
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


class TLSClient:
    """Opens TLS connections that trust the certificates made by `certificates`."""

    def __init__(self, folder):
        self.context = ssl.create_default_context(cafile=f"{folder}/ca.pem")

    def __call__(self, port):
        return self.context.wrap_socket(socket.create_connection(("127.0.0.1", port), 30), server_hostname="localhost")


def uploads(binary, _full):
    """Attacks a service over each of three kinds of connection, beside an honest client on the same kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"

        def over_unix(_port):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(30)
            client.connect(path)
            return client

        kinds = {"TCP": ({}, lambda port: socket.create_connection(("127.0.0.1", port), 30)),
                 "TLS": (certificates(folder), TLSClient(folder)), "a Unix socket": ({"listen": f"unix:{path}"}, over_unix)}
        for name, (settings, connect) in kinds.items():
            # Send half of the body after a short head, and all of it but one byte after the longest head.
            for fields, sent in (b"", BODY_BYTES // 2), (FIELDS, BODY_BYTES - 1):
                issuer = Issuer(binary)
                service = Service(binary, issuer, **settings)
                out, port = multiprocessing.Queue(), None if "listen" in settings else service.port
                multiprocessing.Process(target=known_latency,
                                        args=(port, post_verify(issuer.token), 6, out, connect)).start()
                held_uploads(f"uploads over {name}", service, lambda: connect(port), out, fields, sent)


def held_uploads(name, service, connect, out, fields, sent):
    head = (b"POST /verify HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % BODY_BYTES
            + fields)
    clients, most = [], 0
    for number in range(1_000):
        try:
            client = connect()
            clients.append(client)
            client.sendall(head + b"\r\n" + b"x" * sent)
        except OSError:
            pass
        if number % 50 == 0:
            most = max(most, service.resident())
    for _ in range(10):
        most = max(most, service.resident())
        time.sleep(0.1)
    p50, p99, count, wrong = out.get(timeout=60)
    check(wrong == 0, f"{name}: {count} tokens of others accepted, {wrong} not, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    check(most <= service.bound, f"{name}: 1,000 of {len(head) + 2 + sent} bytes each, at most {most} KiB resident")
    for client in clients:
        client.close()
    check(service.stop() == 0, f"{name}: the service ends with exit code 0")


def records(binary, _full):
    """Opens TLS connections that each begin a record and never end it."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(binary, Issuer(binary), **certificates(folder))
        connect, record = TLSClient(folder), b"\x17\x03\x03\x40\x11" + bytes(16_400)
        clients = [connect(service.port) for _ in range(2_200)]
        most = service.resident()
        for client in clients:
            try:
                os.write(client.fileno(), record)
            except OSError:
                pass
        for _ in range(10):
            most = max(most, service.resident())
            time.sleep(0.1)
        check(most <= service.bound, f"records: 2,200 begun and never ended, at most {most} KiB resident")
        with connect(service.port) as client:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            check(read_answer(client, bytearray())[0] == 200, "records: another client is answered")
        for client in clients:
            client.close()
        check(service.stop() == 0, "records: the service ends with exit code 0")


class Silence:
    """Accepts connections and never answers, like a Graph that hangs."""

    def __init__(self):
        self.listener, self.held = socket.create_server(("127.0.0.1", 0), backlog=4096), []
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            self.held.append(self.listener.accept()[0])


def parked(binary, _full):
    """Sends requests that wait, each followed by as much of a next request as a connection may hold."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "secrets", f"{live.APP_ID} a-secret-for-these-tests\n")
        write(folder, "clients", f"backend {hashlib.sha256(KEY.encode()).hexdigest()}\n")
        os.chmod(f"{folder}/secrets", 0o600)
        issuer, silence, redis = Issuer(binary), Silence(), redis_groups.started()
        permissions = f"GET /users/42/permissions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode()
        waits = {
            "Redis": ({"replay": "reject", "replay_store": f"redis://127.0.0.1:{redis.port}"}, post_verify(issuer.token)),
            "Graph": ({"app_secrets_file": f"{folder}/secrets", "client_keys_file": f"{folder}/clients",
                       "graph_url": f"http://127.0.0.1:{silence.port}"}, permissions),
        }
        for name, (settings, request) in waits.items():
            service = Service(binary, issuer, **settings)
            redis.hang()
            _, out = run_known(service.port, b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", 8)
            clients, most = [], 0
            for _ in range(1_000):
                client = service.connect(30)
                client.setblocking(False)
                try:
                    client.send(request + b"GET /livez HTTP/1.1\r\nHost: a\r\n" + FIELDS)
                except OSError:
                    pass
                clients.append(client)
            statuses, end = {}, time.monotonic() + 7
            while time.monotonic() < end:
                most = max(most, service.resident())
                time.sleep(0.1)
            for client in clients:
                try:
                    status = client.recv(4096)[9:12].decode() or "closed"
                except BlockingIOError:
                    status = "none"
                except OSError:
                    status = "closed"
                statuses[status] = statuses.get(status, 0) + 1
                client.close()
            p50, p99, count, wrong = out.get(timeout=60)
            check(wrong == 0, f"parked for {name}: {count} others answered, {wrong} not, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
            check(most <= service.bound and "none" not in statuses and "200" not in statuses,
                  f"parked for {name}: 1,000 requests that wait, answered {statuses}; at most {most} KiB resident")
            check(service.stop() == 0, f"parked for {name}: the service ends with exit code 0")
        redis.stop()
