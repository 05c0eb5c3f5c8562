"""Attacks on the memory of a running `limited-login serve`; see `service_attacks.py`."""
import collections
import contextlib
import json
import os
import socket

import harness
import live
import redis_groups
from attack_parts import WORST_P99_MS, LIVEZ, Issuer, Known, Service, at_once, close, connected, held, post, post_verify
from harness import Authority, check, read_answer

# The size of the largest body that /verify takes.
BODY_BYTES = 49_152
# Fields that make a head almost as long as the grammar allows.
FIELDS = b"".join(b"X-Filler-%d: %s\r\n" % (number, b"a" * 7_700) for number in range(4))
# The answers to a request that cannot be judged now; the service may shed one before it is read, and close the connection.
ANSWERED = {"429", "503", "504", "closed"}


def over_tls(authority):
    context = authority.context()
    return lambda port: context.wrap_socket(connected(port), server_hostname="localhost")


def uploads(binary, _full):
    """Attacks a service over each of three kinds of connection, beside an honest client on the same kind."""
    with harness.Folder() as folder:
        path, authority = f"{folder.path}/socket", Authority(folder)

        def over_unix(_port):
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(30)
            client.connect(path)
            return client

        kinds = {"TCP": ({}, connected), "TLS": (authority.settings(), over_tls(authority)),
                 "a Unix socket": ({"listen": f"unix:{path}"}, over_unix)}
        for name, (settings, connect) in kinds.items():
            # Send half of the body after a short head, and all of it but one byte after the longest head.
            for fields, sent in (b"", BODY_BYTES // 2), (FIELDS, BODY_BYTES - 1):
                issuer = Issuer(binary)
                with Service(binary, issuer, **settings) as service:
                    port = None if "listen" in settings else service.port
                    known = Known(port, post_verify(issuer.token), 6, connect)
                    head = (b"POST /verify HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                            % BODY_BYTES + fields + b"\r\n")
                    clients, most = held(service, 1_000, lambda client: client.sendall(head + b"x" * sent),
                                         connect=lambda: connect(port))
                    known.judge(f"uploads over {name}")
                    check(most <= service.bound, f"uploads over {name}: 1,000 of {len(head) + sent} bytes each, at most {most} KiB "
                          "resident")
                    close(clients)


def records(binary, _full):
    """Opens TLS connections that each begin a record and never end it."""
    with harness.Folder() as folder:
        authority = Authority(folder)
        connect, record = over_tls(authority), b"\x17\x03\x03\x40\x11" + bytes(16_400)
        with Service(binary, Issuer(binary), **authority.settings()) as service:
            clients, most = held(service, 2_200, lambda client: os.write(client.fileno(), record), 1, lambda: connect(service.port))
            check(len(clients) == 2_200, f"records: {len(clients)} connections begin one")
            check(most <= service.bound, f"records: 2,200 begun and never ended, at most {most} KiB resident")
            with connect(service.port) as client:
                client.sendall(LIVEZ)
                check(read_answer(client, bytearray())[0] == 200, "records: another client is answered")
            close(clients)


def parked(binary, _full):
    """Sends requests that wait, each followed by as much of a next request as a connection may hold, and then SIGTERM."""
    with harness.Folder() as folder:
        issuer, redis = Issuer(binary), redis_groups.started()
        # A Graph that hangs: the kernel accepts its connections, and nobody reads them.
        silence = socket.create_server(("127.0.0.1", 0), backlog=4096)
        graph = {"app_secrets_file": folder.write("secrets", f"{live.APP_ID} {live.Issuer.app_secret}\n"),
                 "graph_url": f"http://127.0.0.1:{silence.getsockname()[1]}"}
        known = post_verify(issuer.token)
        permissions = f"GET /users/42/permissions HTTP/1.1\r\nHost: a\r\nX-Api-Key: {live.Service.key}\r\n\r\n".encode()
        # The settings, the request that waits, and that of an honest client.
        waits = {
            "Redis": ({"replay": "reject", "replay_store": f"redis://127.0.0.1:{redis.port}"}, known, LIVEZ),
            "Graph": (graph | {"client_keys_file": folder.write("clients", live.client_line("backend"))}, permissions, LIVEZ),
            "Graph's word on a token":
                (graph | {"access_tokens": "accept"}, post("/verify", json.dumps({"access_token": "EAA" + "x" * 200})), known),
        }
        for name, (settings, request, others) in waits.items():
            with Service(binary, issuer, **settings) as service:
                redis.hang()
                honest = Known(service.port, others, 3)
                clients, most = held(service, 1_000, at_once(request + LIVEZ[:-2] + FIELDS), 3)
                honest.judge(f"parked for {name}", WORST_P99_MS, False)
                service.process.terminate()
                statuses = collections.Counter(status_of(client) for client in clients)
                check(most <= service.bound and statuses.keys() <= ANSWERED,
                      f"parked for {name}: 1,000 requests that wait, answered {dict(statuses)}, also after SIGTERM; at most {most} "
                      "KiB resident")
                service.process.wait(30)
                redis.go_on()
        redis.stop()


def status_of(client):
    """The status of the answer, or how the connection ended."""
    with contextlib.closing(client):
        client.settimeout(30)
        try:
            return client.recv(4096)[9:12].decode() or "closed"
        except OSError as error:
            return repr(error)
