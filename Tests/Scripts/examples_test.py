#!/usr/bin/env python3
"""Runs the examples against the real service and the stand-in issuer.

usage: examples_test.py [NAME...]     (default: all; names: curl, python, node, go, swift, ios, android, web, login-node,
    login-python, login-php, login-go, getting-started, login-swift)

Each client in Tests/Examples/ verifies a good token of each kind and tells a bad one and an outage apart. The five tests of
each login server are in `login_servers.py`. What is not installed is SKIPPED.
"""

import http.server
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import live
import login_servers
from live import free_port
from login_servers import EXAMPLES, Failure, expect

PACKAGE = EXAMPLES / "HummingbirdServer"


def client(command, service, down, issuer):
    """A client prints the user on success; exit code 0 accepted, 1 refused with the code, 3 nobody can tell, 64 usage."""
    def run(address, *arguments, key=live.Service.key):
        variables = {"VERIFY_URL": f"http://{address}", "VERIFY_KEY": key}
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120, env=os.environ | variables)
        said = done.stdout + done.stderr
        expect("Traceback" not in said and "goroutine" not in said and "Fatal error" not in said, f"it crashes: {done}")
        return done

    def issued(**claims):
        return issuer.token(nonce=login_servers.nonce(service), name="Jane Doe", **claims)

    login, refreshed = issued(), issuer.token(name="Jane Doe")
    for token, *user in [(login,), (refreshed, live.SUBJECT), (issuer.access_token(),)]:
        good = run(service.address, token, *user)
        expect(good.returncode == 0 and live.SUBJECT in good.stdout and "Jane Doe" in good.stdout, f"good: {good}")
    for code, token, *user in [("nonce_used", login), ("nonce_not_issued", refreshed), ("expired", issuer.expired()),
                               ("invalid_audience", issuer.foreign()), ("subject_mismatch", issued(), "42"),
                               ("access_token_revoked", issuer.access_token("revoked")),
                               ("invalid_audience", issuer.access_token(app="42"))]:
        bad = run(service.address, token, *user)
        expect(bad.returncode == 1 and code in bad.stdout + bad.stderr, f"{code}: {bad}")
    for token in issued(), issuer.access_token():
        for what, address in ("no keys and no Graph", down.address), ("nothing there", f"127.0.0.1:{free_port()}"):
            outage = run(address, token)
            expect(outage.returncode == 3, f"{what}: {outage}")
    for key in "", "another":
        keyless = run(service.address, issued(), key=key)
        expect(keyless.returncode == 3 and "VERIFY_KEY" in keyless.stdout + keyless.stderr, f"no key: {keyless}")
    usage = run(service.address)
    expect(usage.returncode == 64 and "usage" in usage.stdout + usage.stderr, f"no arguments: {usage}")


def tool(name):
    return [name] if shutil.which(name) else None


def built(arguments, output):
    """A program that has to be compiled first."""
    run = subprocess.run(arguments, capture_output=True, text=True)
    expect(run.returncode == 0, run.stdout + run.stderr)
    return [str(output)]


def clients(scratch):
    """How each client is called; None where what it needs is not installed."""
    def go():
        return tool("go") and built(["go", "build", "-o", f"{scratch}/go", str(EXAMPLES / "verify.go")], f"{scratch}/go")

    def swift():
        return built(["swiftc", "-parse-as-library", "-swift-version", "6", "-warnings-as-errors",
                      "-module-cache-path", f"{scratch}/cache", "-o", f"{scratch}/swift", str(EXAMPLES / "verify.swift")],
                     f"{scratch}/swift")

    return {
        "curl": lambda: tool("curl") and [str(EXAMPLES / "verify.sh")],
        "python": lambda: [sys.executable, str(EXAMPLES / "verify.py")],
        "node": lambda: tool("node") and ["node", str(EXAMPLES / "verify.mjs")],
        "go": go,
        "swift": swift,
    }


def ios():
    """The sketch of the app's side is typechecked against the part of Facebook's SDK that it uses."""
    files = sorted(str(file) for file in (EXAMPLES / "iOS").glob("*.swift"))
    run = subprocess.run(["swiftc", "-typecheck", "-swift-version", "6", "-warnings-as-errors", *files],
                         capture_output=True, text=True)
    expect(run.returncode == 0, run.stdout + run.stderr)


def android(scratch):
    """The same for Android, by the compiler there is: kotlinc, or the one of the package kotlin-jupyter-kernel."""
    files = sorted(str(file) for file in (EXAMPLES / "Android").glob("*.kt"))
    options = ["-Werror", "-d", f"{scratch}/android.jar", *files]
    package = importlib.util.find_spec("run_kotlin_kernel")
    if shutil.which("kotlinc"):
        command = ["kotlinc", *options]
    elif package and shutil.which("java"):
        jars = sorted(str(jar) for jar in (pathlib.Path(package.origin).parent / "jars").glob("*.jar"))
        standard = ":".join(jar for jar in jars if "kotlin-stdlib" in jar)
        command = ["java", "-cp", ":".join(jars), "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", "-no-stdlib", "-no-reflect",
                   "-classpath", standard, *options]
    else:
        return "SKIPPED: no Kotlin compiler is installed"
    run = subprocess.run(command, capture_output=True, text=True)
    expect(run.returncode == 0, run.stdout + run.stderr)
    return None


