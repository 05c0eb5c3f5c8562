"""The tests of each login server in Tests/Examples; `examples_test.py` runs them.

The servers in Node, Python, PHP and Go ask the service. The server on Hummingbird judges with the library, so its outage is
that of the issuer's keys.
"""

import concurrent.futures
import contextlib
import json
import os
import time

import harness
import live
from login_parts import FAULTS, App, LoginServer, Relay, expect, logged_in
from login_sessions import LIFETIME

# Values with which a login server must not start; None stands for a missing variable.
WRONG = {
    "VERIFY_URL": [None, "", "limited-login:8080", "http://127.0.0.1:8080/"],
    "VERIFY_KEY": [None, ""],
    "SESSION_SECRET": [None, "", "x" * 31],
    "APP_ID": [None, "", "an app"],
    "SESSION_SECONDS": ["", "-1", "1 h"],
}
KEYS = "/.well-known/oauth/openid/jwks/"
# The options of `catalogue run` for a login server; BASE is its address.
ROUTES = ["--begin", "BASE/login/begin", "--refresh", "BASE/refresh", "--send", '{"login": "{login}", "id_token": "{token}"}']
# The nearest that two moments of a test may be: slow machines need time for the requests between them.
MARGIN = 600


def refuses_wrong_settings(kind, variables):
    """A server with an empty secret would accept every cookie, so none starts, and each names the setting."""
    good = kind.variables | variables
    for name in sorted(good.keys() & WRONG.keys()):
        for value in WRONG[name]:
            settings = {key: text for key, text in (os.environ | good | {name: value, "PORT": str(harness.free_port())}).items()
                        if text is not None}
            command = [part.replace("PORT", settings["PORT"]) for part in kind.check or kind.command]
            run = harness.run(command, env=settings, timeout=60)
            said = run.stdout + run.stderr
            expect(run.returncode > 0 and name in said and said.count("\n") == 1, f"{name}={value}: {run}")
    if not kind.check:
        return
    # This kind reads the settings at each request.
    run = harness.run(kind.check, env=os.environ | good, timeout=60)
    expect((run.returncode, run.stdout + run.stderr) == (0, ""), f"good settings: {run}")
    with LoginServer(kind, variables | {"VERIFY_KEY": ""}, status=500) as server:
        app = App(server)
        status, text = app.call("POST", "/login/begin", {})
        expect(status == 500 and "not_configured" in text and not app.cookie, f"without a key: {status} {text}")
        expect("VERIFY_KEY must be" in server.output(), server.output())


def good_login(server, issuer):
    app = App(server)
    login, nonce = app.begin()
    first = app.cookie
    flags = {f"{name}={value}" if value else name for name, value in app.attributes.items()}
    expect(first.startswith("__Host-session=") and len(first) >= 36, f"the cookie {first}")
    expect({"httponly", "secure", "samesite=lax", "path=/"} <= flags and "domain" not in app.attributes, f"{flags}")
    expect(0 <= LIFETIME - app.seconds() < MARGIN, f"the app keeps the cookie for {app.seconds()} s")
    expect(app.user() is None, "a login that is only begun names a user")
    status, text = app.log_in(login, issuer.token(nonce=nonce, name="Jane Doe"))
    expect(status == 200, f"good: {status} {text}\n{server.output()}")
    person = json.loads(text)
    expect((person["user"], person["name"]) == (live.SUBJECT, "Jane Doe"), f"good: {text}")
    expect(app.cookie != first, "the session kept its id")
    expect(app.user() == live.SUBJECT, "the session names nobody")
    expect(app.user(first) is None, "the id from before the login opens the session")
    # A foreign cookie opens no session and takes none away.
    expect(app.user(app.cookie[:-4] + "AAAA") is None and app.user() == live.SUBJECT, "an altered cookie")


