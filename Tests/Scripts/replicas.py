"""Replicas of the service that share their secrets, and threads that log in with issued nonces again and again."""

import json
import threading
import time

import harness
import live
from redis_groups import wait_for

THREADS = 4


class Fleet:
    """Replicas that share the files of their secrets, and an issuer."""

    def __init__(self, binary, count, waits=True, **settings):
        self.folder, self.issuer = harness.Folder(), live.Issuer(binary)
        self.make = lambda: live.Service(binary, self.issuer.jwks_url, folder=self.folder, **settings)
        self.use_services([self.make() for _ in range(count)], waits)

    def use_services(self, services, waits=True):
        self.services, self.ports = services, [service.port for service in services]
        for service in services if waits else []:
            service.wait_until_ready()

    def stagger(self, seconds):
        """Starts two replicas anew, the second one later, so that they look at the store at times that lie so far apart."""
        for service in self.services:
            service.stop()
        first = self.make()
        time.sleep(seconds)
        self.use_services([first, self.make()])

    def nonce(self, replica=0):
        """A nonce; None while the store has not been reached since the start."""
        status, answer = request(self.ports[replica % len(self.ports)], "/nonces", "{}")
        return answer["nonce"] if status == 200 else None

    def use(self, nonce):
        """The body of a request that uses the nonce up."""
        return json.dumps({"id_token": self.issuer.token(nonce=nonce), "issued_nonce": True})

    def token(self, user, age=30):
        """The body of a request about a token that was issued some seconds ago."""
        now = int(time.time())
        return json.dumps({"id_token": self.issuer.token(sub=str(user), iat=now - age, exp=now + 3600), "nonce": "n-1"})

    def stop(self):
        for process in [*self.services, self.issuer]:
            process.stop()
        self.folder.__exit__()


def request(port, path, body):
    status, text = harness.request(port, "POST", path, body, live.Service.fields)
    return status, json.loads(text or "{}")


def outcome(port, body):
    status, answer = request(port, "/verify", body)
    return "accepted" if status == 200 else answer.get("code", str(status))


def revoke(port, user):
    return request(port, "/revocations", json.dumps({"user_id": str(user)}))[0]


class Logins:
    """Threads that log in again and again, each time with a new nonce, and try each used nonce once more at every replica."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.finished = self.twice = 0
        self.bodies, self.waits, self.lost, self.slow = [], [], [], []
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        while not self.over.is_set():
            number += 1
            nonce = self.fleet.nonce(number)
            if nonce is None:
                time.sleep(0.02)
            else:
                self.log_in(number, self.fleet.use(nonce))

    def ask(self, number, body):
        began = time.monotonic()
        code = outcome(self.fleet.ports[number % len(self.fleet.ports)], body)
        took = time.monotonic() - began
        with self.lock:
            self.slow.append(took)
        return code

    def log_in(self, number, body):
        began = time.monotonic()
        while (code := self.ask(number, body)) == "replay_store_unavailable" and not self.over.is_set():
            number += 1
            time.sleep(0.02)
        waited = time.monotonic() - began
        again = 0
        if code == "accepted":
            again = sum(self.ask(number + step, body) == "accepted" for step in range(2))
        with self.lock:
            self.twice += again
            if code == "accepted":
                self.finished += 1
                self.waits.append(waited)
                self.bodies.append(body)
            elif code != "replay_store_unavailable":
                self.lost.append(code)

    def wait_for_more(self, count=2 * THREADS):
        """Waits until further logins, which began after this call, are accepted."""
        with self.lock:
            goal = self.finished + count
        wait_for(lambda: self.finished >= goal, "logins go on")

    def take(self):
        """The longest wait, the refused logins and the slowest answer since the last call."""
        with self.lock:
            taken = max(self.waits, default=0), self.lost, max(self.slow, default=0)
            self.waits, self.lost, self.slow = [], [], []
        return taken

    def again(self, count=300):
        """The number of the last used nonces that are accepted once more."""
        with self.lock:
            bodies = self.bodies[-count:]
        return sum(outcome(port, body) == "accepted" for body in bodies for port in self.fleet.ports)

    def __enter__(self):
        self.wait_for_more()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