# The web page's login with a dialog that is played, and what it tells the person.
WEB = """
const { logIn } = require(process.argv[1]);
const [server, ...tokens] = process.argv.slice(2);
(async () => {
  for (const token of tokens) {
    const authResponse = token === "none" ? null : { accessToken: token };
    console.log(await logIn({ login: (done) => done({ authResponse }) }, server));
  }
})();
"""


def web(service, down, issuer):
    """The page's own server is played here: it asks limited-login with the Python client."""
    if not shutil.which("node"):
        return "SKIPPED: not installed"
    sys.path.insert(0, str(EXAMPLES))
    from verify import Refused, Unavailable, verify

    class Server(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            token = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["access_token"]
            try:
                status, answer = 200, {"name": verify(token)["profile"]["name"]}
            except (Refused, Unavailable) as error:
                status, answer = 401 if isinstance(error, Refused) else 503, {}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_):
            pass

    def run(address, *tokens):
        os.environ |= {"VERIFY_URL": f"http://{address}", "VERIFY_KEY": live.Service.key}
        place = f"http://127.0.0.1:{page.server_address[1]}/login"
        script = [shutil.which("node"), "-e", WEB, str(EXAMPLES / "Web" / "login.js"), place, *tokens]
        return subprocess.run(script, capture_output=True, text=True, timeout=60)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as page:
        threading.Thread(target=page.serve_forever, daemon=True).start()
        said = run(service.address, issuer.access_token(), "none", issuer.access_token("revoked"))
        expected = ["Welcome, Jane Doe.", "You did not log in.",
                    "Facebook does not vouch for this login. Please log in again."]
        expect(said.stdout.splitlines() == expected, f"{said}")
        outage = run(down.address, issuer.access_token())
        expect(outage.stdout == "Please try again in a moment.\n", f"{outage}")
        page.shutdown()
    return None


def build_package():
    run = subprocess.run(["swift", "build", *live.MADE_ONCE], cwd=PACKAGE, capture_output=True, text=True)
    if run.returncode != 0 and "error: " in run.stdout + run.stderr and "fetch" in run.stdout + run.stderr:
        return None
    expect(run.returncode == 0, (run.stdout + run.stderr)[-3000:])
    folder = subprocess.run(["swift", "build", "--show-bin-path"], cwd=PACKAGE, capture_output=True, text=True)
    return pathlib.Path(folder.stdout.strip())


def getting_started(program, issuer):
    def run(token, url=issuer.jwks_url):
        command = [str(program), live.APP_ID, url, token, "n-1"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    good = run(issuer.token(name="Jane Doe"))
    expect(good.returncode == 0 and "welcome, Jane Doe" in good.stdout, f"{good}")
    bad = run(issuer.expired())
    expect(bad.returncode == 1 and "expired" in bad.stdout, f"{bad}")
    outage = run(issuer.token(), f"http://127.0.0.1:{free_port()}/")
    expect(outage.returncode == 3 and "Connection refused" in outage.stdout, f"{outage}")


def main():
    chosen = sys.argv[1:]
    failed = False
    program = live.build()
    with live.Issuer(program) as issuer, live.Issuer(program) as stranger, \
            live.Service(program, issuer.jwks_url, graph=issuer, access_tokens="accept") as service, \
            live.Service(program, f"http://127.0.0.1:{free_port()}/", graph=issuer, access_tokens="accept",
                         graph_url=f"http://127.0.0.1:{free_port()}") as down, \
            tempfile.TemporaryDirectory() as scratch:
        service.wait_until_ready()
        login_servers.wait_until_nonces_count(service, issuer)
        steps = {}
        for name, command in clients(scratch).items():
            def run(command=command):
                call = command()
                return "SKIPPED: not installed" if call is None else client(call, service, down, issuer)
            steps[name] = run
        steps["ios"] = ios
        steps["android"] = lambda: android(scratch)
        steps["web"] = lambda: web(service, down, issuer)
        for name, command in login_servers.commands(scratch).items():
            def serve(command=command):
                call = command()
                return login_servers.asks_service(call, service, issuer) if call else "SKIPPED: not installed"
            steps[name] = serve

        def packaged(name, judge):
            def run():
                folder = build_package()
                return "SKIPPED: its packages are not to be had" if folder is None else judge(folder / name)
            return run

        steps["getting-started"] = packaged("getting-started", lambda place: getting_started(place, issuer))
        steps["login-swift"] = packaged("server", lambda place: login_servers.judges_itself(place, issuer, stranger))
        for name, step in steps.items():
            if chosen and name not in chosen:
                continue
            try:
                print(f"{name}: {step() or 'ok'}", flush=True)
            except (Failure, subprocess.SubprocessError, OSError) as error:
                failed = True
                print(f"{name}: FAILED: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
