#!/usr/bin/env python3
"""Drives the page of `demo` and `inspect` with Chromium, by keyboard and by mouse: every scenario, narrow and wide, light and dark.

usage: page_test.py     (LIMITED_LOGIN names the program; without it, it is built)

Each scenario must end as its button says, with its verdict in view. No card may be empty for more than a quarter of its
height. Nothing may jump, complain on the console, or ask another origin for anything. The command that is shown must answer
the same in a shell. The checks begin on the first screen. An outage of Facebook ends with its page.
Then a page of another origin, and one by DNS rebinding, try to use the program.
"""

import json
import os
import sys

import harness
import live
from browser import Browser
from page_parts import (
    EMPTY, FOCUSED, HINTED, IN_VIEW, LAYOUT, NOBODY_CAN_TELL, VERDICT, Failure, above_the_fold, counted, explained, get, quiet,
    require, shows, tab_to, text_of,
)

SIZES = [(375, 667), (375, 812), (1280, 800)]
SCHEMES = ["light", "dark"]


def pasted(command, expected):
    """Runs a command of the page in a shell without our settings; the last answer must be the expected one."""
    run = harness.run(["bash", "-c", command], timeout=60, env={"PATH": os.environ["PATH"]})
    lines = run.stdout.strip().splitlines()
    require(lines, f"the command answers nothing: {run.stderr}\n{command}")
    code = json.loads(lines[-1]).get("code", "accepted")
    require(code == expected, f"pasted into a shell, the command answers {code} and not {expected}:\n{command}")


def judged(browser, name, where, wanted=None):
    """Checks the page after a scenario was played, with the wanted verdict if one is given."""
    shows(browser, name)
    require(browser.run(IN_VIEW), f"{where}: {name}: the verdict is not in view")
    status, code = browser.run(VERDICT)
    failed = browser.run("return document.querySelectorAll('#checks .failed').length")
    require(failed == (0 if code == "accepted" or status == "503" else 1), f"{where}: {name}: {failed} failed")
    empty = browser.run(EMPTY)
    require(not empty, f"{where}: {name}: empty for more than a quarter: {empty}")
    wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
    require(wide <= 0, f"{where}: {wide} px stand out at the side")
    counted(browser, f"{where}: {name}")
    shown = status if code == "accepted" else f"{status} {code}"
    require(wanted in (None, shown), f"{where}: {name} shows {shown}, not {wanted}")


def promises(base):
    return {one["name"]: one["expects"].rpartition("then ")[2] for one in get(base + "/state")["scenarios"]}


def opened(browser, base, size, scheme):
    browser.show(*size, scheme)
    browser.requests()
    browser.open(base + "/")


def scenarios(program, size, scheme):
    """Plays every scenario in its order, by arrow keys and Enter, then by mouse; then a custom login."""
    process = live.Demonstration(program)
    base = process.page
    browser = Browser()
    where = f"{size[0]} × {size[1]}, {scheme}"
    try:
        opened(browser, base, size, scheme)
        judged(browser, "good", f"{where}: opened", "200")
        above_the_fold(browser, size, where)
        layout = browser.run(LAYOUT)
        tab_to(browser, "good")
        played = []
        names = browser.run("return [...document.querySelectorAll('#scenarios [data-scenario]')].map((b) => b.dataset.scenario)")
        for place, first in enumerate(names):
            # Two scenarios take turns in one place; play both.
            for name in [first, "back"] if first == "away" else [first]:
                require(browser.run(FOCUSED) == name, f"{where}: the focus is on {browser.run(FOCUSED)}, not {name}")
                promised = promises(base)[name]
                for way in ["keyboard", "mouse"] if name not in ("away", "back") else ["keyboard"]:
                    browser.run("delete document.getElementById('verdict').dataset.scenario; scrollTo(0, 0)")
                    browser.press("Enter") if way == "keyboard" else browser.click(f"#scenarios [data-scenario={name}]")
                    judged(browser, name, f"{where}, by {way}", promised)
                    now = browser.run(LAYOUT)
                    require(now == layout, f"{where}: {name}: the page jumped: {layout} {now}")
                pasted(text_of(browser, "command"), promised[4:] or "accepted")
                played.append(name)
            if place + 1 < len(names):
                browser.press("Down")
        explained(browser, size, where)
        turns(browser, where)
        outage(browser, base, where)
        reloaded(browser, base, where)
        own_login(browser, where)
        kept(browser, where)
        unknown_keys(browser, where)
        hint_and_size(browser, where)
        quiet(browser, base, where)
        return len(played)
    finally:
        browser.close()
        process.stop()


