#!/usr/bin/env python3
"""Runs two replicas of the service with a Redis Cluster and with Sentinel while a slot moves, a move is cancelled, a primary is
killed, writes are lost, and all servers are down. No nonce is accepted twice, no revocation is forgotten, and logins go on. While
a slot is on its way logins get 503.

usage: managed_redis_test.py [--binary FILE] [--rounds N] [--patient] [--planned] [NAME...]     (default: every test, 20 rounds)
  cluster       three primaries with a replica each
  sentinel      a primary with a replica, three sentinels, passwords for both
  cluster-tls   one round with a cluster that speaks TLS alone, and a server with a wrong name in its certificate
  sentinel-tls  the same with Sentinel
--planned runs only planned failovers, with the two replicas of the service started 0 to 3 s apart:
  cluster-planned, cluster-force, cluster-takeover (`CLUSTER FAILOVER` with that option), sentinel-planned, sentinel-two (two replicas)
--patient allows longer times, for a busy machine.
The exit code is 1 if a bound is broken. Without redis-server (REDIS_SERVER may name another, such as valkey-server) the tests
are named and skipped.
"""

import sys
import time

import harness
import live
import redis_groups
from attack_parts import PAUSES
from harness import check, failures
from redis_groups import wait_for
from replicas import Fleet, Logins, outcome, revoke

# The longest allowed times in seconds: from the end of a move to the next good login, an answer, and from a failover to the next
# good login.
MOVE_SECONDS, ANSWER_SECONDS, RECOVERY_SECONDS = 2, 2, 15
# A revocation counts at every replica within this time, also after the first good login that follows a failover.
REVOCATION_SECONDS = 2
# A replica notices the beginning and the end of a move within this time, even without a request.
NOTICE_SECONDS = 3
PATIENT_FACTOR = 6
HELD = 8


