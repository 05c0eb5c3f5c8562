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
from login_kinds import LIFETIME, SHORT_SECONDS
from login_parts import FAULTS, App, LoginServer, Relay, answered, expect, logged_in

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
        answered("without a key", 500, app.call("POST", "/login/begin", {}), "not_configured")
        expect(not app.cookie and "VERIFY_KEY must be" in server.output(), server.output())


def good_login(server, issuer):
    app = App(server)
    login, nonce = app.begin()
    first = app.cookie
    flags = {f"{name}={value}" if value else name for name, value in app.attributes.items()}
    expect(first.startswith("__Host-session=") and len(first) >= 36, f"the cookie {first}")
    expect({"httponly", "secure", "samesite=lax", "path=/"} <= flags and "domain" not in app.attributes, f"{flags}")
    expect(0 <= LIFETIME - app.seconds() < MARGIN, f"the app keeps the cookie for {app.seconds()} s")
    expect(app.user() is None, "a login that is only begun names a user")
    person = json.loads(answered("good", 200, app.log_in(login, issuer.token(nonce=nonce, name="Jane Doe"))))
    expect((person["user"], person["name"]) == (live.SUBJECT, "Jane Doe"), f"good: {person}")
    expect(app.cookie != first, "the session kept its id")
    expect(app.user() == live.SUBJECT, "the session names nobody")
    expect(app.user(first) is None, "the id from before the login opens the session")
    # A foreign cookie opens no session and takes none away.
    expect(app.user(app.cookie[:-4] + "AAAA") is None and app.user() == live.SUBJECT, "an altered cookie")


def refreshes(server, issuer):
    app = logged_in(server, issuer)
    # The SDK's own refresh has a nonce that this server never saw.
    answered("a refresh", 200, app.refresh(issuer.token(nonce="of-the-sdk")))
    expect(0 <= LIFETIME - app.seconds() < MARGIN, f"after a refresh the app keeps the cookie for {app.seconds()} s")
    stranger = issuer.token(nonce="of-the-sdk", sub="1000200030004000")
    for more in {}, {"subject": "1000200030004000", "user": "1000200030004000"}:
        answered("another person's refresh", 401, app.refresh(stranger, **more), "subject_mismatch")
    answered("a refresh without a session", 401, App(server).refresh(issuer.token()))
    login, _ = app.begin()
    answered("a refresh of a login that is only begun", 401, App(server).refresh(issuer.token(), login=login))
    expect(app.user() == live.SUBJECT, "a refused refresh changed the session")


def short_sessions(kind, variables, issuer):
    """A session lasts for the lifetime after its login or its last refresh, and a login that is begun prolongs none."""
    with LoginServer(kind.short, variables) as server:
        app = logged_in(server, issuer)
        began = time.monotonic()
        while time.monotonic() - began <= SHORT_SECONDS + 1:
            answered("a refresh", 200, app.refresh(issuer.token(nonce="of-the-sdk")))
            expect(0 < app.seconds() <= SHORT_SECONDS, f"a refresh lasts {app.seconds()} s")
        while app.user():
            app.begin()
            expect(time.monotonic() - began < harness.START_SECONDS, "an old session is accepted")
        answered("the refresh of an old session", 401, app.refresh(issuer.token(nonce="of-the-sdk")))


def forged_cookies(server, issuer):
    """A cookie that is signed with another secret opens no session."""
    with LoginServer(server.kind, server.variables | {"SESSION_SECRET": "x" * 32}) as other:
        cookie = logged_in(other, issuer).cookie
    expect(App(server).user(cookie) is None, "a cookie of another secret is accepted")


def logs_out(server, issuer):
    app = logged_in(server, issuer)
    old = app.cookie
    answered("a logout", 200, app.call("POST", "/logout"))
    expect(not app.cookie and app.user() is None, f"after a logout there is {app.cookie}")
    left = app.user(old)
    expect(left == (None if server.kind.holds_sessions else live.SUBJECT), f"after the logout the old cookie names {left}")
    login, nonce = app.begin()
    app.call("POST", "/logout", {})
    answered("a login that was begun before the logout", 401, app.log_in(login, issuer.token(nonce=nonce)))
    expect(app.user() is None, "it began a session")
    answered("a logout without a session", 200, App(server).call("POST", "/logout", {}))