def turns(browser, where):
    """Plays the two scenarios that take turns, by mouse."""
    for name in ["away", "back"]:
        browser.click(f"#scenarios [data-scenario={name}]")
        judged(browser, name, f"{where}, by mouse", "200")


def outage(browser, base, where):
    """Takes Facebook away, and expects it back by the bar's button, by a reload, and when the page is left."""
    shown = "document.getElementById('outage').checkVisibility()"
    for way in ["button", "reload", "leave"]:
        browser.click("#scenarios [data-scenario=away]")
        browser.wait(shown)
        judged(browser, "away", f"{where}, before {way}")
        rest = get(base + "/state").get("away_seconds", 0)
        require(0 < rest <= 60, f"{where}: Facebook is away for {rest} s")
        if way == "button":
            browser.click("#end")
            browser.wait(f"!{shown}")
        elif way == "reload":
            browser.reload()
            judged(browser, "good", f"{where}, after an outage", "200")
        else:
            browser.open("about:blank")
        is_back = harness.until(lambda: not get(base + "/state").get("away_seconds"), 30, 0.05)
        require(is_back, f"{where}: Facebook stays away after {way}")
    browser.open(base + "/")
    judged(browser, "good", where)


def reloaded(browser, base, where):
    """Checks that the address keeps the login, and that a link alone does not change the keys."""
    browser.click("#scenarios [data-scenario=expired]")
    judged(browser, "expired", where)
    browser.reload()
    judged(browser, "expired", f"{where}, loaded again", "401 expired")
    keys = get(base + "/state")["keys"]
    browser.open("about:blank")
    browser.open(base + "/#rotate")
    judged(browser, "good", f"{where}, by a link")
    require(get(base + "/state")["keys"] == keys, f"{where}: a link rotated the keys")
    require("named" in keys and "…" in keys, f"{where}: the keys are not told by name: {keys}")


def kept(browser, where):
    """Checks that a custom login and its fields stay the same after a reload."""
    browser.reload()
    browser.wait("document.getElementById('verdict').dataset.scenario?.startsWith('fault:')")
    fields = browser.run("return ['app_id', 'nonce'].map((name) => document.forms.login.elements[name].value)")
    require(fields == ["999999999999999", "my-own-nonce"], f"{where}: a reload keeps {fields}")
    require(browser.run(VERDICT) == ["401", "invalid_audience"], f"{where}: loaded again: {browser.run(VERDICT)}")


def hint_and_size(browser, where):
    browser.run(HINTED + "delete document.getElementById('verdict').dataset.scenario;"
                "document.querySelector('#scenarios [data-scenario=expired]').click()")
    shows(browser, "expired")
    cure = text_of(browser, "cure")
    require(cure == "What to do: Do <b>this</b>.", f"{where}: the hint is shown as {cure!r}")
    browser.run("document.forms.login.elements.nonce.value = 'x'.repeat(22_000);"
                "document.forms.login.elements.scenario.value = 'good';"
                "delete document.getElementById('verdict').dataset.scenario; document.forms.login.requestSubmit()")
    browser.wait("document.getElementById('verdict').dataset.scenario || document.getElementById('status').textContent.length > 3")
    shown = browser.run(VERDICT)
    require(shown == ["413", "body_too_large"], f"{where}: a nonce of 22 KB shows {shown}")


def own_login(browser, where):
    """Fills in the form: another app's id, a custom nonce, and the last fault of the list."""
    tab_to(browser, "summary")
    if not browser.run("return document.getElementById('own').open"):
        browser.press("Enter")
    tab_to(browser, "app_id")
    browser.press("999999999999999")
    tab_to(browser, "nonce")
    browser.press("my-own-nonce")
    tab_to(browser, "permissions")
    browser.press("Tab")
    before = text_of(browser, "code")
    browser.press("Tab", "Enter")
    browser.wait("document.getElementById('code').textContent !== arguments[0]", before)
    status, code = browser.run(VERDICT)
    require((status, code) == ("401", "invalid_audience"), f"{where}: a login of one's own: {status} {code}")
    warning = text_of(browser, "warning")
    require("fewer than 16 characters (12)" in warning, f"{where}: a nonce of 12 characters has the warning {warning!r}")


