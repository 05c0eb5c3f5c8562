"""Attacks on the service's calls of Graph: a Graph that hangs, and made-up access tokens."""
import asyncio
import json
import multiprocessing
import os
import resource
import tempfile
import time

from attack_parts import NONCE, Issuer, Service, bound, post_verify, run_known, write
from flood_parts import Clients
from live import APP_ID, check, read_answer
from memory_attacks import Silence

# The seconds that Graph takes for each answer, and those that the attack lasts.
GRAPH_DELAY, SECONDS = 0.1, 8
# The access tokens that are checked, or wait for their check, at a time.
PLACES = 256
# The beginning of honest access tokens; Graph knows no others.
HONEST = "EAAhonest"


def hung_graph(binary, full):
    """Tests a Graph that never answers."""
    hang(binary, full, "graph", Silence().port, {"access_token": "EAA" + "x" * 200})


def hung_login(binary, full):
    """Tests a Graph that answers about the token and its person, and never about the nonce of their login."""
    place = multiprocessing.Queue()
    graph = multiprocessing.Process(target=slow_graph, args=(place,), daemon=True)
    graph.start()
    hang(binary, full, "auth_nonce", place.get(timeout=60),
         {"access_token": HONEST + "x" * 200, "auth_nonce": True, "nonce": NONCE})
    graph.terminate()


def hang(binary, full, name, port, members):
    tokens = 500
    body = json.dumps(members).encode()
    request = (b"POST /verify HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
               % len(body)) + body
    issuer = Issuer(binary)
    with tempfile.TemporaryDirectory() as folder:
        write(folder, "secrets", f"{APP_ID} a-secret-for-these-tests\n")
        os.chmod(f"{folder}/secrets", 0o600)
        service = Service(binary, issuer, data_limit=resource.RLIM_INFINITY, access_tokens="accept",
                          app_secrets_file=f"{folder}/secrets", graph_url=f"http://127.0.0.1:{port}")
        known = post_verify(issuer.token)
        quiet = run_known(service.port, known, 5)[1].get(timeout=60)[1]
        before, most, statuses = service.resident(), 0, {}
        # A request also waits for Graph for five seconds.
        _, out = run_known(service.port, known, 5)
        for is_last in False, True:
            clients = [service.connect(30) for _ in range(tokens)]
            for client in clients:
                client.sendall(request)
                # Do not send one burst: the server would shed some of it from any client.
                time.sleep(0.002)
            time.sleep(1)
            most = max(most, service.resident())
            if is_last:
                p50, loaded, count, wrong = out.get(timeout=60)
                service.process.terminate()
            for client in clients:
                try:
                    status = read_answer(client, bytearray())[0]
                except OSError as error:
                    status = repr(error)
                statuses[status] = statuses.get(status, 0) + 1
                client.close()
        check(wrong == 0 and loaded <= bound(max(2 * quiet, 1), full),
              f"{name}: {count} id tokens accepted, {wrong} not, p50 {p50:.2f} ms, p99 {loaded:.2f} ms, {quiet:.2f} ms without")
        check(most <= service.bound, f"{name}: at most {most} KiB resident with {tokens} access tokens, {before} before")
        # A request without a place is refused at once; the others wait until Graph's time is over.
        check(set(statuses) <= {429, 503, 504} and statuses.get(504, 0) >= PLACES and sum(statuses.values()) == 2 * tokens,
              f"{name}: {statuses} for {2 * tokens} access tokens, the last {tokens} of them waiting at SIGTERM")
        check(service.process.wait(30) == 0, f"{name}: the service ends with exit code 0")


def slow_graph(port):
    """Runs a Graph that knows the honest tokens, takes a tenth of a second for each answer, and never answers about a login's
    nonce; puts its port."""
    async def serve(reader, writer):
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
                if "/access_token_info?" in path:
                    await asyncio.sleep(3_600)
                await asyncio.sleep(GRAPH_DELAY)
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


def senders(port, source, prefix, rate, count, out, fields=b"", seconds=SECONDS):
    """Runs `count` clients of one address, with another token in each request; puts the number of each status."""
    clients, end = Clients(port, count, source), time.monotonic() + seconds

    def request(number):
        body = json.dumps({"access_token": f"{prefix}{number}x{'0' * 16}"}).encode()
        return (b"POST /verify HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" + fields
                + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    clients.send_at(rate, request, lambda _: time.monotonic() < end)
    # A request waits for Graph for five seconds.
    clients.settle(10)
    out.put(dict(clients.statuses))
