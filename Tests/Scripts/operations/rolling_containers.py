"""Does the same as `rolling` with containers of the built image, which CONTAINER_IMAGE names."""

import os
import subprocess

from live import APP_ID, installed, skip, wait_until_ready

from . import rolling
from .world import Service, run

IMAGE = os.environ.get("CONTAINER_IMAGE")


class Container(Service):
    """A replica in a container, confined as in a cluster, on the network of the host."""

    def __init__(self, issuer, port, admin_port, **settings):
        self.address, self.admin_address = f"127.0.0.1:{port}", f"127.0.0.1:{admin_port}"
        self.name = f"limited-login-{os.getpid()}-{port}"
        environment = {"APP_IDS": APP_ID, "JWKS_URLS": issuer.jwks_url, "LISTEN": f"127.0.0.1:{port}",
                       "ADMIN_LISTEN": f"127.0.0.1:{admin_port}", "LOG_FORMAT": "json"}
        environment |= {key.upper(): str(value) for key, value in settings.items()}
        variables = [part for key, value in environment.items() for part in ("--env", f"LIMITED_LOGIN_{key}={value}")]
        run(["podman", "run", "--detach", "--name", self.name, "--network", "host", "--read-only", "--cap-drop=ALL",
             "--security-opt", "no-new-privileges", "--pids-limit", "64", "--memory", "64m", "--memory-swap", "64m",
             *variables, IMAGE])
        self.process = self
        if not wait_until_ready(admin_port):
            raise SystemExit("the container does not get ready: " + self.output())

    def output(self):
        logs = subprocess.run(["podman", "logs", self.name], capture_output=True, text=True)
        return logs.stdout + logs.stderr

    def terminate(self):
        run(["podman", "kill", "--signal", "TERM", self.name])

    def wait(self, _):
        return int(run(["podman", "wait", self.name]).strip())

    def remove(self):
        subprocess.run(["podman", "rm", "--force", "--time", "5", self.name], capture_output=True)

    def __exit__(self, *_):
        self.remove()


def main():
    if not IMAGE:
        skip("no CONTAINER_IMAGE is named")
    elif installed("podman"):
        run(["podman", "image", "exists", IMAGE])
        rolling.drive(Container)
