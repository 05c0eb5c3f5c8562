#!/usr/bin/env python3
"""Runs the examples against the real service and the stand-in issuer.

usage: examples_test.py [NAME...]     (default: all; names: curl, python, node, go, swift, java, ruby, c-sharp, ios,
    android, web, web-code, login-node, login-python, login-php, login-go, getting-started, key-service,
    login-swift, login-scores (of the servers before it);
    async-http-client is compiled only if it is named, since its TLS library takes minutes)

Each client in Tests/Examples/ verifies a good token of each kind and tells a bad one and an outage apart. The tests of each
login server are in `login_servers.py`; `catalogue run` gives each its score. An example is SKIPPED if its tools are not installed.
"""

import functools
import importlib.util
import json
import os
import pathlib
import pty
import shutil
import subprocess
import sys
import urllib.parse

import browser
import harness
import live
import login_kinds
import login_servers
from harness import free_port
from login_kinds import EXAMPLES
from login_parts import Failure, expect

PACKAGE = EXAMPLES / "HummingbirdServer"


def client(command, service, down, issuer):
    """Tests a client. It prints the user on success; exit code 0 accepted, 1 refused with the code, 3 no verdict, 64 usage."""
    def run(address, *arguments, key=live.Service.key):
        variables = {"VERIFY_URL": f"http://{address}", "VERIFY_KEY": key}
        done = harness.run([*command, *arguments], timeout=120, env=os.environ | variables)
        said = done.stdout + done.stderr
        expect("Traceback" not in said and "goroutine" not in said and "Fatal error" not in said, f"it crashes: {done}")
        return done

    def begun():
        """The token of a new login, and its nonce."""
        nonce = service.nonce()
        return issuer.token(nonce=nonce, name="Jane Doe"), "nonce", nonce

    login, refreshed = begun(), issuer.token(name="Jane Doe")
    for asked in login, (refreshed, "subject", live.SUBJECT), (issuer.access_token(),):
        good = run(service.address, *asked)
        expect(good.returncode == 0 and live.SUBJECT in good.stdout and "Jane Doe" in good.stdout, f"good: {good}")
    for code, *asked in [("nonce_used", *login), ("nonce_mismatch", begun()[0], *begun()[1:]),
                         ("expired", issuer.expired(), "nonce", "n-1"), ("invalid_audience", issuer.foreign(), "nonce", "n-1"),
                         ("subject_mismatch", refreshed, "subject", "42"),
                         ("access_token_revoked", issuer.access_token("revoked")),
                         ("invalid_audience", issuer.access_token(app="42"))]:
        bad = run(service.address, *asked)
        expect(bad.returncode == 1 and code in bad.stdout + bad.stderr, f"{code}: {bad}")
    for asked in begun(), (issuer.access_token(),):
        for what, address in ("no keys and no Graph", down.address), ("nothing there", f"127.0.0.1:{free_port()}"):
            outage = run(address, *asked)
            expect(outage.returncode == 3, f"{what}: {outage}")
    for key in "", "another":
        keyless = run(service.address, *begun(), key=key)
        expect(keyless.returncode == 3 and "VERIFY_KEY" in keyless.stdout + keyless.stderr, f"no key: {keyless}")
    for arguments in (), ("a token", "nonce"):
        usage = run(service.address, *arguments)
        expect(usage.returncode == 64 and "usage" in usage.stdout + usage.stderr, f"wrong usage: {usage}")


def tool(name):
    return [name] if shutil.which(name) else None


def compiled(*arguments):
    run = harness.run(arguments)
    expect(run.returncode == 0, run.stdout + run.stderr)


def built(arguments, output, source):
    """Compiles a program, and returns its command."""
    compiled(*arguments, "-o", output, source)
    return [output]


