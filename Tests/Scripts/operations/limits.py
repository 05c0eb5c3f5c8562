"""Starts the service with few descriptors or threads, with little address space, and with inherited state. It must be ready and
work, or end with 78 and a sentence before it is ready."""

import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import subprocess

import harness
import live
from harness import Folder, check, request

from .world import Issuer, verify_body

DESCRIPTORS = (10, 12, 14, 16, 18, 20, 25, 30, 40, *range(50, 150, 10), 150, 170, 200, 230, 250, 280, 300)
WORKERS = (1, 2, 16, 60, 192)
THREADS = range(1, 21)
# A user without other processes: RLIMIT_NPROC counts all threads of a user, but not root's.
USER = 54_321
# The connections that a ready service must serve at once. It needs places for 64, but the other listener and connections
# beyond a limit hold a part of them.
CONNECTIONS = 12
BLOCKED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGALRM, signal.SIGUSR1}


def outcome(issuer, body, prepare, program=None, environment=None, **settings):
    """The outcome of a start: "ready and well", "78", or a description of anything else."""
    variables = live.variables({"jwks_urls": issuer.jwks_url} | settings) | (environment or {})
    service = live.Process([program or harness.build(), "serve"], variables, "/", prepare=prepare)
    try:
        with contextlib.suppress(RuntimeError):
            service.find(r'("message":"listening")', 30)
        if service.process.poll() is None and '"message":"listening"' in service.output():
            return well(service, body)
        code = service.process.wait(30)
        sentences = re.findall(r"^limited-login: .+", service.output(), re.M)
        return "78" if code == 78 and len(sentences) == 1 else f"{code}: {service.output()[-400:]}"
    except subprocess.TimeoutExpired:
        return "neither ready nor ended: " + service.output()[-400:]
    finally:
        service.process.kill()
        service.process.wait()


def well(service, body):
    port, admin = (int(service.find(rf'"{name}":"127\.0\.0\.1:(\d+)"', 1)) for name in ("address", "admin_address"))
    if not harness.wait_until_ready(admin, seconds=20):
        return "ready without keys"
    try:
        held = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(CONNECTIONS)]
        for client in held:
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        answers = [harness.read_answer(client, bytearray())[0] for client in held]
        answers += [request(port, "POST", "/verify", body)[0], request(admin, "GET", "/metrics")[0]]
        for client in held:
            client.close()
    except (OSError, live.http.client.HTTPException) as error:
        return f"ready, and then {error!r}"
    if set(answers) != {200}:
        return f"ready, and then {answers}"
    service.hang_up()
    if not service.wait_for('"configuration reloaded"', seconds=20):
        return "ready, and deaf to SIGHUP"
    service.process.terminate()
    if not harness.until(lambda: service.process.poll() is not None, 20):
        return "ready, and deaf to SIGTERM"
    code = service.process.returncode
    return "ready and well" if code == 0 else f"ready, and then ended with {code}"