def refreshes(server, issuer):
    app = logged_in(server, issuer)
    # The SDK's own refresh has a nonce that this server never saw.
    status, text = app.refresh(issuer.token(nonce="of-the-sdk"))
    expect(status == 200, f"refresh: {status} {text}")
    expect(0 <= LIFETIME - app.seconds() < MARGIN, f"after a refresh the app keeps the cookie for {app.seconds()} s")
    stranger = issuer.token(nonce="of-the-sdk", sub="1000200030004000")
    for more in {}, {"subject": "1000200030004000", "user": "1000200030004000"}:
        status, text = app.refresh(stranger, **more)
        expect(status == 401 and "subject_mismatch" in text, f"another person's refresh: {status} {text}")
    status, _ = App(server).refresh(issuer.token())
    expect(status == 401, "a refresh began a session")
    login, _ = app.begin()
    status, text = App(server).refresh(issuer.token(), login=login)
    expect(status == 401, f"a refresh of a login that is only begun: {status} {text}")
    expect(app.user() == live.SUBJECT, "a refused refresh changed the session")


def old_sessions(server, issuer):
    """A session lasts for the lifetime after its login or its last refresh, and a login that is begun prolongs none."""
    app = logged_in(server, issuer)
    app.cookie = app.changed(LIFETIME - MARGIN)
    expect(app.user() == live.SUBJECT, "a session ends early")
    app.begin()
    app.cookie = app.changed(MARGIN)
    expect(app.user() is None, "an old session is accepted")
    status, text = app.refresh(issuer.token(nonce="of-the-sdk"))
    expect(status == 401, f"the refresh of an old session: {status} {text}")
    app = logged_in(server, issuer)
    app.cookie = app.changed(LIFETIME - MARGIN)
    status, text = app.refresh(issuer.token(nonce="of-the-sdk"))
    expect(status == 200, f"a late refresh: {status} {text}")
    app.cookie = app.changed(LIFETIME - MARGIN)
    expect(app.user() == live.SUBJECT, "a refresh prolongs by less than the lifetime")
    app.cookie = app.changed(MARGIN)
    expect(app.user() is None, "a refresh prolongs by more than the lifetime")


def short_sessions(kind, variables, issuer):
    """The same for a server whose sessions cannot be changed from outside: its lifetime is five seconds."""
    seconds = 5
    with LoginServer(kind, variables | {"SESSION_SECONDS": str(seconds)}) as server:
        app = logged_in(server, issuer)
        began = time.monotonic()
        while time.monotonic() - began <= seconds + 1:
            status, text = app.refresh(issuer.token(nonce="of-the-sdk"))
            expect(status == 200 and app.seconds() == seconds, f"a refresh: {status} {text}")
        while app.user():
            app.begin()
            expect(time.monotonic() - began < harness.START_SECONDS, "an old session is accepted")
        status, text = app.refresh(issuer.token(nonce="of-the-sdk"))
        expect(status == 401, f"the refresh of an old session: {status} {text}")


def forged_cookies(server, issuer):
    app = logged_in(server, issuer)
    expect(app.user(app.changed(0)) == live.SUBJECT, "the tests sign other cookies than the server")
    for secret in "", "x" * 32:
        expect(app.user(app.changed(0, secret)) is None, f"a cookie signed with '{secret}' is accepted")


def logs_out(server, issuer):
    app = logged_in(server, issuer)
    old = app.cookie
    status, text = app.call("POST", "/logout")
    expect(status == 200 and not app.cookie and app.user() is None, f"a logout: {status} {text} {app.cookie}")
    left = app.user(old)
    expect(left == (None if server.kind.holds_sessions else live.SUBJECT), f"after the logout the old cookie names {left}")
    login, nonce = app.begin()
    app.call("POST", "/logout", {})
    status, text = app.log_in(login, issuer.token(nonce=nonce))
    expect(status == 401 and app.user() is None, f"a login that was begun before the logout: {status} {text}")
    status, text = App(server).call("POST", "/logout", {})
    expect(status == 200, f"a logout without a session: {status} {text}")