class Rounds:
    """Rounds with one group of servers."""

    def __init__(self, binary, group, factor):
        self.binary, self.group, self.factor, self.folder = binary, group, factor, harness.Folder()
        self.settings = {"replay_store": group.url()}
        if group.security:
            self.settings["ca_file"] = group.security.authorities
        if group.password:
            self.settings |= {
                "replay_store_password_file": self.folder.write("password", group.password + "\n"),
                "replay_store_sentinel_password_file": self.folder.write("sentinel", redis_groups.SENTINEL_PASSWORD + "\n"),
            }
        self.fleet = Fleet(binary, 2, **self.settings)
        self.users = []
        self.worst = {}
        self.nonces = self.refused_logins = self.switches = 0

    def stop(self):
        self.fleet.stop()
        self.folder.__exit__()

    def within(self, what, seconds, bound):
        """Records a time, and fails if it is too long."""
        self.worst[what] = max(self.worst.get(what, 0), seconds)
        bound = bound * self.factor + PAUSES.take() / 1000
        if seconds > bound:
            check(False, f"{what}: {seconds:.2f} s, at most {bound:.2f}")

    def never(self, what, count):
        if count:
            check(False, f"{what}: {count}")

    def until(self, what, seconds, holds, began=None):
        """Asks until something holds, at most a little longer than allowed, and records the time."""
        began = began or time.monotonic()
        while not holds() and time.monotonic() - began < seconds * self.factor + PAUSES.longest / 1000 + 1:
            time.sleep(0.02)
        self.within(what, time.monotonic() - began, seconds)

    def revoke_some(self):
        for index in range(2):
            user = 5000 + len(self.users)
            wait_for(lambda: revoke(self.fleet.ports[index], user) in (204, 503), "a revocation is taken")
            self.users.append(user)

    def accept(self, what, body, port):
        """Checks that a login is accepted; it may be refused for a moment."""
        self.until(f"the longest refusal {what}", MOVE_SECONDS, lambda: outcome(port, body) == "accepted")

    def settle(self):
        """Waits until every replica accepts its own nonces: a replica that has not noticed a failover issues nonces that it
        refuses a moment later."""
        for index, port in enumerate(self.fleet.ports):
            wait_for(lambda index=index, port=port: (nonce := self.fleet.nonce(index)) is not None
                     and outcome(port, self.fleet.use(nonce)) == "accepted", "each replica accepts logins")

    def held(self):
        """Requests with nonces that are not used yet."""
        self.settle()
        nonces = []
        while len(nonces) < HELD:
            nonce = self.fleet.nonce(len(nonces))
            if nonce:
                nonces.append(nonce)
        return [self.fleet.use(nonce) for nonce in nonces]

    def move(self):
        """Moves the slot of the keys to another primary, key by key."""
        source, target = self.group.move_places()
        held = self.held()
        with Logins(self.fleet) as logins:
            self.group.begin_move(source, target)
            self.refused()
            self.group.move_keys(source, target, 30)
            self.revoke_some()
            self.refused()
            self.group.end_move(source, target)
            began = time.monotonic()
            PAUSES.take()
            logins.wait_for_more()
            self.within("from the end of a move to good logins", time.monotonic() - began, MOVE_SECONDS)
        self.never("logins refused for ever by a slot that moves", logins.take()[1])
        self.never("nonces accepted twice while a slot moves", logins.twice + logins.again())
        for index, body in enumerate(held):
            self.accept("of a nonce from before a move", body, self.fleet.ports[index % 2])

    def refused(self):
        """Checks that no replica accepts a new login, because the slot is on its way."""
        codes = [outcome(port, self.fleet.use(self.fleet.nonce(index))) for index, port in enumerate(self.fleet.ports)]
        self.never("answers other than 503 while a slot is on its way", set(codes) - {"replay_store_unavailable"})

    def cancel(self):
        """Begins to move the slot to another primary, and cancels the move. The keys on the other primary are lost."""
        source, target = self.group.move_places()
        self.settle()
        with Logins(self.fleet) as logins:
            self.group.begin_move(source, target)
            self.group.move_keys(source, target, 30)
            self.revoke_some()
            # Each replica reads the store once a second, so it notices the move.
            time.sleep(NOTICE_SECONDS)
            self.refused()
        self.never("logins refused for ever by a slot that begins to move", logins.take()[1])
        self.group.cancel_move(source, target)
        time.sleep(NOTICE_SECONDS)
        self.never("nonces accepted twice around a move that is cancelled", logins.twice + logins.again())
        began = time.monotonic()
        self.settle()
        self.within("from a cancelled move to good logins", time.monotonic() - began, RECOVERY_SECONDS)

    def fail_over(self, cuts):
        """Kills the primary of the keys, and its replica takes over; with `cuts`, the replica was cut off before."""
        owner = self.group.owner()
        successor = self.group.replicas(owner)[0]
        unheard = []
        with Logins(self.fleet) as logins:
            if cuts:
                owner.cut_off_replicas()
                wait_for(lambda: not successor.is_synchronised(), "the link is cut")
                unheard = self.held()
                codes = [outcome(self.fleet.ports[index % 2], body) for index, body in enumerate(unheard)]
                self.never("logins refused though the primary is there", [code for code in codes if code != "accepted"])
            self.revoke_some()
            logins.take()
            owner.kill()
            wait_for(lambda: self.group.owner() is successor, "the replica takes over")
            began = time.monotonic()
            PAUSES.take()
            logins.wait_for_more()
            self.within("from a failover to good logins", time.monotonic() - began, RECOVERY_SECONDS)
            self.revocations("after a failover", self.users[-2:])
        self.within("the slowest answer around a failover", logins.take()[2], ANSWER_SECONDS)
        used = sum(outcome(port, body) == "accepted" for body in unheard for port in self.fleet.ports)
        self.never("nonces accepted twice after a lost write", used)
        self.never("nonces accepted twice around a failover", logins.twice + logins.again())
        owner.start()
        self.group.wait_until_whole()

    def switch(self, *options, is_staggered=False):
        """Orders a replica to replace the primary, which may take writes for some seconds more."""
        if is_staggered:
            self.fleet.stagger(self.switches % 7 / 2)
        self.switches += 1
        with Logins(self.fleet) as logins:
            self.group.replace(*options)
            began = time.monotonic()
            PAUSES.take()
            time.sleep(self.group.discovery_seconds)
            self.settle()
            self.within("from a planned failover to good logins", time.monotonic() - began, RECOVERY_SECONDS)
            logins.wait_for_more()
            longest, lost, _ = logins.take()
            self.within("the longest wait of a login around a planned failover", longest, RECOVERY_SECONDS)
        self.nonces += logins.finished
        self.refused_logins += len(lost)
        self.never("nonces accepted twice around a planned failover", logins.twice + logins.again(logins.finished))
        self.group.wait_until_whole()

    def down(self):
        """Kills the primary of the keys and its replica, and starts both again without data."""
        owner = self.group.owner()
        both = [owner, *self.group.replicas(owner)]
        with Logins(self.fleet) as logins:
            held = self.held()
            for node in reversed(both):
                node.kill()
            PAUSES.take()
            codes = set()
            for index in range(10):
                began = time.monotonic()
                codes.add(outcome(self.fleet.ports[index % 2], held[index % HELD]))
                self.within("the slowest answer without a primary", time.monotonic() - began, ANSWER_SECONDS)
            self.never("other answers than 503 without a primary", codes - {"replay_store_unavailable"})
            self.revoke_some()
            for node in both:
                node.start()
            self.group.wait_until_whole()
            logins.wait_for_more()
            self.revocations("after an outage", self.users[-12:])
        self.never("nonces accepted twice around an outage", logins.twice + logins.again())

    @staticmethod
    def knows(fleet, port, user):
        """True if a replica refuses a token that was issued before the first round began."""
        return outcome(port, fleet.token(user, 3000)) == "login_revoked"

    def revocations(self, when, users):
        """Checks that each revocation counts at each replica soon after logins go on. The replica that took it writes it again
        if only the lost primary had it."""
        began = time.monotonic()
        for user in users:
            for port in self.fleet.ports:
                self.until(f"until a revocation counts {when}", REVOCATION_SECONDS,
                           lambda port=port, user=user: self.knows(self.fleet, port, user), began)

    def all_revocations(self):
        """Checks that each revocation counts, also at a replica that starts now."""
        late = Fleet(self.binary, 1, **self.settings)
        try:
            forgotten = [user for fleet in (self.fleet, late) for port in fleet.ports for user in self.users
                         if not self.knows(fleet, port, user)]
        finally:
            late.stop()
        self.never("forgotten revocations", len(forgotten))

    def wrong_place(self):
        """Checks that servers are not used under an address that their certificates do not name."""
        stranger = Fleet(self.binary, 1, waits=False, **self.settings | {"replay_store": self.group.url("127.0.0.1")})
        try:
            wait_for(lambda: "certificate" in stranger.services[0].output(), "a wrong name is told")
            self.never("a nonce with servers of a wrong name", 0 if stranger.nonce() is None else 1)
        finally:
            stranger.stop()

    def wrong_node(self):
        """Moves the slot to a node with a wrong name in its certificate: nothing is accepted until the name is right."""
        source, target = self.group.move_places()
        target.show("other")
        self.group.begin_move(source, target)
        self.group.end_move(source, target)
        bodies = [self.fleet.use(self.fleet.nonce(index)) for index in range(2)]
        wait_for(lambda: all(outcome(port, bodies[0]) == "replay_store_unavailable" for port in self.fleet.ports),
                 "both replicas leave the node")
        codes = {outcome(port, body) for port in self.fleet.ports for body in bodies}
        self.never("answers about a node of a wrong name", codes - {"replay_store_unavailable"})
        target.show("good")
        self.settle()