def clients(scratch):
    """The command of each client; None if its tools are not installed."""
    swiftc = ["swiftc", "-parse-as-library", "-swift-version", "6", "-warnings-as-errors", "-module-cache-path", f"{scratch}/cache"]
    return {
        "curl": lambda: tool("curl") and [str(EXAMPLES / "verify.sh")],
        "python": lambda: [sys.executable, str(EXAMPLES / "verify.py")],
        "node": lambda: tool("node") and ["node", str(EXAMPLES / "verify.mjs")],
        "java": lambda: tool("java") and ["java", str(EXAMPLES / "Verify.java")],
        "ruby": lambda: tool("ruby") and ["ruby", str(EXAMPLES / "verify.rb")],
        "c-sharp": lambda: tool("dotnet") and ["dotnet", "run", str(EXAMPLES / "Verify.cs")],
        "go": lambda: tool("go") and built(["go", "build"], f"{scratch}/go", EXAMPLES / "verify.go"),
        "swift": lambda: built(swiftc, f"{scratch}/swift", EXAMPLES / "verify.swift"),
    }


def ios():
    """Checks the sketches of the app's side against the part of Facebook's SDK that they use, Objective-C by Swift's clang."""
    compiled("swiftc", "-typecheck", "-swift-version", "6", "-warnings-as-errors", *sorted((EXAMPLES / "iOS").glob("*.swift")))
    if shutil.which("clang"):
        compiled("clang", "-fsyntax-only", "-fblocks", "-fobjc-runtime=gnustep-2.0", "-Wall", "-Werror", "-x", "objective-c",
                 EXAMPLES / "iOS" / "ServerLogin.m")


def android(scratch):
    """Does the same for Android, with kotlinc or the compiler in the package kotlin-jupyter-kernel."""
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
    compiled(*command)
    return None


# This runs the web page's login with a simulated SDK. Each argument is the outcome of one dialog.
WEB = """
const { logIn } = require(process.argv[1]);
const [server, facebook, ...logins] = process.argv.slice(2);
const post = async (path, members) => (await fetch(facebook + path, { method: "POST", body: JSON.stringify(members) })).json();
(async () => {
  for (const login of logins) {
    const dialog = async (done, options) => {
      if (login === "none") return done({ authResponse: null });
      if (options.auth_type !== "reauthenticate") throw new Error("no new authentication is asked for");
      const auth_nonce = login === "stolen" ? "n0NceOfAnotherPage" : options.auth_nonce;
      const path = login === "revoked" ? "/access-tokens?revoked" : "/access-tokens";
      const { access_token } = await post(path, { name: "Jane Doe", auth_nonce: login === "bare" ? undefined : auth_nonce });
      done({ authResponse: { accessToken: access_token } });
    };
    console.log(await logIn({ login: dialog }, server));
  }
})();
"""

def played(program, script, service, issuer, *kinds):
    """Runs a page's script with a server that keeps the nonce of each login and asks the service; returns the page's messages."""
    nonces = {}

    def asked(path, members):
        status, text = harness.request(service.port, "POST", path, json.dumps(members), live.Service.fields)
        return (200, json.loads(text)) if status == 200 else (401 if status == 401 else 503, {})

    def answer(request):
        members = json.loads(request.body)
        if request.path == "/login/begin":
            status, answer = asked("/nonces", {})
            if status == 200:
                nonces[answer["nonce"][-8:]] = answer["nonce"]
                answer = {"login": answer["nonce"][-8:], "nonce": answer["nonce"]}
        else:
            status, answer = asked("/verify", members | {"nonce": nonces.pop(members.pop("login")), "auth_nonce": True})
            answer = {"name": answer["profile"]["name"]} if status == 200 else {}
        return status, json.dumps(answer).encode()

    page = harness.serve(answer)
    run = harness.run(["node", "-e", script, program, page.url + "/login", f"http://{issuer.address}", *kinds], timeout=120)
    page.shutdown()
    expect(run.returncode == 0, f"{run}")
    return run.stdout.splitlines()


def web(service, down, issuer):
    if not tool("node"):
        return "SKIPPED: not installed"
    refused = "Facebook does not vouch for this login. Please log in again."
    said = played(EXAMPLES / "Web" / "login.js", WEB, service, issuer, "good", "none", "revoked", "stolen", "bare")
    expect(said == ["Welcome, Jane Doe.", "You did not log in.", refused, refused, refused], f"{said}")
    said = played(EXAMPLES / "Web" / "login.js", WEB, down, issuer, "good")
    expect(said == ["Please try again in a moment."], f"{said}")
    return None


