"""Does the same as `rolling` with containers of the built image, which CONTAINER_IMAGE names."""

import os

from harness import installed, output, run, skip, wait_until_ready
from live import variables

from . import rolling
from .world import Service

IMAGE = os.environ.get("CONTAINER_IMAGE")


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


def main():
    if not IMAGE:
        skip("no CONTAINER_IMAGE is named")
    elif installed("podman"):
        output(["podman", "image", "exists", IMAGE])
        rolling.drive(Container)