def unknown_keys(browser, where):
    """Checks that the page shows the cure of a refused token, and shows none if the service has no verdict."""
    for before, wanted, has_cure in [("", ["401", "unknown_key"], True), (NOBODY_CAN_TELL, ["503", "keys_unavailable"], False)]:
        browser.run(before + "delete document.getElementById('verdict').dataset.scenario;"
                    "document.querySelector('#scenarios [data-scenario=unknown-key]').click()")
        shows(browser, "unknown-key")
        shown = browser.run(VERDICT)
        cure = text_of(browser, "cure")
        require(shown == wanted or before == "", f"{where}: {shown}, not {wanted}")
        require((cure != "") == has_cure or shown[0] != wanted[0], f"{where}: {shown} shows the cure {cure!r}")


def inspect(program, size, scheme):
    """Pastes a token, judges it, and judges it again with the wrong nonce."""
    issuer = live.Issuer(program)
    keys, token = issuer.jwks_url, issuer.token(name="Jane Doe")
    page = live.Process([program, "inspect"], {"LIMITED_LOGIN_APP_IDS": live.APP_ID, "LIMITED_LOGIN_JWKS_URLS": keys})
    base = page.find(r"Open the page: (http://\S+)/")
    browser = Browser()
    where = f"inspect, {size[0]} × {size[1]}, {scheme}"
    try:
        opened(browser, base, size, scheme)
        browser.wait("document.querySelector('#checks li')")
        tab_to(browser, "id_token")
        browser.press(token)
        browser.click("#inspect button")
        browser.wait("document.getElementById('verdict').className === 'good'")
        made = browser.run("return [...document.querySelectorAll('#checks li')].map((row) => row.className)")
        require(sorted(set(made)) == ["not_asked", "passed"] and made.count("not_asked") == 3, f"{where}: a token alone: {made}")
        counted(browser, where)
        browser.run("scrollTo(0, 0); document.getElementById('inspect').elements.id_token.focus()")
        tab_to(browser, "binding")
        browser.press("nonce")
        tab_to(browser, "value")
        browser.press("n-1", "Enter")
        browser.wait("document.getElementById('detail').textContent.includes('belongs to this login')")
        warning = text_of(browser, "warning")
        require("fewer than 16 characters (3)" in warning, f"{where}: the nonce n-1 has the warning {warning!r}")
        require(browser.run(IN_VIEW), f"{where}: the verdict is not in view")
        require(not browser.run(EMPTY), f"{where}: empty for more than a quarter: {browser.run(EMPTY)}")
        command = text_of(browser, "command")
        pasted(command.replace("limited-login verify", f"{program} verify --json"), "accepted")
        layout = browser.run(LAYOUT)
        browser.press("2", "Enter")
        browser.wait("document.getElementById('code').textContent === 'nonce_mismatch'")
        require(browser.run(LAYOUT) == layout, f"{where}: the page jumped")
        require(browser.run(IN_VIEW), f"{where}: the verdict of a refusal is not in view")
        browser.click("[name=at]")
        browser.press("1700000000")
        browser.click("#inspect button")
        browser.wait("document.getElementById('code').textContent === 'not_yet_valid'")
        hostile_tokens(browser, where)
        wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
        require(wide <= 0, f"{where}: {wide} px stand out at the side")
        quiet(browser, base, where)
    finally:
        browser.close()
        page.stop()
        issuer.stop()


def encoded(text):
    return harness.base64url(text.encode())


# Hostile texts in place of a token: the page must show each as text, and only a limited part of it.
MARKUP = '<img src=x onerror="document.title=1"><script>document.title=1</script><b>'
HOSTILE = {
    "markup in place of a token": MARKUP,
    "markup in the claims": f"{encoded('{}')}.{encoded(json.dumps({MARKUP: MARKUP}))}.AAAA",
    "brackets within brackets": f"{encoded('{}')}.{encoded('[' * 4_000)}.AAAA",
    "objects within objects": f"{encoded('{' + chr(34) + 'a' + chr(34) + ':' * 1_500)}.{encoded('{' * 3_000)}.AAAA",
    "longer than any token": f"{encoded('[' * 5_500)}.{encoded('[' * 5_500)}.AAAA",
}
# A body holds 12,000 brackets. They take 500,000 characters if each has a line of its own with 40 spaces before it.
SHOWN_CHARACTERS = 1_000_000


