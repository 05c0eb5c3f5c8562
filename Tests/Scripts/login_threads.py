"""Threads that log in with issued nonces again and again."""

import threading
import time

from redis_groups import wait_for
from replicas import outcome

THREADS = 4


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

    def again(self):
        """The number of used nonces that are accepted once more."""
        with self.lock:
            bodies = self.bodies[-300:]
        return sum(outcome(port, body) == "accepted" for body in bodies for port in self.fleet.ports)

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
