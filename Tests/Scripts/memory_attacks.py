"""Attacks on the memory of a running `limited-login serve`; see `service_attacks.py`."""
import multiprocessing
import os
import socket
import ssl
import threading

import harness
import live
import redis_groups
from attack_parts import (
    Issuer, Service, at_once, certificates, close, connected, held, known_latency, post_verify, run_known,
)
from harness import check, read_answer

# The size of the largest body that /verify takes.
BODY_BYTES = 49_152
# Fields that make a head almost as long as the grammar allows.
FIELDS = b"".join(b"X-Filler-%d: %s\r\n" % (number, b"a" * 7_700) for number in range(4))


class TLSClient:
    """Opens TLS connections that trust the certificates made by `certificates`."""

    def __init__(self, folder):
        self.context = ssl.create_default_context(cafile=folder.path / "ca.pem")

    def __call__(self, port):
        return self.context.wrap_socket(connected(port), server_hostname="localhost")


def uploads(binary, _full):
    """Attacks a service over each of three kinds of connection, beside an honest client on the same kind."""
    with harness.Folder() as folder:
        path = f"{folder.path}/socket"

        def over_unix(_port):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(30)
            client.connect(path)
            return client

        kinds = {"TCP": ({}, connected), "TLS": (certificates(folder), TLSClient(folder)),
                 "a Unix socket": ({"listen": f"unix:{path}"}, over_unix)}
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
    clients, most = held(service, 1_000, lambda client: client.sendall(head + b"\r\n" + b"x" * sent), connect=connect)
    p50, p99, count, wrong = out.get(timeout=60)
    check(wrong == 0, f"{name}: {count} tokens of others accepted, {wrong} not, p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    check(most <= service.bound, f"{name}: 1,000 of {len(head) + 2 + sent} bytes each, at most {most} KiB resident")
    close(clients)
    check(service.stop() == 0, f"{name}: the service ends with exit code 0")


def records(binary, _full):
    """Opens TLS connections that each begin a record and never end it."""
    with harness.Folder() as folder:
        service = Service(binary, Issuer(binary), **certificates(folder))
        connect, record = TLSClient(folder), b"\x17\x03\x03\x40\x11" + bytes(16_400)
        clients, most = held(service, 2_200, lambda client: os.write(client.fileno(), record), 1, lambda: connect(service.port))
        check(len(clients) == 2_200, f"records: {len(clients)} connections begin one")
        check(most <= service.bound, f"records: 2,200 begun and never ended, at most {most} KiB resident")
        with connect(service.port) as client:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            check(read_answer(client, bytearray())[0] == 200, "records: another client is answered")
        close(clients)
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
    with harness.Folder() as folder:
        secrets = folder.write("secrets", f"{live.APP_ID} {live.Issuer.app_secret}\n")
        issuer, silence, redis = Issuer(binary), Silence(), redis_groups.started()
        permissions = f"GET /users/42/permissions HTTP/1.1\r\nHost: a\r\nX-Api-Key: {live.Service.key}\r\n\r\n".encode()
        waits = {
            "Redis": ({"replay": "reject", "replay_store": f"redis://127.0.0.1:{redis.port}"}, post_verify(issuer.token)),
            "Graph": ({"app_secrets_file": secrets, "client_keys_file": folder.write("clients", live.client_line("backend")),
                       "graph_url": f"http://127.0.0.1:{silence.port}"}, permissions),
        }
        for name, (settings, request) in waits.items():
            service = Service(binary, issuer, **settings)
            redis.hang()
            _, out = run_known(service.port, b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", 8)
            clients, most = held(service, 1_000, at_once(request + b"GET /livez HTTP/1.1\r\nHost: a\r\n" + FIELDS), 7)
            statuses = {}
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
