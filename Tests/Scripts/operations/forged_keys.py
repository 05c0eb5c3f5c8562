"""Sends tokens with made-up key IDs beside good logins, with a rotation in the middle. Up to a hundred forged tokens a second
no good login is refused, and no answer is 5xx at any rate. Balancers that look at answers keep both replicas, also after
requests of an unknown method, which are 501."""

import json
import os
import secrets
import threading
import time

import proxies
from attack_parts import post_verify
from flood_parts import Clients
from harness import Folder, base64url, check, free_port, installed, output, request, wait_until_ready

from .world import Issuer, Program, Service, verify_body

# The length of each run, and its good logins a second.
SECONDS, GOOD_RATE = float(os.environ.get("FORGED_SECONDS", "20")), 20
RATES = (0.5, 1, 10, 100, 1000)
# Beyond this rate some good logins may be told to try again until the next fetch.
PROMISED_RATE = 100
# The interval between two fetches, and some time for a slow machine.
LONGEST_WAIT = 6.5


def forged():
    header = json.dumps({"alg": "RS256", "kid": secrets.token_hex(20)}).encode()
    return ".".join(base64url(part) for part in (header, b'{"iss":"x"}' * 60, bytes(256)))


class Sender(threading.Thread):
    """Sends so many requests a second about the tokens of `make()`, each on a connection without another waiting request."""

    def __init__(self, port, rate, make):
        super().__init__()
        self.clients, self.rate, self.make = Clients(port, int(rate * LONGEST_WAIT) + 1), rate, make
        self.start()

    def run(self):
        end = time.monotonic() + SECONDS
        self.clients.send_at(self.rate, lambda _: post_verify(self.make()), lambda _: time.monotonic() < end)
        self.clients.settle(2 * LONGEST_WAIT)


def flood(issuer, port, rate, name):
    """Makes one run, and checks the promises for every run."""
    tokens = [issuer.token() for _ in range(4)]
    senders = Sender(port, GOOD_RATE, lambda: secrets.choice(tokens)), Sender(port, rate, forged)
    time.sleep(SECONDS / 2)
    issuer.rotate()
    tokens[:] = [issuer.token() for _ in range(4)]
    for sender in senders:
        sender.join()
    good, bad = (sender.clients.statuses for sender in senders)
    longest = senders[0].clients.longest
    text = (f"{name}, {rate} forged a second: {good.total() - good[200]} of {good.total()} good logins refused, longest "
            f"{longest:.1f} s; {dict(bad)}")
    check(set(good) | set(bad) <= {200, 401, 429}, text + ": no 5xx")
    if rate <= PROMISED_RATE:
        check(set(good) == {200} and longest < LONGEST_WAIT, text + ": none refused")


def nginx(folder, port, replicas):
    servers = " ".join(f"server 127.0.0.1:{replica} max_fails=1 fail_timeout=10s;" for replica in replicas)
    return proxies.nginx_balancer(
        folder, port, servers,
        "proxy_pass http://service; proxy_read_timeout 10s; proxy_next_upstream error timeout http_503 non_idempotent;",
        "worker_rlimit_nofile 8192;", "worker_connections 4096;")


def haproxy(folder, port, replicas):
    servers = [f"server s{replica} 127.0.0.1:{replica} check inter 2s observe layer7 error-limit 10 on-error mark-down"
               for replica in replicas]
    return proxies.haproxy_balancer(folder, port, "option httpchk GET /livez", *servers)


def envoy(folder, port, replicas):
    hosts = ",".join(
        "{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}" % replica for replica in replicas)
    route = ('{cluster: service, timeout: 10s, retry_policy: {retry_on: "connect-failure,retriable-status-codes", '
             "retriable_status_codes: [503]}}")
    return proxies.envoy(folder, port, route, f"""    - name: service
      type: STATIC
      circuit_breakers: {{thresholds: [{{max_connections: 4096, max_pending_requests: 4096, max_requests: 4096}}]}}
      common_lb_config: {{healthy_panic_threshold: {{value: 0}}}}
      outlier_detection: {{consecutive_gateway_failure: 5, enforcing_consecutive_gateway_failure: 100, enforcing_consecutive_5xx: 0, interval: 1s, base_ejection_time: 10s, max_ejection_percent: 100}}
      load_assignment: {{cluster_name: service, endpoints: [{{lb_endpoints: [{hosts}]}}]}}""")


def unknown_methods(issuer, port, name):
    """Sends requests of an unknown method. Envoy passes these on only for HTTP/2 clients."""
    version = ["--http2-prior-knowledge"] if name == "envoy" else []
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *version, "-X", "BREW", f"http://127.0.0.1:{port}/verify"]
    codes = {output(command) for _ in range(20)}
    body = verify_body(issuer.token())
    good = [request(port, "POST", "/verify", body)[0] for _ in range(20)]
    check(codes == {"501"} and set(good) == {200},
          f"{name}: 20 requests of an unknown method are {sorted(codes)}, 20 good logins then {sorted(set(good))}")


def main():
    with Folder() as folder, Issuer() as issuer:
        for rate in RATES:
            # One worker has the fewest places.
            with Service(issuer, workers=1) as service:
                flood(issuer, service.port, rate, "one worker")
                check(service.resident() <= service.bound, f"it is resident with {service.resident() // 1024} MiB")
        for name, configure in (("nginx", nginx), ("haproxy", haproxy), ("envoy", envoy)):
            if not installed(name):
                continue
            with Service(issuer, workers=1) as one, Service(issuer, workers=1) as two:
                port = free_port()
                with Program(folder, configure(folder, port, [one.port, two.port])) as balancer:
                    wait_until_ready(port, "/livez")
                    flood(issuer, port, 10, name)
                    before = [replica.requests() for replica in (one, two)]
                    flood(issuer, port, PROMISED_RATE, name)
                    shares = [replica.requests() - count for replica, count in zip((one, two), before)]
                    check(min(shares) >= 0.4 * sum(shares), f"{name} keeps both replicas: they answered {shares}")
                    unknown_methods(issuer, port, name)
                    check("DOWN" not in balancer.output(), f"{name} takes none out")