def rounds_of(name, binary, rounds, factor, make, steps):
    if not harness.installed(live.REDIS_PROGRAM):
        return
    group = make()
    before = len(failures)
    try:
        rounds_here = Rounds(binary, group, factor)
        try:
            for _ in range(rounds):
                for step in steps:
                    step(rounds_here)
                rounds_here.all_revocations()
        except RuntimeError as error:
            check(False, f"{name}: {error}")
        finally:
            if len(failures) > before:
                for service in rounds_here.fleet.services:
                    print("\n".join(line for line in service.output().split("\n") if "replay store" in line)[-4000:])
            rounds_here.stop()
    finally:
        group.stop()
    figures = "; ".join(f"{what} {seconds:.2f} s" for what, seconds in rounds_here.worst.items())
    if rounds_here.nonces:
        figures += f"; around planned failovers: {rounds_here.nonces} nonces, {rounds_here.refused_logins} logins refused for ever"
    check(len(failures) == before, f"{name}: rounds: {rounds}, revocations: {len(rounds_here.users)}; {figures}")


def over(cuts):
    return lambda test: test.fail_over(cuts)


# The servers and the steps of each test; over TLS there is one round.
TESTS = {
    "cluster": (redis_groups.Cluster, [Rounds.move, Rounds.move, Rounds.cancel, over(False), over(True), Rounds.down]),
    "sentinel": (redis_groups.Watched, [Rounds.switch, over(False), over(True), Rounds.down]),
    "cluster-tls": (redis_groups.Cluster, [Rounds.move, Rounds.move, Rounds.wrong_place, Rounds.wrong_node, over(False)]),
    "sentinel-tls": (redis_groups.Watched, [Rounds.wrong_place, over(False), over(True)]),
}


def planned(*options):
    return [lambda test: test.switch(*options, is_staggered=True)]


PLANNED = {
    "cluster-planned": (redis_groups.Cluster, planned()), "cluster-force": (redis_groups.Cluster, planned("FORCE")),
    "cluster-takeover": (redis_groups.Cluster, planned("TAKEOVER")), "sentinel-planned": (redis_groups.Watched, planned()),
    "sentinel-two": (lambda security: redis_groups.Watched(security, 2), planned()),
}


def main():
    chosen = harness.arguments(__doc__, TESTS | PLANNED, rounds=20, patient=False, planned=False)
    for name in chosen.names:
        if (name in PLANNED) != chosen.planned:
            continue
        group, steps = (TESTS | PLANNED)[name]
        is_secure = name.endswith("-tls")
        rounds_of(name, chosen.binary, 1 if is_secure else chosen.rounds, PATIENT_FACTOR if chosen.patient else 1,
                  lambda: group(redis_groups.Security() if is_secure else None), steps)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