def limit(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


def sweep(what, issuer, body, kind, values, workers, as_user=False, program=None):
    """Tries every value with every number of workers."""
    counts, wrong = {"ready and well": 0, "78": 0}, []
    for count in workers:
        for value in values:
            def prepare():
                resource.setrlimit(kind, (value, value))
                if as_user:
                    os.setgroups([])
                    os.setgid(USER)
                    os.setuid(USER)
            found = outcome(issuer, body, prepare, program, workers=count)
            if found in counts:
                counts[found] += 1
            else:
                wrong.append(f"{value} with {count} workers: {found}")
    check(not wrong, f"{what}: {counts}, neither {wrong}")


def inherited(issuer, body, folder):
    """Starts the service with each kind of inherited state. It must start and work."""
    gone = folder.path / "gone"
    seeds = folder.path / "seeds"
    seeds.mkdir()
    many = {f"SOME_VARIABLE_{number}": "x" * 1_000 for number in range(500)}
    cases = {
        "blocked signals": (lambda: signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED), {}),
        "ignored signals": (lambda: [signal.signal(one, signal.SIG_IGN) for one in BLOCKED], {}),
        "umask 0777": (lambda: os.umask(0o777), {"jwks_file": seeds / "closed.json"}),
        "umask 0": (lambda: os.umask(0), {"jwks_file": seeds / "open.json"}),
        "no core (RLIMIT_CORE 0)": (limit(resource.RLIMIT_CORE, 0), {}),
        "files of no byte (RLIMIT_FSIZE 0)": (limit(resource.RLIMIT_FSIZE, 0), {"jwks_file": seeds / "empty.json"}),
        "a stack of 64 KiB": (limit(resource.RLIMIT_STACK, 65_536), {}),
        "a stack without limit": (lambda: resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY,) * 2), {}),
        "no locked memory": (limit(resource.RLIMIT_MEMLOCK, 0), {}),
        "no pending signals (RLIMIT_SIGPENDING 0)": (limit(resource.RLIMIT_SIGPENDING, 0), {}),
        "a folder that is gone": (lambda: (gone.mkdir(), os.chdir(gone), gone.rmdir()), {}),
        "a seed file in a folder that is gone": (None, {"jwks_file": gone / "keys.json"}),
        "a strange locale": (None, {"environment": {"LC_ALL": "tr_TR.UTF-8", "LANG": "C", "LANGUAGE": "xx"}}),
        "half a megabyte of environment": (None, {"environment": many}),
        "an empty environment": (None, {"environment": {"PATH": "", "HOME": "", "TMPDIR": "/nowhere", "TZ": ":/nowhere"}}),
        "no TMPDIR": (None, {"environment": {"TMPDIR": "/dev/full"}}),
    }
    for name, (prepare, options) in cases.items():
        found = outcome(issuer, body, prepare, **options)
        check(found == "ready and well", f"{name}: {found}")
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in seeds.iterdir()}
    check(all(int(mode, 8) & 0o022 == 0 for mode in modes.values()), f"others can write no seed file: {modes}")


def namespaces(issuer, body, folder):
    """Starts the service with a read-only root and a full folder for temporary files, and then without /proc."""
    if not shutil.which("unshare") or os.getuid():
        return harness.skip("other mounts need unshare and root")
    full = folder.path / "full"
    full.mkdir()
    for name, mounts, settings in (
        ("a read-only root and a full TMPDIR", f"mount -t tmpfs -o size=4k tmpfs {full}; head -c 8192 /dev/zero 2>/dev/null "
         f">{full}/file; mount -o remount,bind,ro / && export TMPDIR={full}", {"jwks_file": "/keys.json"}),
        ("no /proc", "mount -t tmpfs tmpfs /proc", {}),
    ):
        wrapper = folder.path / "wrapper"
        mounts = "mount --make-rprivate / && " + mounts
        if harness.run(["unshare", "-m", "sh", "-c", mounts]).returncode:
            harness.skip(f"{name}: this system lets no root mount it")
            continue
        wrapper.write_text(f"#!/bin/sh\nexec unshare -m sh -c '{mounts} && exec {harness.build()} \"$@\"' sh \"$@\"\n")
        wrapper.chmod(0o755)
        found = outcome(issuer, body, None, str(wrapper), **settings)
        check(found == "ready and well", f"{name}: {found}")


def address_space(issuer, body):
    """Starts the service with little address space (`ulimit -v`). If an allocation fails, the runtime ends the program at any
    time. A service that keeps running must act on SIGTERM."""
    found = [outcome(issuer, body, limit(resource.RLIMIT_AS, size << 20), workers=2) for size in range(40, 400, 40)]
    check(not any("deaf" in text or "neither" in text for text in found),
          f"40 to 400 MiB of address space: {[text[:40] for text in found]}")


def main():
    raised = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with Folder() as folder, Issuer() as issuer:
        body = verify_body(issuer.token())
        inherited(issuer, body, folder)
        namespaces(issuer, body, folder)
        sweep(f"descriptors (of {raised})", issuer, body, resource.RLIMIT_NOFILE, DESCRIPTORS, WORKERS)
        if os.getuid():
            return harness.skip("the limit of threads needs root, who runs it as a user without other processes")
        # That user must be able to reach the program.
        program = shutil.copy(harness.build(), folder.path / "limited-login")
        sweep("threads", issuer, body, resource.RLIMIT_NPROC, THREADS, WORKERS, as_user=True, program=program)
        address_space(issuer, body)