def hostile_tokens(browser, where):
    for name, token in HOSTILE.items():
        browser.run(
            "const form = document.getElementById('inspect'); form.elements.id_token.value = arguments[0];"
            "document.getElementById('token').replaceChildren(); form.requestSubmit();", token,
        )
        browser.wait("document.getElementById('token').textContent === arguments[0]", token)
        require(browser.run(VERDICT)[0] == "refused", f"{where}: {name}: {browser.run(VERDICT)}")
        shown = browser.run("return document.querySelector('main').textContent.length")
        require(shown <= SHOWN_CHARACTERS, f"{where}: {name}: the page shows {shown} characters")
        made = browser.run("return document.querySelectorAll('main img, main script, main b:not(#steps b)').length")
        require(made == 0 and browser.run("return document.title") == "limited-login", f"{where}: {name}: became a part")


ATTACK = """<!doctype html><title>attack</title><script>
const target = 'TARGET';
const tries = [];
for (const path of ['/run', '/rotate', '/tokens', '/state', '/']) {
  for (const mode of ['cors', 'no-cors']) {
    for (const type of ['text/plain', 'application/json']) {
      const given = path === '/state' || path === '/' ? {} : {
        method: 'POST', headers: {'Content-Type': type}, body: '{"scenario":"rotate"}'};
      tries.push(fetch(target + path, {mode, ...given}).then(async (answer) => [path, mode, answer.type, await answer.text()],
        () => [path, mode, 'blocked', '']));
    }
  }
}
const form = document.createElement('form');
form.method = 'POST'; form.enctype = 'text/plain'; form.action = target + '/rotate'; form.target = 'frame';
const frame = document.createElement('iframe'); frame.name = 'frame';
document.documentElement.append(frame, form); form.submit();
frame.addEventListener('load', () => Promise.all(tries).then((all) => { window.outcome = all; }));
</script>"""


def foreign_pages(program):
    """Opens a page of another origin, and one by DNS rebinding, in a real browser."""
    process = live.Demonstration(program)
    base = process.page
    port = base.rsplit(":", 1)[1]
    attacker = harness.serve(lambda _: ATTACK.replace("TARGET", base).encode(), "text/html")
    # The browser resolves the name as an attacker's name server would.
    browser = Browser("--host-resolver-rules=MAP evil.example 127.0.0.1")
    try:
        before = get(base + "/state")["keys"]
        for name in ["127.0.0.1", "localhost", "evil.example"]:
            browser.open(f"http://{name}:{attacker.server_port}/")
            outcome = browser.wait("window.outcome")
            read = [one for one in outcome if one[2] != "blocked" and one[3]]
            require(not read, f"a page of {name}:{attacker.server_port} reads {read}")
        require(get(base + "/state")["keys"] == before, "a page of another origin rotated the keys")
        browser.open(f"http://evil.example:{port}/")
        text = browser.run("return document.documentElement.textContent")
        require("127.0.0.1, [::1] and localhost alone" in text, f"by DNS rebinding the page answers {text[:200]}")
        for path in ["/state", "/tokens", "/login"]:
            status = browser.run(f"const q = new XMLHttpRequest(); q.open('GET', '{path}', false); q.send(); return q.status")
            require(status == 421, f"by DNS rebinding {path} answers {status}")
    finally:
        browser.close()
        attacker.shutdown()
        process.stop()


def main():
    if not harness.installed("chromedriver"):
        return 0
    program = harness.build()
    try:
        for size in SIZES:
            for scheme in SCHEMES:
                count = scenarios(program, size, scheme)
                inspect(program, size, scheme)
                print(f"page: {size[0]} × {size[1]}, {scheme}: {count} scenarios by keyboard and by mouse, each command in "
                      "a shell, a login of one's own and inspect", flush=True)
        foreign_pages(program)
        print("page: another origin and DNS rebinding are refused in the browser")
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
