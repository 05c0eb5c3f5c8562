"""Attacks on the service's calls of Graph: a Graph that hangs, and made-up access tokens."""
import asyncio
import json
import resource
import time

from attack_parts import Issuer, Service, bound, post, post_verify, run_known
from flood_parts import Clients
from harness import Folder, check, read_answer
from live import APP_ID
from memory_attacks import Silence

# The seconds that Graph takes for each answer, and those that the attack lasts.
GRAPH_DELAY, SECONDS = 0.1, 8
# The access tokens that are checked, or wait for their check, at a time.
PLACES = 256
# The beginning of honest access tokens; Graph knows no others.
HONEST = "EAAhonest"


def hung_graph(binary, full):
    """Tests a Graph that never answers."""
    tokens, issuer = 500, Issuer(binary)
    request = post("/verify", json.dumps({"access_token": "EAA" + "x" * 200}))
    with Folder() as folder:
        secrets = folder.write("secrets", f"{APP_ID} a-secret-for-these-tests\n")
        service = Service(binary, issuer, data_limit=resource.RLIM_INFINITY, access_tokens="accept", app_secrets_file=secrets,
                          graph_url=f"http://127.0.0.1:{Silence().port}")
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
              f"graph: {count} id tokens accepted, {wrong} not, p50 {p50:.2f} ms, p99 {loaded:.2f} ms, {quiet:.2f} ms without")
        check(most <= service.bound, f"graph: at most {most} KiB resident with {tokens} access tokens, {before} before")
        # A request without a place is refused at once; the others wait until Graph's time is over.
        check(set(statuses) <= {429, 503, 504} and statuses.get(504, 0) >= PLACES and sum(statuses.values()) == 2 * tokens,
              f"graph: {statuses} for {2 * tokens} access tokens, the last {tokens} of them waiting at SIGTERM")
        check(service.process.wait(30) == 0, "graph: the service ends with exit code 0")


def slow_graph(port):
    """Runs a Graph that knows the honest tokens and takes a tenth of a second for each answer; puts its port."""
    async def serve(reader, writer):
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
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


def senders(port, source, make, rate, count, out, seconds=SECONDS):
    """Runs `count` clients of one address, each with a request of its own from `make(number)`; puts the number of each status."""
    clients, end = Clients(port, count, source), time.monotonic() + seconds
    clients.send_at(rate, make, lambda _: time.monotonic() < end)
    # A request waits for Graph for five seconds.
    clients.settle(10)
    out.put(dict(clients.statuses))