def same_token_twice(server, issuer):
    app = App(server)
    login, nonce = app.begin()
    first, token = app.cookie, issuer.token(nonce=nonce)
    answered("once", 200, app.log_in(login, token))
    answered("twice in one session", 401, app.log_in(login, token))
    thief = App(server)
    thief.cookie = first
    answered("twice with the cookie from before", 401, thief.log_in(login, token))
    expect(thief.user() != live.SUBJECT, "the thief is logged in")
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
            answered(f"{order}: the owner", 200, owner.log_in(login, token))
        for name in login, "", None:
            answered(f"{order}, without a session", 401, thief.log_in(name, token))
        own = thief.begin()[0]
        claimed = {"nonce": nonce, "raw_nonce": nonce, "issued_nonce": True, "subject": live.SUBJECT, "user": live.SUBJECT}
        for more in {}, claimed:
            answered(f"{order}, own login", 401, thief.log_in(own, token, **more), "nonce_mismatch")
        answered(f"{order}, the owner's login", 401, thief.log_in(login, token, **claimed))
        expect(thief.user() is None, f"{order}: the thief is logged in")
        if order == "thief first":
            answered(f"{order}: the owner", 200, owner.log_in(login, token))
        expect(owner.user() == live.SUBJECT, f"{order}: the owner is not logged in")


def expired_token(server, issuer):
    app, now = App(server), int(time.time())
    login, nonce = app.begin()
    answered("expired", 401, app.log_in(login, issuer.token(nonce=nonce, iat=now - 7200, exp=now - 3600)), "expired")
    for what in None, 7, {"a": 1}, "", "x.y", "EAABwzLixnjYBO0123456789abcdef", issuer.foreign(), issuer.token(nonce=nonce)[:-4]:
        status, text = app.log_in(app.begin()[0], what)
        expect(status in (400, 401), f"the token {what}: {status} {text}")
    expect(app.user() is None, "a bad token began a session")


def outage(server, issuer, relay, faults, unjudged):
    """Tests an outage. `unjudged` mints a token that cannot be judged while the relay fails."""
    app, other = logged_in(server, issuer), App(server)
    login, nonce = other.begin()
    for fault in faults:
        relay.fault = fault
        answered(f"{fault}: a login", 503, other.log_in(login, unjudged(nonce)))
        answered(f"{fault}: a refresh", 503, app.refresh(unjudged("of-the-sdk")))
        status, text = app.call("POST", "/login/begin", {})
        expect(status in (200, 503), f"{fault}: the beginning of a login: {status} {text}")
        expect(app.user() == live.SUBJECT, f"{fault}: it logged the person out")
        relay.fault = None
    answered("the same login after the outage", 200, other.log_in(login, issuer.token(nonce=nonce)))
    expect(other.user() == live.SUBJECT, "the login after the outage is no session")


def all_tests(server, issuer, relay, faults, unjudged):
    tests = [good_login, same_token_twice, stolen_token, expired_token, refreshes, logs_out]
    if "SESSION_SECRET" in server.kind.variables:
        tests.append(forged_cookies)
    for test in tests:
        test(server, issuer)
    outage(server, issuer, relay, faults, unjudged)
    return f"ok: {len(tests) + 3} tests"


def asks_service(kind, service, issuer):
    """Runs the tests for a server that asks the service."""
    with Relay(service.port) as relay:
        variables = {"VERIFY_URL": relay.address}
        refuses_wrong_settings(kind, variables)
        short_sessions(kind, variables, issuer)
        with LoginServer(kind, variables) as server:
            done = all_tests(server, issuer, relay, ["closed", "key", *FAULTS], lambda nonce: issuer.token(nonce=nonce))
            for told in "unauthorized_client", "client-key new":
                expect(told in server.output(), f"a wrong key of its own is not told: {server.output()}")
            return done


def judges_itself(kind, issuer, stranger):
    """Runs the tests for a server on the library, which cannot judge an unknown key without the source of keys."""
    refuses_wrong_settings(kind, {"SESSION_SECONDS": str(LIFETIME)})
    with Relay(issuer.port) as relay:
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


def wait_until_nonces_count(service, issuer):
    """Waits until nonces are accepted. A new service refuses those of its first seconds, since it may have forgotten their use."""
    def counts():
        of_login = service.nonce()
        question = json.dumps({"id_token": issuer.token(nonce=of_login), "nonce": of_login})
        return harness.request(service.port, "POST", "/verify", question, service.fields)[0] == 200

    expect(harness.until(counts, pause=0.2), "the service takes no nonce of its own")