def same_token_twice(server, issuer):
    app = App(server)
    login, nonce = app.begin()
    first, token = app.cookie, issuer.token(nonce=nonce)
    status, text = app.log_in(login, token)
    expect(status == 200, f"{status} {text}")
    status, text = app.log_in(login, token)
    expect(status == 401, f"twice in one session: {status} {text}")
    thief = App(server)
    thief.cookie = first
    status, text = thief.log_in(login, token)
    expect(status == 401 and thief.user() != live.SUBJECT, f"twice with the cookie from before: {status} {text}")
    one, other = App(server), App(server)
    login, nonce = one.begin()
    other.cookie, token = one.cookie, issuer.token(nonce=nonce)
    with concurrent.futures.ThreadPoolExecutor() as both:
        statuses = sorted(status for status, _ in both.map(lambda app: app.log_in(login, token), (one, other)))
    expect(statuses == [200, 401], f"twice at once: {statuses}")


def stolen_token(server, issuer):
    """A thief presents the owner's token before and after its owner does; the owner is logged in both times."""
    for order in "thief first", "owner first":
        owner, thief = App(server), App(server)
        login, nonce = owner.begin()
        token = issuer.token(nonce=nonce)
        if order == "owner first":
            expect(owner.log_in(login, token)[0] == 200, f"{order}: the owner is refused")
        for name in login, "", None:
            status, text = thief.log_in(name, token)
            expect(status == 401 and thief.user() is None, f"{order}, without a session: {status} {text}")
        own = thief.begin()[0]
        claimed = {"nonce": nonce, "raw_nonce": nonce, "issued_nonce": True, "subject": live.SUBJECT, "user": live.SUBJECT}
        for more in {}, claimed:
            status, text = thief.log_in(own, token, **more)
            expect(status == 401 and "nonce_mismatch" in text and thief.user() is None, f"{order}, own login: {status} {text}")
        status, text = thief.log_in(login, token, **claimed)
        expect(status == 401 and thief.user() is None, f"{order}, the owner's login: {status} {text}")
        if order == "thief first":
            status, text = owner.log_in(login, token)
            expect(status == 200, f"{order}: the owner is refused: {status} {text}")
        expect(owner.user() == live.SUBJECT, f"{order}: the owner is not logged in")


def expired_token(server, issuer):
    now = int(time.time())
    app = App(server)
    login, nonce = app.begin()
    status, text = app.log_in(login, issuer.token(nonce=nonce, iat=now - 7200, exp=now - 3600))
    expect(status == 401 and "expired" in text, f"expired: {status} {text}")
    expect(app.user() is None, "an expired token began a session")
    for what in None, 7, {"a": 1}, "", "x.y", "EAABwzLixnjYBO0123456789abcdef", issuer.foreign(), issuer.token(nonce=nonce)[:-4]:
        login = app.begin()[0]
        status, text = app.log_in(login, what)
        expect(status in (400, 401) and app.user() is None, f"the token {what}: {status} {text}")


def outage(server, issuer, relay, faults, unjudged):
    """Tests an outage. `unjudged` mints a token that cannot be judged while the relay fails."""
    app, other = logged_in(server, issuer), App(server)
    login, nonce = other.begin()
    for fault in faults:
        relay.fault = fault
        status, text = other.log_in(login, unjudged(nonce))
        expect(status == 503, f"{fault}: a login: {status} {text}\n{server.output()}")
        status, text = app.refresh(unjudged("of-the-sdk"))
        expect(status == 503, f"{fault}: a refresh: {status} {text}")
        status, text = app.call("POST", "/login/begin", {})
        expect(status in (200, 503), f"{fault}: the beginning of a login: {status} {text}")
        expect(app.user() == live.SUBJECT, f"{fault}: it logged the person out")
        relay.fault = None
    status, text = other.log_in(login, issuer.token(nonce=nonce))
    expect(status == 200 and other.user() == live.SUBJECT, f"the same login after the outage: {status} {text}")


def all_tests(server, issuer, relay, faults, unjudged):
    tests = [good_login, same_token_twice, stolen_token, expired_token, refreshes, logs_out]
    if server.kind.change:
        tests.append(old_sessions)
    if "SESSION_SECRET" in server.kind.variables:
        tests.append(forged_cookies)
    for test in tests:
        test(server, issuer)
    outage(server, issuer, relay, faults, unjudged)
    return f"ok: {len(tests) + 2} tests"


