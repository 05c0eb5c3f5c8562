"""The kinds of login servers in Tests/Examples: the command, the settings and the sessions of each."""

import dataclasses
import os
import pathlib
import secrets
import shutil
import typing

import harness
import live
import login_sessions
from login_parts import expect

EXAMPLES = harness.ROOT / "Tests" / "Examples"
COMPARISON = harness.ROOT / "Tests" / "Comparison"
# Debian's packages for Go and Node.
GORILLA = pathlib.Path("/usr/share/gocode/src/github.com/gorilla/sessions")
NODE_PACKAGES = pathlib.Path("/usr/share/nodejs")


@dataclasses.dataclass
class Kind:
    command: list
    variables: dict
    # Moves the end of a session; None if only the server can. `login_sessions.py` has these functions.
    change: typing.Callable | None = None
    # True if the server holds the sessions, so that a logout ends them; else the cookie does.
    holds_sessions: bool = False
    # The command that checks the settings, if `command` does not.
    check: list | None = None


def signed(command, change):
    """A server whose signed cookie holds the session."""
    return Kind(command, {"VERIFY_KEY": live.Service.key, "SESSION_SECRET": secrets.token_hex(16)}, change)


def flask(file, *modules):
    """The command that serves an application on Flask; None if Flask or a module is not installed."""
    program = harness.python_with("flask", *modules)
    return program and [program, "-m", "flask", "--app", str(file), "run", "--port", "PORT"]


def python(_scratch):
    command = flask(EXAMPLES / "login.py", "requests")
    return command and signed(command, login_sessions.flask)


def php(scratch):
    if not shutil.which("php"):
        return None
    folder = pathlib.Path(scratch) / "php-sessions"
    folder.mkdir()
    program = str(EXAMPLES / "login.php")
    command = ["php", "-d", f"session.save_path={folder}", "-S", "127.0.0.1:PORT", program]
    return Kind(command, {"VERIFY_KEY": live.Service.key}, login_sessions.php(folder), True, ["php", program])


def go(scratch):
    if not shutil.which("go") or not GORILLA.exists():
        return None
    variables = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "", "GOCACHE": f"{scratch}/go-cache"}
    command = ["go", "build", "-o", f"{scratch}/login-go", "."]
    run = harness.run(command, env=os.environ | variables, cwd=EXAMPLES / "GorillaServer")
    expect(run.returncode == 0, run.stdout + run.stderr)
    return signed([f"{scratch}/login-go"], login_sessions.gorilla)


def node_program(scratch, file, *packages):
    """The command of an ES module; None if a package is not installed. Node finds the packages of such a module only in a folder
    above it, and the packages that these need in `NODE_PATH`."""
    if not shutil.which("node") or not all((NODE_PACKAGES / name).exists() for name in packages):
        return None
    place = pathlib.Path(scratch) / file.name
    place.mkdir()
    (place / "node_modules").symlink_to(NODE_PACKAGES)
    return ["env", f"NODE_PATH={NODE_PACKAGES}", "node", shutil.copy(file, place)]


def node(scratch):
    command = node_program(scratch, EXAMPLES / "login.mjs", "express", "cookie-parser")
    return command and signed(command, login_sessions.node)


def naive_flask(_scratch):
    command = flask(COMPARISON / "naive.py", "jwt", "cryptography")
    return command and Kind(command, {"APP_ID": live.APP_ID})


def naive_node(scratch):
    command = node_program(scratch, COMPARISON / "naive.mjs", "jose")
    return command and Kind(command, {"APP_ID": live.APP_ID})


# Each makes the kind that asks the service; None if its tools are not installed.
ASKING = {"login-node": node, "login-python": python, "login-php": php, "login-go": go}


def hummingbird(program):
    """The server in Swift, which judges with the library."""
    return Kind([str(program)], {"APP_ID": live.APP_ID}, holds_sessions=True)
