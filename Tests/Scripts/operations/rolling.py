"""Replaces two replicas behind HAProxy one after the other, twice, under load. No request may fail. The replicas are containers if
CONTAINER_IMAGE names their image."""

import os

import proxies
from harness import Folder, check, free_port, installed, output, run, wait_until_ready
from live import variables

from .world import Issuer, Program, Service, Wrk, verify_body

IMAGE = os.environ.get("CONTAINER_IMAGE")
ROUNDS = 2
# The most seconds of the load, which ends when the work is done.
SECONDS = 120
# Longer than HAProxy needs to see that readiness fails.
DRAIN_SECONDS = 1


class Container(Service):
    """A replica in a container, confined as in a cluster, on the network of the host."""

    def __init__(self, issuer, port, admin_port, **settings):
        self.address, self.admin_address = f"127.0.0.1:{port}", f"127.0.0.1:{admin_port}"
        self.name = f"limited-login-{os.getpid()}-{port}"
        settings |= {"jwks_urls": issuer.jwks_url, "listen": self.address, "admin_listen": self.admin_address}
        environment = [part for name, value in variables(settings).items() for part in ("--env", f"{name}={value}")]
        output(["podman", "run", "--detach", "--name", self.name, "--network", "host", "--read-only", "--cap-drop=ALL",
             "--security-opt", "no-new-privileges", "--pids-limit", "64", "--memory", "64m", "--memory-swap", "64m",
             *environment, IMAGE])
        self.process = self
        if not wait_until_ready(admin_port):
            raise SystemExit("the container does not get ready: " + self.output())

    def output(self):
        logs = run(["podman", "logs", self.name])
        return logs.stdout + logs.stderr

    def terminate(self):
        output(["podman", "kill", "--signal", "TERM", self.name])

    def wait(self, _):
        return int(output(["podman", "wait", self.name]).strip())

    def remove(self):
        run(["podman", "rm", "--force", "--time", "5", self.name])

    def __exit__(self, *_):
        self.remove()


def balancer(folder, port, replicas):
    servers = [f"server {name} 127.0.0.1:{service} check port {admin} inter 200ms fall 1 rise 1"
               for name, service, admin in replicas]
    # HAProxy must not retry, so that each failure of a replica shows here.
    return proxies.haproxy_balancer(folder, port, "retries 0", "balance roundrobin", "option httpchk GET /readyz", *servers)


def main():
    if not installed("wrk", "haproxy", *(["podman"] if IMAGE else [])):
        return
    with Folder() as folder, Issuer() as issuer:
        bodies = [verify_body(issuer.token(sub=str(number))) for number in range(50)]
        ports = [(name, free_port(), free_port()) for name in ("a", "b")]

        def start(port, admin_port):
            return (Container if IMAGE else Service)(issuer, port=port, admin_port=admin_port, workers=1, drain_delay_seconds=DRAIN_SECONDS)

        replicas = {name: start(port, admin_port) for name, port, admin_port in ports}
        try:
            port = free_port()
            with Program(folder, balancer(folder, port, ports)):
                check(wait_until_ready(port, "/livez"), "HAProxy reaches the replicas")
                load = Wrk(folder, f"http://127.0.0.1:{port}", bodies, SECONDS)
                replicas["a"].waits_for('limited_login_verifications_total{credential="id_token",result="accepted"}', 1)
                replaced = replace(replicas, ports, start, ROUNDS)
                load.stop(f"{replaced} replicas were replaced")
        finally:
            for service in replicas.values():
                service.__exit__()


def replace(replicas, ports, start, rounds):
    """Stops each replica in turn and starts another in its place. The next one stops only when the new one serves."""
    replaced = 0
    for _ in range(rounds):
        for name, port, admin_port in ports:
            old = replicas[name]
            served = old.metric('limited_login_verifications_total{credential="id_token",result="accepted"}')
            old.process.terminate()
            code = old.process.wait(30)
            check(code == 0 and '"requests_cut_off":"0"' in old.output(),
                  f"replica {name} stops with exit code {code} after {served:.0f} verdicts, no request cut off")
            old.remove()
            replicas[name] = start(port, admin_port)
            replaced += 1
            # When the new one serves, the balancer has found it.
            check(replicas[name].waits_for('limited_login_verifications_total{credential="id_token",result="accepted"}', 1),
                  f"replica {name} is replaced and serves")
    return replaced
