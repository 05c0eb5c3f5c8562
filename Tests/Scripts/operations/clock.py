"""Tests the service while its clock, or that of its Redis, is set by an hour or a day (libfaketime). A used credential is never
accepted again, and once the clock is right no honest login is refused with 401."""

import contextlib
import json
import os
import subprocess
import time

import live
import redis_groups
from live import APP_ID, check, installed, request

from .world import Folder, Issuer, binary

STEPS = {"an hour ahead": 3_600, "an hour behind": -3_600, "a day ahead": 86_400, "a day behind": -86_400}


class FakeClock:
    """The clock of the processes that `start` starts; their monotonic clock is not changed."""

    def __init__(self, folder, name):
        self.file = folder.path / f"clock-{name}"
        self.set(0)
        # This process makes the library's shared memory. Otherwise the library would change the environment before the program's
        # `main`.
        shell = 'echo "$LD_PRELOAD $FAKETIME_SHARED"; exec cat'
        self.holder = subprocess.Popen(["faketime", "-m", "-f", "+0", "sh", "-c", shell], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        library, _, shared = self.holder.stdout.readline().strip().partition(" ")
        self.environment = {"LD_PRELOAD": library, "FAKETIME_SHARED": shared, "FAKETIME_TIMESTAMP_FILE": str(self.file),
                            "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    def start(self, program, *arguments, **settings):
        saved = os.environ.copy()
        os.environ.update(self.environment)
        try:
            return program(*arguments, **settings)
        finally:
            os.environ.clear()
            os.environ.update(saved)

    def close(self):
        self.holder.communicate()

    def set(self, lead):
        partial = self.file.with_suffix(".new")
        partial.write_text(f"{lead:+d}\n")
        partial.rename(self.file)
        self.lead = lead

    def now(self):
        return int(time.time()) + self.lead


class RedisClock(FakeClock):
    """The same for Redis without libfaketime: the allocator of Redis asks for the time too early for it."""

    SOURCE = """
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>
        static const volatile long *lead;
        __attribute__((constructor)) static void begin(void) {
            int file = open(getenv("CLOCK_LEAD"), O_RDONLY);
            const long *found = mmap(0, sizeof *found, PROT_READ, MAP_SHARED, file, 0);
            if (found != MAP_FAILED) lead = found;
        }
        int clock_gettime(clockid_t clock, struct timespec *now) {
            int result = syscall(SYS_clock_gettime, clock, now);
            if (lead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *lead;
            return result;
        }
        int gettimeofday(struct timeval *now, void *zone) {
            struct timespec time;
            int result = clock_gettime(CLOCK_REALTIME, &time);
            now->tv_sec = time.tv_sec;
            now->tv_usec = time.tv_nsec / 1000;
            return result;
        }
        time_t time(time_t *into) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (into) *into = now.tv_sec;
            return now.tv_sec;
        }
    """

    def __init__(self, folder):
        self.file = folder.path / "clock-redis"
        self.file.write_bytes(bytes(8))
        library = str(folder.path / "clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder.write("clock.c", self.SOURCE)], check=True)
        self.environment = {"LD_PRELOAD": library, "CLOCK_LEAD": str(self.file)}

    def set(self, lead):
        # Write in place, because Redis has mapped the file.
        with open(self.file, "r+b") as file:
            file.write(lead.to_bytes(8, "little", signed=True))


class World:
    """A service with a clock of its own, and logins at it."""

    def __init__(self, issuer, clock, redis):
        self.issuer, self.clock = issuer, clock
        self.service = clock.start(live.Service, binary(), issuer.jwks_url,
                                   replay_store=f"redis://127.0.0.1:{redis.port}" if redis else "memory")
        self.service.wait_until_ready()

    def ask(self, path, body):
        """Sends a request, again for ten seconds while the answer is 503."""
        deadline = time.monotonic() + 10
        while True:
            status, text = request(self.service.port, "POST", path, json.dumps(body), {"X-Api-Key": self.service.key})
            if status != 503 or time.monotonic() > deadline:
                return status, json.loads(text) if text else {}
            time.sleep(0.1)

    def begin(self):
        """The nonce of a login that begins now."""
        return self.ask("/nonces", {})[1].get("nonce", "none")

    def use(self, nonce, moment, user=live.SUBJECT):
        """The body of a login with the nonce and a token of this time."""
        token = self.issuer.token(nonce=nonce, sub=user, iat=moment, exp=moment + 3_600)
        return {"id_token": token, "issued_nonce": True}

    def verify(self, body):
        status, answer = self.ask("/verify", body)
        return "accepted" if status == 200 else f"{status} {answer.get('code')}"

    def log_in(self):
        body = self.use(self.begin(), self.clock.now())
        return body, self.verify(body)


def step(issuer, clock, redis, lead, name):
    world = World(issuer, clock, redis)
    with world.service:
        used, outcomes = [], {}

        def log_in(when):
            body, outcomes[when] = world.log_in()
            used.append(body)

        def try_again(when):
            again = [world.verify(body) for body in used]
            check("accepted" not in again, f"{name}: {when} nothing is accepted again: {again}")

        # A service accepts only nonces from a few seconds after its start.
        time.sleep(6)
        log_in("before")
        try_again("before")
        clock.set(lead)
        # The tokens follow the changed clock, as if the time before had been wrong.
        log_in("after the step")
        begun = world.begin()
        world.ask("/revocations", {"app_id": APP_ID, "user_id": "77"})
        try_again("after the step")
        clock.set(0)
        try_again("when the clock is right again")
        log_in("when the clock is right again")
        body = world.use(begun, clock.now())
        outcome = world.verify(body)
        used.append(body)
        # A nonce from a clock that was behind is old by the right clock, so the login must begin again.
        outcomes["begun while it was wrong"] = "accepted" if lead < 0 and outcome == "401 nonce_expired" else outcome
        time.sleep(2)
        body = world.use(world.begin(), clock.now(), user="77")
        outcomes["of a person revoked while it was wrong"] = world.verify(body)
        used.append(body)
        try_again("at the end")
        lines = [line for line in world.service.lines if "the clock was set back" in line]
        unfair = [outcome for outcome in outcomes.values() if outcome != "accepted" and not outcome.startswith("503")]
        check(not unfair, f"{name}: honest logins: {outcomes}, told {len(lines)} times")
        check(lines or not any(outcome.startswith("503") for outcome in outcomes.values()),
              f"{name}: where a login is 503, the log says why")


def jump_of_redis(issuer, clock, right):
    """Redis drops entries by its own clock. A credential must not be accepted again if Redis dropped its entry early."""
    clock.set(-1_200)
    redis = clock.start(redis_groups.started)
    try:
        for name, lead in (("from behind to ahead", 2_400), ("another hour ahead", 6_000), ("a day ahead", 92_400)):
            world = World(issuer, right, redis)
            with world.service:
                used = [world.log_in() for _ in range(3)]
                clock.set(lead)
                # The clock has jumped before the first request and before the service reads Redis's clock.
                again = [world.verify(body) for body, _ in used]
                check([outcome for _, outcome in used] == ["accepted"] * 3 and "accepted" not in again,
                      f"Redis {name}: nothing is accepted again: {again}")
                time.sleep(6)
                outcome = world.log_in()[1]
                check(outcome == "accepted", f"Redis {name}: a login thereafter: {outcome}")
    finally:
        redis.stop()


@contextlib.contextmanager
def closing(thing, end):
    try:
        yield thing
    finally:
        end(thing)


def main():
    if not installed("faketime"):
        return
    has_redis = installed(live.REDIS_PROGRAM)
    with Folder() as folder, Issuer() as issuer:
        for name, lead in STEPS.items():
            with closing(FakeClock(folder, lead), FakeClock.close) as clock:
                step(issuer, clock, None, lead, f"memory, {name}")
                if has_redis:
                    with closing(redis_groups.started(), redis_groups.Node.stop) as redis:
                        step(issuer, clock, redis, lead, f"Redis, {name}")
        if has_redis and installed("cc"):
            with closing(FakeClock(folder, "right"), FakeClock.close) as right:
                jump_of_redis(issuer, RedisClock(folder), right)
