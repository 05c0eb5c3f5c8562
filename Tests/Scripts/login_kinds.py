"""The kinds of login servers in Tests/Examples: the command, the settings and the sessions of each."""

import dataclasses
import os
import pathlib
import re
import secrets
import shutil
import typing

import harness
import live
from login_parts import expect

EXAMPLES = harness.ROOT / "Tests" / "Examples"
COMPARISON = harness.ROOT / "Tests" / "Comparison"
# How long a session lasts, in seconds, as each login server states it, and a short one.
LIFETIME, SHORT_SECONDS = 3_600, 5
# Debian's packages for Go and Node.
GORILLA = pathlib.Path("/usr/share/gocode/src/github.com/gorilla/sessions")
NODE_PACKAGES = pathlib.Path("/usr/share/nodejs")


@dataclasses.dataclass
class Kind:
    command: list
    variables: dict
    # True if the server holds the sessions, so that a logout ends them; else the cookie does.
    holds_sessions: bool = False
    # The command that checks the settings, if `command` does not.
    check: list | None = None
    # The same server with sessions of SHORT_SECONDS.
    short: typing.Any = None


def signed(command):
    """A server whose signed cookie holds the session."""
    return Kind(command, {"VERIFY_KEY": live.Service.key, "SESSION_SECRET": secrets.token_hex(16)})


def flask(file, *modules):
    """The command that serves an application on Flask; None if Flask or a module is not installed."""
    program = harness.python_with("flask", *modules)
    return program and [program, "-m", "flask", "--app", str(file), "run", "--port", "PORT"]


def python(scratch, example):
    command = flask(example(scratch, "login.py"), "requests")
    return command and signed(command)


def php(scratch, example):
    if not shutil.which("php"):
        return None
    (scratch / "php-sessions").mkdir()
    program = str(example(scratch, "login.php"))
    command = ["php", "-d", f"session.save_path={scratch}/php-sessions", "-S", "127.0.0.1:PORT", program]
    return Kind(command, {"VERIFY_KEY": live.Service.key}, True, ["php", program])


def go(scratch, example):
    if not shutil.which("go") or not GORILLA.exists():
        return None
    cache = str(harness.ROOT / ".build/go-cache")
    variables = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "", "GOCACHE": cache}
    folder = example(scratch, "GorillaServer/login.go").parent
    run = harness.run(["go", "build", "-o", scratch / "login-go", "."], env=os.environ | variables, cwd=folder)
    expect(run.returncode == 0, run.stdout + run.stderr)
    return signed([str(scratch / "login-go")])


def node_program(scratch, file, *packages):
    """The command of an ES module; None if a package is not installed. Node finds the packages of such a module only in a folder
    above it, and the packages that these need in `NODE_PATH`."""
    if not shutil.which("node") or not all((NODE_PACKAGES / name).exists() for name in packages):
        return None
    place = pathlib.Path(scratch) / file.name
    place.mkdir()
    (place / "node_modules").symlink_to(NODE_PACKAGES)
    return ["env", f"NODE_PATH={NODE_PACKAGES}", "node", shutil.copy(file, place)]


def node(scratch, example):
    command = node_program(scratch, example(scratch, "login.mjs"), "express", "cookie-parser")
    return command and signed(command)


def naive_flask(_scratch):
    command = flask(COMPARISON / "naive.py", "jwt", "cryptography")
    return command and Kind(command, {"APP_ID": live.APP_ID})


def naive_node(scratch):
    command = node_program(scratch, COMPARISON / "naive.mjs", "jose")
    return command and Kind(command, {"APP_ID": live.APP_ID})


# Each makes the kind that asks the service; None if its tools are not installed.
ASKING = {"login-node": node, "login-python": python, "login-php": php, "login-go": go}


def unchanged(_scratch, name):
    return EXAMPLES / name


def shortened(scratch, name):
    """A copy of the example, whose sessions are short, and of the files beside it."""
    original = EXAMPLES / name
    file = shutil.copytree(original.parent, scratch / "source") / original.name
    text, count = re.subn(r"(?im)^((?:const )?lifetime = )3_600", rf"\g<1>{SHORT_SECONDS}", original.read_text())
    expect(count == 1, f"{name} has {count} lifetimes")
    file.write_text(text)
    return file


def asking(name, scratch):
    places = pathlib.Path(scratch, name), pathlib.Path(scratch, name, "short")
    for place in places:
        place.mkdir()
    kind, short = (ASKING[name](place, example) for place, example in zip(places, (unchanged, shortened)))
    return kind and dataclasses.replace(kind, short=short)


def hummingbird(program):
    """The server in Swift, which judges with the library."""
    kind = Kind([str(program)], {"APP_ID": live.APP_ID}, holds_sessions=True)
    kind.short = dataclasses.replace(kind, variables=kind.variables | {"SESSION_SECONDS": str(SHORT_SECONDS)})
    return kind