def asks_service(kind, service, issuer):
    """Runs the tests for a server that asks the service."""
    with Relay(f"http://{service.address}") as relay:
        variables = {"VERIFY_URL": relay.address}
        refuses_wrong_settings(kind, variables)
        with LoginServer(kind, variables) as server:
            done = all_tests(server, issuer, relay, ["closed", "key", *FAULTS], lambda nonce: issuer.token(nonce=nonce))
            for told in "unauthorized_client", "client-key new":
                expect(told in server.output(), f"a wrong key of its own is not told: {server.output()}")
            return done


def judges_itself(kind, issuer, stranger):
    """Runs the tests for a server on the library, which cannot judge an unknown key without the source of keys."""
    refuses_wrong_settings(kind, {"SESSION_SECONDS": str(LIFETIME)})
    with Relay(f"http://{issuer.address}") as relay:
        variables = {"JWKS_URL": issuer.jwks_url.replace(f"http://{issuer.address}", relay.address)}
        short_sessions(kind, variables, issuer)
        with LoginServer(kind, variables) as server:
            return all_tests(server, issuer, relay, ["closed"], lambda nonce: stranger.token(nonce=nonce))


def score(program, kind, keys, variables, options=(), status=401):
    """The report of `catalogue run` on a server, which gets Facebook's keys from this address."""
    with LoginServer(kind, variables, status) as server:
        base = f"http://127.0.0.1:{server.port}"
        command = [program, "catalogue", "run", "--json", "--issuer-listen", keys, "--url", f"{base}/login"]
        run = harness.run([*command, *(option.replace("BASE", base) for option in options)])
        expect(run.stdout, f"no score: {run.stderr}\n{server.output()}")
        report = json.loads(run.stdout)
        expect((run.returncode == 0) == (report["right"] == report["asked"]), f"{run}")
        return report


def wrong(report):
    """What follows from each wrong answer, by the name of its try."""
    return {one["name"]: one["why"] for one in report["tries"] if not one["right"]}


def scores_whole(program, kind):
    """`catalogue run` finds no mistake of a login server."""
    keys = f"127.0.0.1:{harness.free_port()}"
    url = f"http://{keys}{KEYS}"
    with contextlib.ExitStack() as stack:
        variables = {"JWKS_URL": url}
        if "VERIFY_KEY" in kind.variables:
            variables = {"VERIFY_URL": f"http://{stack.enter_context(live.Service(program, url)).address}"}
        report = score(program, kind, keys, variables, ROUTES)
    expect(not wrong(report) and report["asked"] >= 40, f"{report['right']} of {report['asked']}: {wrong(report)}")
    return f"{report['right']} of {report['asked']}"


def scores_badly(program, kind, status):
    """`catalogue run` tells what a thief can do at a server that compares no nonce."""
    keys = f"127.0.0.1:{harness.free_port()}"
    report = score(program, kind, keys, {"JWKS_URL": f"http://{keys}{KEYS}"}, status=status)
    found = wrong(report)
    expect(found.get("other-login") == found.get("no-nonce") == "A stolen token logs the thief in.", f"{found}")
    return f"{report['right']} of {report['asked']}"


def scores(program, kinds, naive):
    """The scores of all login servers, at the same time: the servers wait for the next fetch of keys, and compute little."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        judged = {name: pool.submit(scores_whole, program, kind) for name, kind in kinds.items() if kind}
        if naive:
            judged["naive"] = pool.submit(scores_badly, program, naive, 401)
        return "ok: " + ", ".join(f"{name} {result.result()}" for name, result in judged.items())


def nonce(service):
    return json.loads(harness.request(service.port, "POST", "/nonces", "{}", live.Service.fields)[1])["nonce"]


def wait_until_nonces_count(service, issuer):
    """Waits until nonces are accepted. A new service refuses those of its first seconds, since it may have forgotten their use."""
    def counts():
        of_login = nonce(service)
        question = json.dumps({"id_token": issuer.token(nonce=of_login), "nonce": of_login})
        return harness.request(service.port, "POST", "/verify", question, service.fields)[0] == 200

    expect(harness.until(counts, pause=0.2), "the service takes no nonce of its own")