class CodeFlow:
    """The web server of `code-flow.mjs`, and a browser with a session there."""

    def __init__(self, service, issuer):
        self.port = free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        facebook = f"http://{issuer.address}/v26.0"
        self.server = live.Process([shutil.which("node"), str(EXAMPLES / "Web" / "code-flow.mjs")], {
            "APP_ID": live.APP_ID, "ORIGIN": self.origin, "PORT": str(self.port), "VERIFY_KEY": live.Service.key,
            "VERIFY_URL": f"http://{service.address}", "DIALOG": f"{facebook}/dialog/oauth",
            "EXCHANGE": f"{facebook}/oauth/access_token",
        })
        expect(harness.wait_until_ready(self.port, "/", 200), "code-flow.mjs does not start")

    def get(self, url, cookie=""):
        """Sends one request without following a redirect; returns the status, the redirect's target and the cookie."""
        parts = urllib.parse.urlsplit(url)
        answer = harness.answer_to(parts.port, "GET", f"{parts.path}?{parts.query}", None, {"Cookie": cookie})
        return answer.status, answer.headers["Location"], (answer.headers["Set-Cookie"] or "").partition(";")[0]

    def begun(self):
        """Begins a login; returns its cookie, and the dialog's address."""
        status, dialog, cookie = self.get(f"{self.origin}/login")
        expect(status == 302, f"begin: {status}")
        return cookie, dialog

    def redirected(self, dialog):
        """The parameters that the dialog sends back."""
        return query_of(self.get(dialog)[1])


def query_of(url):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def code_flow(service, issuer):
    """Tests a login in a real browser; then a stolen code, a wrong verifier and another nonce."""
    if not shutil.which("node") or not shutil.which("chromedriver"):
        return "SKIPPED: not installed"
    page, chromium = CodeFlow(service, issuer), browser.Browser()

    def told(url, cookie=None):
        if cookie is not None:
            chromium.command("Network.clearBrowserCookies")
            name, _, value = cookie.partition("=")
            if value:
                chromium.command("Network.setCookie", name=name, value=value, url=page.origin, path="/", secure=True, httpOnly=True,
                                 sameSite="Lax")
        chromium.open(url)
        return chromium.run("return document.getElementById('outcome').textContent")

    def callback(**parameters):
        return f"{page.origin}/login/callback?{urllib.parse.urlencode(parameters)}"

    try:
        expect(told(page.origin) == "not logged in", "it begins logged in")
        chromium.click("#log-in")
        outcome = chromium.wait("location.pathname === '/login/callback' && document.getElementById('outcome')?.textContent")
        expect(outcome == f"logged in as {live.SUBJECT}", outcome)
        expect(told(page.origin) == outcome, "the session is not kept")
        # A stolen code fails in the thief's own session, without a session, and with the thief's own state and verifier.
        cookie, dialog = page.begun()
        victim = page.redirected(dialog)
        own, own_dialog = page.begun()
        state = page.redirected(own_dialog)["state"]
        expect(told(callback(**victim), own) == "refused: login_not_begun", "a stolen code and state")
        expect(told(callback(**victim), "") == "refused: login_not_begun", "a stolen code without a session")
        expect(told(callback(code=victim["code"], state=state), own) == "refused: code_refused", "a wrong verifier")
        expect(told(page.origin) == "not logged in", "the thief is logged in")
        cookie, dialog = page.begun()
        good = callback(**page.redirected(dialog))
        expect(told(good, cookie) == f"logged in as {live.SUBJECT}", "a login by hand")
        expect(told(good) == "refused: login_not_begun", "the same answer again")
        # The nonce of another session, a nonce that was not issued, and none at all are refused.
        _, other_dialog = page.begun()
        other = query_of(other_dialog)["nonce"]
        for nonce in other, "n0NceOfMyOwn", "":
            cookie, dialog = page.begun()
            parameters = urllib.parse.urlencode(query_of(dialog) | {"nonce": nonce})
            outcome = told(f"{dialog.partition('?')[0]}?{parameters}", cookie)
            expect(outcome == "refused: nonce_mismatch", f"{nonce}: {outcome}")
            expect(told(page.origin) == "not logged in", f"{nonce}: logged in")
        cookie, dialog = page.begun()
        expect(told(dialog.replace("openid%2C", ""), cookie) == "refused: no_id_token", "no id token")
        cookie, dialog = page.begun()
        state = page.redirected(dialog)["state"]
        expect(told(callback(error="access_denied", state=state), cookie) == "refused: not_logged_in", "a person who says no")
    finally:
        chromium.close()
        page.server.stop()
    return None


