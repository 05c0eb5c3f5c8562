#!/usr/bin/env python3
"""Runs the commands of README.md and of the service's documentation as a reader would, and judges their answers.

usage: readme_test.py [NAME...]     (default: every command but `test`, which is the test run itself; `api` is the page API.md)

A shell block without a name, or with a name that this script does not know, is a failure: nothing
would run its command.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import types

import harness
import live
from login_parts import App, Failure
from readme_command import command, documents, marked

START_SECONDS = 3000  # includes an optimised build from nothing, on a busy machine
STOP_SECONDS = 20
PROFILE = {
    "user_id", "name", "first_name", "middle_name", "last_name", "email", "image_url", "link_url", "friend_ids",
    "birthday", "age_range", "hometown", "location", "gender", "permissions", "is_limited",
}


class Running(live.Process):
    """A command of the documents in a process group of its own, run at the root of the repository."""

    def __init__(self, name, *replacements):
        text = command(name)
        for written, meant in replacements:
            text = text.replace(written, meant)
        super().__init__(["bash", "-c", text], directory=harness.ROOT, own_group=True)

    def wait_until(self, what, holds):
        if not harness.until(holds, START_SECONDS, 0.1, self.process):
            raise Failure(f"no {what}, exit code {self.process.poll()}:\n{self.output()[-2000:]}")

    def end(self, with_signal):
        os.killpg(self.process.pid, with_signal)
        code = self.process.wait(STOP_SECONDS)
        if code != 0:
            raise Failure(f"exit code {code} after {with_signal.name}:\n{self.output()[-2000:]}")

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()


def finished(name):
    """Runs a command that ends by itself, and keeps all of its output."""
    with Running(name) as program:
        if program.process.wait(START_SECONDS) not in (0, -signal.SIGTERM):
            raise Failure(f"exit code {program.process.returncode}:\n{program.output()[-2000:]}")
        program.reader.join(STOP_SECONDS)
        return program


def check_profile(answer):
    missing = PROFILE - answer["profile"].keys()
    if missing:
        raise Failure(f"the profile lacks {', '.join(sorted(missing))}")


def check_demo():
    with Running("demo") as demo:
        demo.wait_until("the demonstration's lines", lambda: "Control-C" in demo.output())
        outcomes = []
        for title, line in zip(demo.lines, demo.lines[1:]):
            promised = re.fullmatch(r"# .* -> (?:401 (\w+)|200, the Profile)", title)
            if promised:
                answer = json.loads(harness.output(["bash", "-c", line], timeout=30))
                if answer.get("code") != promised[1]:
                    raise Failure(f"{title}: answered {answer}")
                if not promised[1]:
                    check_profile(answer)
                outcomes.append(promised[1])
        if outcomes != [None, "expired", "invalid_signature"]:
            raise Failure(f"the demonstration shows {outcomes}")
        demo.end(signal.SIGINT)
    return f"{len(outcomes)} requests answered as promised"


def check_example():
    example = finished("example")
    output = example.output()
    refused = [json.loads(line) for line in re.findall(r'\{"type":[^}]*\}', output)]
    places = [match.start() for match in re.finditer(r'\{"authentication_token"', output)]
    answers = [json.JSONDecoder().raw_decode(output[place:])[0] for place in places]
    if len(answers) != 2:
        raise Failure(f"{len(answers)} answers of /verify in:\n{output[-2000:]}")
    login, refresh = answers
    seen = (login["profile"]["name"], login["missing_permissions"], login.get("refresh"))
    if seen != ("Jane Doe", ["user_birthday"], None):
        raise Failure(f"answered {seen}")
    if [answer["code"] for answer in refused] != ["nonce_mismatch"] or output.index('"code":"nonce_mismatch"') > places[0]:
        raise Failure(f"the thief came first and was answered {refused}")
    if not refresh["refresh"] or refresh["profile"]["user_id"] != login["profile"]["user_id"]:
        raise Failure(f"the refresh answered {refresh}")
    if "issued_nonce" in command("example"):
        raise Failure("the first example does not compare the nonce")
    return "the thief of a token is refused, its owner logs in, and the token is refreshed"


def check_backend():
    """Runs the README's backend before the demonstration: a thief is refused before and after the owner's login."""
    python = harness.python_with("flask", "requests")
    if not python:
        return "left out: Flask is not installed"
    block = marked("example: backend", documents())
    service, issuer, own = harness.free_ports(3)
    program = "\n".join((
        "import requests", "from flask import Flask, abort, request, session", "app = Flask(__name__)",
        "app.secret_key = 'of a test'", "key = 'demo'", block.replace("127.0.0.1:8080", f"127.0.0.1:{service}"),
        "@app.get('/me')", "def me():", "    return {'user': session.get('user')}", f"app.run('127.0.0.1', {own})",
    ))

    with live.Demonstration(harness.build(), service, 0, issuer), live.Process([python, "-c", program]):
        harness.wait_until_ready(own, "/me")
        owner, thief = (App(types.SimpleNamespace(port=own)) for _ in range(2))
        login, nonce = owner.begin()
        thief.begin()
        token = json.loads(harness.request(issuer, "POST", "/tokens", json.dumps({"nonce": nonce}))[1])["id_token"]
        statuses = [one.log_in(login, token)[0] for one in (thief, owner, thief)]
        users = [one.user() for one in (owner, thief)]
    if statuses != [401, 200, 401] or not users[0] or users[1]:
        raise Failure(f"answered {statuses}, and knows {users}")
    return "a thief is refused before and after the owner's login"


def check_serve():
    with harness.Folder() as folder, Running("serve", ("secrets", f"{folder.path}/secrets")) as service:
        service.wait_until("answer on /livez", lambda: harness.request(8080, "GET", "/livez", timeout=2)[0] == 200)
        key = re.search(r"^key:  (\S+)$", service.output(), re.M)
        if not key:
            raise Failure(f"no key was printed:\n{service.output()[-2000:]}")
        answers = [harness.request(8080, "POST", "/nonces", "{}", {"X-Api-Key": one})[0] for one in (key[1], "another")]
        if answers != [200, 401]:
            raise Failure(f"/nonces answered {answers}")
        service.end(signal.SIGTERM)
    return "it issues nonces to its one caller, and stops with exit code 0"


def agrees(shown, real):
    """True if an answer is the shown one: "…" stands for anything, and a time for any other time."""
    if isinstance(shown, dict):
        named = {member: value for member, value in shown.items() if member != "…"}
        return isinstance(real, dict) and named.keys() <= real.keys() and ("…" in shown or named.keys() == real.keys()) \
            and all(agrees(value, real[member]) for member, value in named.items())
    if isinstance(shown, str) and "…" in shown:
        return isinstance(real, str)
    if type(shown) is int and shown >= 1_000_000_000:
        return type(real) is int and real >= 1_000_000_000
    return type(shown) is type(real) and shown == real


def check_line(shown, lines):
    start, gap, _ = shown.partition("…")
    return any(line.startswith(start) if gap else line == shown for line in lines)


def check_api():
    """Runs each request of the page about the API in a shell: it must get the answer that stands under it."""
    ports = dict(zip(("8080", "8081", "8090"), harness.free_ports(3)))
    blocks = re.findall(
        r"<!-- command: (api_\w+) -->\n+```sh\n(.*?)^```\n(?:\n+```(json|http|text)\n(.*?)^```)?", documents(), re.M | re.S,
    )
    login = command("api_login")
    with live.Demonstration(harness.build(), *ports.values()):
        for name, request, kind, shown in blocks:
            if name == "api_login":
                continue
            text = re.sub(r"127\.0\.0\.1:(80[89][01])", lambda port: f"127.0.0.1:{ports[port[1]]}", login + request)
            run = harness.run(["bash", "-c", text], timeout=60)
            if not shown:
                raise Failure(f"{name} has no answer under it")
            if kind == "json":
                good = agrees(json.loads(shown), json.loads(run.stdout))
            else:
                lines = [line.rstrip("\r") for line in run.stdout.splitlines()]
                good = all(check_line(line, lines) for line in shown.splitlines())
            if not good:
                raise Failure(f"{name} answers\n{run.stdout}{run.stderr}\nand not\n{shown}")
    if len(blocks) < 14:
        raise Failure(f"only {len(blocks)} requests were found")
    return f"{len(blocks)} requests of the API answered as shown"


CHECKS = {
    "demo": check_demo, "example": check_example, "backend": check_backend, "serve": check_serve, "api": check_api,
}


# The blocks that debian_test.sh, image_test.sh and kube_test.sh run, and the run of all tests.
ELSEWHERE = {"test", "debian", "compose", "kubernetes"}


def unknown_commands():
    """Shell blocks that nothing would run."""
    fences = re.findall(r"^(.*)\n+```(?:sh|bash|shell|console)$", documents(), re.MULTILINE)
    names = [re.fullmatch(r"<!-- command: (\w+) -->", line) for line in fences]
    return [
        line or "(no line before it)"
        for line, name in zip(fences, names)
        if not name or name.group(1) not in CHECKS.keys() | ELSEWHERE and not name.group(1).startswith("api_")
    ]


def main():
    unknown = unknown_commands()
    if unknown:
        sys.exit("There are shell blocks that nothing runs, after these lines:\n" + "\n".join(unknown))
    failed = False
    for name in sys.argv[1:] or CHECKS:
        began = time.monotonic()
        try:
            print(f"command {name}: ok: {CHECKS[name]()} ({time.monotonic() - began:.0f} s)", flush=True)
        except (Failure, subprocess.SubprocessError, KeyError, ValueError) as error:
            print(f"command {name}: FAILED: {error}", flush=True)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
