#!/usr/bin/env python3
"""Runs the commands of README.md and of the service's documentation as a reader would, and judges their answers.

usage: readme_test.py [NAME...]     (default: every command but `test`, which is the test run itself; `api` is the page API.md)

A shell block without a name, or with a name that this script does not know, is a failure: nothing
would run its command.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import live
import login_kinds
from readme_command import command, documents

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = 3000  # includes an optimised build from nothing, on a busy machine
STOP_SECONDS = 20
PROFILE = {
    "user_id", "name", "first_name", "middle_name", "last_name", "email", "image_url", "link_url", "friend_ids",
    "birthday", "age_range", "hometown", "location", "gender", "permissions", "is_limited",
}


class Failure(Exception):
    pass


class Running:
    """A command in a process group of its own, with its output read as it comes."""

    def __init__(self, text: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LIMITED_LOGIN_")}
        self.process = subprocess.Popen(
            ["bash", "-c", text], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_until(self, what: str, holds) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not holds():
            if self.process.poll() is not None:
                raise Failure(f"ended with {self.process.returncode} before {what}:\n{self.output()[-2000:]}")
            if time.monotonic() > deadline:
                raise Failure(f"no {what} after {START_SECONDS} s:\n{self.output()[-2000:]}")
            time.sleep(0.1)

    def stop(self, with_signal: signal.Signals) -> None:
        os.killpg(self.process.pid, with_signal)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"still runs {STOP_SECONDS} s after {with_signal.name}") from None
        if code != 0:
            raise Failure(f"exit code {code} after {with_signal.name}:\n{self.output()[-2000:]}")


@contextlib.contextmanager
def running(name: str, *replacements: tuple[str, str]) -> Iterator[Running]:
    text = command(name)
    for written, meant in replacements:
        text = text.replace(written, meant)
    program = Running(text)
    try:
        yield program
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.process.pid, signal.SIGKILL)
        program.process.wait()


def finished(name: str) -> Running:
    """Runs a command that ends by itself, and keeps all of its output."""
    with running(name) as program:
        if program.process.wait(START_SECONDS) not in (0, -signal.SIGTERM):
            raise Failure(f"exit code {program.process.returncode}:\n{program.output()[-2000:]}")
        program.reader.join(STOP_SECONDS)
        return program


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def check_profile(answer: dict) -> None:
    missing = PROFILE - answer["profile"].keys()
    if missing:
        raise Failure(f"the profile lacks {', '.join(sorted(missing))}")


def check_demo() -> str:
    with running("demo") as demo:
        demo.wait_until("the demonstration's lines", lambda: any("Control-C" in line for line in demo.lines))
        outcomes = []
        for title, line in zip(demo.lines, demo.lines[1:]):
            promised = re.fullmatch(r"# .* -> (?:401 (\w+)|200, the Profile)", title)
            if promised:
                answer = json.loads(subprocess.run(
                    ["bash", "-c", line], capture_output=True, text=True, timeout=30, check=True,
                ).stdout)
                if answer.get("code") != promised[1]:
                    raise Failure(f"{title}: answered {answer}")
                if not promised[1]:
                    check_profile(answer)
                outcomes.append(promised[1])
        if outcomes != [None, "expired", "invalid_signature"]:
            raise Failure(f"the demonstration shows {outcomes}")
        demo.stop(signal.SIGINT)
    return f"{len(outcomes)} requests answered as promised"


def check_refusals() -> str:
    walk = finished("refusals")
    codes = re.findall(r'"code":"(\w+)"', walk.output())
    if codes != ["expired", "invalid_audience", "nonce_mismatch", "invalid_signature", "unknown_key"]:
        raise Failure(f"refused with {codes} in:\n{walk.output()[-3000:]}")
    if walk.lines.count("200") != 2:
        raise Failure(f"not two logins were accepted:\n{walk.output()[-3000:]}")
    return "two logins accepted, five refused, each with its code"


def check_nonces() -> str:
    nonces = finished("nonces")
    accepted = nonces.output().count('{"authentication_token"')
    used = nonces.output().count('"code":"nonce_used"')
    if (accepted, used) != (1, 1):
        raise Failure(f"{accepted} accepted, {used} refused as used:\n{nonces.output()[-2000:]}")
    return "a nonce of the service is accepted once"


def check_example() -> str:
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


def check_backend() -> str:
    """Runs the README's backend before the demonstration: a thief is refused before and after the owner's login."""
    python = login_kinds.python_with_flask()
    if not python:
        return "left out: Flask is not installed"
    [block] = re.findall(r"<!-- example: backend -->\n```python\n(.*?)^```$", documents(), re.M | re.S)
    service, issuer, own = (live.free_port() for _ in range(3))
    program = "\n".join((
        "import requests", "from flask import Flask, abort, request, session", "app = Flask(__name__)",
        "app.secret_key = 'of a test'", "key = 'demo'", block.replace("127.0.0.1:8080", f"127.0.0.1:{service}"),
        "@app.get('/me')", "def me():", "    return {'user': session.get('user')}", f"app.run('127.0.0.1', {own})",
    ))

    def call(browser, path, body=None) -> tuple[int, dict]:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{own}{path}", data, {"Content-Type": "application/json"})
        try:
            with browser.open(asked, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, {}

    def browser():
        return urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    listeners = [f"{option}=127.0.0.1:{port}" for option, port in
                 (("--listen", service), ("--admin-listen", live.free_port()), ("--issuer-listen", issuer))]
    with live.Process([live.build(), "demo", *listeners]) as demo, live.Process([python, "-c", program]):
        demo.find(r"(Control-C)")
        live.wait_until_ready(own, "/me")
        owner, thief = browser(), browser()
        nonce = call(owner, "/login/begin", {})[1]["nonce"]
        call(thief, "/login/begin", {})
        minted = urllib.request.Request(f"http://127.0.0.1:{issuer}/tokens", json.dumps({"nonce": nonce}).encode())
        with urllib.request.urlopen(minted, timeout=30) as answer:
            token = {"id_token": json.load(answer)["id_token"]}
        statuses = [call(one, "/login", token)[0] for one in (thief, owner, thief)]
        users = [call(one, "/me")[1]["user"] for one in (owner, thief)]
    if statuses != [401, 200, 401] or not users[0] or users[1]:
        raise Failure(f"answered {statuses}, and knows {users}")
    return "a thief is refused before and after the owner's login"


def check_life() -> str:
    life = finished("life")
    codes = [line for line in life.lines if re.fullmatch(r"\d{3}", line)]
    if codes != ["200", "401", "200", "200", "204", "200", "204", "401", "204", "200", "204"]:
        raise Failure(f"answered {codes} in:\n{life.output()[-3000:]}")
    answers = [json.loads(line) for line in life.lines if line.startswith('{"user_id"')]
    asked, without_email, without_all = answers
    if (asked["missing"], asked["declined_requested"]) != (["user_birthday"], ["user_friends"]):
        raise Failure(f"answered {asked}")
    if "email" not in asked["granted"] or "email" in without_email["granted"] or without_all["granted"]:
        raise Failure(f"what was revoked is not gone: {answers}")
    if '"code":"nonce_used"' not in life.output():
        raise Failure("a nonce was good twice")
    if '"code":"login_revoked"' not in life.output() or '"refresh":true' not in life.output():
        raise Failure(f"no refresh, or no revocation, in:\n{life.output()[-3000:]}")
    return "from the nonce to the revoked login"


def check_serve() -> str:
    with tempfile.TemporaryDirectory() as folder, running("serve", ("secrets", f"{folder}/secrets")) as service:
        service.wait_until("an answer on /livez", lambda: status("http://127.0.0.1:8080/livez") == 200)
        key = re.search(r"^key:  (\S+)$", service.output(), re.M)
        if not key:
            raise Failure(f"no key was printed:\n{service.output()[-2000:]}")
        answers = [live.request(8080, "POST", "/nonces", "{}", {"X-Api-Key": one})[0] for one in (key[1], "another")]
        if answers != [200, 401]:
            raise Failure(f"/nonces answered {answers}")
        service.stop(signal.SIGTERM)
    return "it issues nonces to its one caller, and stops with exit code 0"


def check_callbacks() -> str:
    callbacks = finished("callbacks")
    answered = [line for line in callbacks.lines if re.fullmatch(r"\d{3}", line)]
    told = ['"code":"login_revoked"', "webhook: login.deauthorized, user 1000200030004000",
            "webhook: user.data_deletion_requested, user 1000200030004000",
            "Everything about user 1000200030004000 was deleted."]
    if answered != ["200", "401", "200"] or not all(text in callbacks.output() for text in told):
        raise Failure(f"answered {answered} in:\n{callbacks.output()[-3000:]}")
    return "the backend is told of a removed app and of a data deletion"


def check_android() -> str:
    android = finished("android")
    answered = [line for line in android.lines if re.fullmatch(r"\d{3}", line)]
    told = ['"name":"Jo Roe"', '"missing_permissions":["email"]', "access_token_invalid"]
    if answered != ["200", "401"] or not all(text in android.output() for text in told):
        raise Failure(f"answered {answered} in:\n{android.output()[-3000:]}")
    return "a token of Android is judged"


def check_tls() -> str:
    example = finished("tls")
    lives = example.lines.count("ok")
    if lives != 2 or "certificate required" not in example.output():
        raise Failure(f"{lives} answers of /livez in:\n{example.output()[-2000:]}")
    return "a caller with a certificate is served, one without is not"


def check_unix() -> str:
    example = finished("unix")
    if example.lines.count("ok") != 1 or "unix:/" not in example.output():
        raise Failure(f"no answer of /livez in:\n{example.output()[-2000:]}")
    return "curl is served by the socket"


def agrees(shown, real, name: str = "") -> bool:
    """True if an answer is the shown one: "…" stands for anything, and a time for any other time."""
    if isinstance(shown, dict):
        named = {member: value for member, value in shown.items() if member != "…"}
        return isinstance(real, dict) and named.keys() <= real.keys() and ("…" in shown or named.keys() == real.keys()) \
            and all(agrees(value, real[member], member) for member, value in named.items())
    if isinstance(shown, str) and "…" in shown:
        return isinstance(real, str)
    if type(shown) is int and shown >= 1_000_000_000:
        return type(real) is int and real >= 1_000_000_000
    return type(shown) is type(real) and shown == real


def check_line(shown: str, lines: list[str]) -> bool:
    start, gap, _ = shown.partition("…")
    return any(line.startswith(start) if gap else line == shown for line in lines)


def check_api() -> str:
    """Runs each request of the page about the API in a shell: it must get the answer that stands under it."""
    ports = {usual: live.free_port() for usual in ("8080", "8081", "8090")}
    blocks = re.findall(
        r"<!-- command: (api_\w+) -->\n+```sh\n(.*?)^```\n(?:\n+```(json|http|text)\n(.*?)^```)?", documents(), re.M | re.S,
    )
    login = command("api_login")
    listeners = [f"{option}=127.0.0.1:{port}" for option, port in
                 zip(("--listen", "--admin-listen", "--issuer-listen"), ports.values())]
    program = live.build()
    with live.Process([program, "demo", *listeners]) as demo:
        demo.find(r"(Control-C)")
        for name, request, kind, shown in blocks:
            if name == "api_login":
                continue
            text = re.sub(r"127\.0\.0\.1:(80[89][01])", lambda port: f"127.0.0.1:{ports[port[1]]}", login + request)
            run = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60, check=False)
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
    "demo": check_demo, "refusals": check_refusals, "example": check_example, "backend": check_backend, "nonces": check_nonces,
    "life": check_life, "serve": check_serve, "callbacks": check_callbacks, "android": check_android, "tls": check_tls,
    "unix": check_unix, "api": check_api,
}


def unknown_commands() -> list[str]:
    """Shell blocks that nothing would run."""
    fences = re.findall(r"^(.*)\n+```(?:sh|bash|shell|console)$", documents(), re.MULTILINE)
    names = [re.fullmatch(r"<!-- command: (\w+) -->", line) for line in fences]
    return [
        line or "(no line before it)"
        for line, name in zip(fences, names)
        if not name or name.group(1) not in CHECKS.keys() | {"test"} and not name.group(1).startswith("api_")
    ]


def main() -> None:
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