def build_package(*part):
    run = harness.run(["swift", "build", "--disable-index-store", *harness.MADE_ONCE, *part], cwd=PACKAGE)
    if run.returncode != 0 and "error: " in run.stdout + run.stderr and "fetch" in run.stdout + run.stderr:
        return None
    expect(run.returncode == 0, (run.stdout + run.stderr)[-3000:])
    return pathlib.Path(harness.output(["swift", "build", "--show-bin-path"], cwd=PACKAGE).strip())


def getting_started(program, issuer):
    def run(make, url=issuer.jwks_url):
        with subprocess.Popen([program, live.APP_ID, url, "session"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as started:
            nonce = started.stdout.readline().strip()
            said, _ = started.communicate(make(nonce) + "\n", timeout=60)
            return started.returncode, said

    code, said = run(lambda nonce: issuer.token(nonce=nonce, name="Jane Doe"))
    expect(code == 0 and "welcome, Jane Doe" in said, said)
    code, said = run(lambda nonce: issuer.token(name="Jane Doe"))
    expect(code == 1 and "401" in said and "nonce_mismatch" in said, said)
    code, said = run(lambda nonce: issuer.token(nonce=nonce), f"http://127.0.0.1:{free_port()}/")
    expect(code == 3 and "503, Retry-After: 2" in said and "Connection refused" in said, said)


def key_service(program):
    """The service of ServiceLifecycle ends at SIGTERM."""
    # A terminal shows the first event at once; a pipe would keep it in a buffer.
    screen, terminal = pty.openpty()
    with subprocess.Popen([program], stdout=terminal) as started:
        os.read(screen, 1)
        started.terminate()
        started.wait(timeout=60)
    os.close(screen)
    os.close(terminal)
    expect(started.returncode == 0, started.returncode)


def main():
    chosen = sys.argv[1:]
    failed = False
    program = harness.build()
    with live.Issuer(program) as issuer, live.Issuer(program) as stranger, \
            live.Service(program, issuer.jwks_url, graph=issuer, access_tokens="accept") as service, \
            live.Service(program, f"http://127.0.0.1:{free_port()}/", graph=issuer, access_tokens="accept",
                         graph_url=f"http://127.0.0.1:{free_port()}") as down, harness.Folder() as folder:
        scratch = str(folder.path)
        service.wait_until_ready()
        login_servers.wait_until_nonces_count(service, issuer)
        steps = {}
        for name, command in clients(scratch).items():
            steps[name] = lambda command=command: "SKIPPED: not installed" if (call := command()) is None else \
                client(call, service, down, issuer)
        steps["ios"] = ios
        steps["android"] = lambda: android(scratch)
        steps["web"] = lambda: web(service, down, issuer)
        steps["web-code"] = lambda: code_flow(service, issuer)
        found = {name: functools.cache(lambda name=name: login_kinds.asking(name, scratch)) for name in login_kinds.ASKING}
        for name, kind in found.items():
            steps[name] = lambda kind=kind: login_servers.asks_service(kind(), service, issuer) if kind() else \
                "SKIPPED: not installed"

        def packaged(name, judge):
            def run():
                folder = build_package("--product", name)
                return "SKIPPED: its packages are not to be had" if folder is None else judge(folder / name)
            return run

        steps["getting-started"] = packaged("getting-started", lambda place: getting_started(place, issuer))
        steps["key-service"] = packaged("key-service", key_service)

        def login_swift(place):
            found["login-swift"] = lambda: login_kinds.hummingbird(place)
            return login_servers.judges_itself(found["login-swift"](), issuer, stranger)

        steps["login-swift"] = packaged("server", login_swift)
        steps["login-scores"] = lambda: login_servers.scores(
            program, {name: kind() for name, kind in found.items()}, login_kinds.naive_node(scratch))
        if "async-http-client" in chosen:
            steps["async-http-client"] = lambda: None if build_package("--target", "AsyncHTTPClientSource") else \
                "SKIPPED: its packages are not to be had"
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
