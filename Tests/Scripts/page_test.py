#!/usr/bin/env python3
"""Drives the page of `demo` and `inspect` with Chromium, by the keyboard alone: every scenario, narrow and wide, light and dark.

usage: page_test.py [--screenshots FOLDER]     (LIMITED_LOGIN names the program; without it, it is built)

Each scenario must end as its button says; nothing may jump, complain on the console, or ask another origin for anything.
Then a page of another origin, and one whose name was made to mean this machine, try to use it.
"""

import argparse
import base64
import http.server
import json
import pathlib
import shutil
import sys
import threading
import urllib.request

import live
from browser import Browser

SIZES = {375: 812, 1280: 900}
SCHEMES = ["light", "dark"]
# Where each part of the page stands, and how tall it is.
LAYOUT = "return [...document.querySelectorAll('main > section, nav > section')].map((part) => " \
    "[part.id || part.querySelector('h2, summary').textContent, part.offsetTop, part.offsetHeight])"
VERDICT = "return [document.getElementById('status').textContent, document.getElementById('code').textContent]"
FOCUSED = "return document.activeElement?.dataset?.scenario ?? document.activeElement?.name ?? " \
    "document.activeElement?.tagName.toLowerCase()"


class Failure(Exception):
    pass


def require(holds, sentence):
    if not holds:
        raise Failure(sentence)


def get(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        return json.load(answer)


def demo(program):
    process = live.Process([
        program, "demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--issuer-listen", "127.0.0.1:0",
    ])
    base = process.find(r"Open the page:\s+(http://\S+)/")
    process.find(r"(Control-C)")
    return process, base


def tab_to(browser, wanted, limit=30):
    """Presses Tab until the focus is where it is wanted."""
    for _ in range(limit):
        browser.press("Tab")
        if browser.run(FOCUSED) == wanted:
            return
    raise Failure(f"Tab does not reach {wanted}")


def quiet(browser, base, where):
    """No complaint on the console, and no request but to the page's own origin."""
    complaints = [entry for entry in browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    require(not complaints, f"{where}: the console says {complaints}")
    foreign = [url for url in browser.requests() if not url.startswith(base + "/")]
    require(not foreign, f"{where}: asked for {foreign}")


def scenarios(program, width, scheme, folder):
    """Every scenario in its order, by arrow keys and Enter; then a login of one's own."""
    process, base = demo(program)
    browser = Browser()
    where = f"{width} px, {scheme}"
    try:
        browser.show(width, SIZES[width], scheme)
        browser.requests()
        browser.open(base + "/")
        browser.wait("document.querySelector('#checks li')")
        tab_to(browser, "good")
        played = []
        layout = None
        names = browser.run("return [...document.querySelectorAll('[data-scenario]')].map((b) => b.dataset.scenario)")
        for place, first in enumerate(names):
            # Of two that take turns in one place, both are played.
            for name in [first, "back"] if first == "away" else [first]:
                require(browser.run(FOCUSED) == name, f"{where}: the focus is on {browser.run(FOCUSED)}, not {name}")
                promised = {one["name"]: one["expects"] for one in get(base + "/state")["scenarios"]}[name]
                browser.press("Enter")
                browser.wait("document.getElementById('verdict').dataset.scenario === arguments[0]", name)
                status, code = browser.run(VERDICT)
                shown = status if code == "accepted" else f"{status} {code}"
                require(shown == promised, f"{where}: {name} shows {shown}, promised was {promised}")
                failed = browser.run("return document.querySelectorAll('#checks .failed').length")
                require(failed == (0 if code == "accepted" or status == "503" else 1), f"{where}: {name}: {failed} failed")
                now = browser.run(LAYOUT)
                layout = layout or now
                require(now == layout, f"{where}: {name}: the page jumped: "
                        f"{[pair for pair in zip(layout, now) if pair[0] != pair[1]]}")
                browser.screenshot(folder / f"{width}-{scheme}-{name}.png")
                played.append(name)
            if place + 1 < len(names):
                browser.press("Down")
        own_login(browser, where)
        browser.screenshot(folder / f"{width}-{scheme}-own.png")
        unknown_keys(browser, where)
        wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
        require(wide <= 0, f"{where}: {wide} px stand out at the side")
        quiet(browser, base, where)
        return len(played)
    finally:
        browser.close()
        process.stop()


def own_login(browser, where):
    """The form: another app's id, a nonce of one's own, and the last fault of the list."""
    tab_to(browser, "summary")
    if not browser.run("return document.getElementById('own').open"):
        browser.press("Enter")
    tab_to(browser, "app_id")
    browser.press("999999999999999")
    tab_to(browser, "nonce")
    browser.press("my-own-nonce")
    tab_to(browser, "permissions")
    browser.press("Tab")
    before = browser.run("return document.getElementById('code').textContent")
    browser.press("Tab", "Enter")
    browser.wait("document.getElementById('code').textContent !== arguments[0]", before)
    status, code = browser.run(VERDICT)
    require((status, code) == ("401", "invalid_audience"), f"{where}: a login of one's own: {status} {code}")


# Has the service's next answer be that nobody can tell, as when too many unknown keys were named; the report stays.
NOBODY_CAN_TELL = """const real = window.fetch;
window.fetch = async (...given) => {
  window.fetch = real;
  const answer = JSON.stringify({code: 'keys_unavailable', detail: 'The keys could not be fetched.'});
  return Response.json({...await (await real(...given)).json(), status: '503', answer});
};"""


def unknown_keys(browser, where):
    """The cure of a token that is refused is not shown where the service cannot tell whether it is."""
    for before, wanted, has_cure in [("", ["401", "unknown_key"], True), (NOBODY_CAN_TELL, ["503", "keys_unavailable"], False)]:
        browser.run(before + "delete document.getElementById('verdict').dataset.scenario;"
                    "document.querySelector('[data-scenario=unknown-key]').click()")
        browser.wait("document.getElementById('verdict').dataset.scenario === 'unknown-key'")
        shown = browser.run(VERDICT)
        cure = browser.run("return document.getElementById('cure').textContent")
        require(shown == wanted or before == "", f"{where}: {shown}, not {wanted}")
        require((cure != "") == has_cure or shown[0] != wanted[0], f"{where}: {shown} shows the cure {cure!r}")


def inspect(program, width, scheme, folder):
    """A token is pasted, judged, and judged again with the wrong nonce."""
    issuer = live.Process([program, "issuer", "--listen", "127.0.0.1:0"])
    keys = issuer.find(r"JWK Set: (\S+)")
    token = json.loads(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        keys.split("/.well-known")[0] + "/tokens", data=b'{"nonce": "n-1", "name": "Jane Doe"}', timeout=10,
    ).read())["id_token"]
    page = live.Process([program, "inspect"], {"LIMITED_LOGIN_APP_IDS": live.APP_ID, "LIMITED_LOGIN_JWKS_URLS": keys})
    base = page.find(r"Open the page: (http://\S+)/")
    browser = Browser()
    where = f"inspect, {width} px, {scheme}"
    try:
        browser.show(width, SIZES[width], scheme)
        browser.requests()
        browser.open(base + "/")
        browser.wait("document.querySelector('#checks li')")
        tab_to(browser, "id_token")
        browser.press(token)
        tab_to(browser, "value")
        browser.press("n-1", "Enter")
        browser.wait("document.getElementById('verdict').className === 'good'")
        browser.screenshot(folder / f"{width}-{scheme}-inspect.png")
        layout = browser.run(LAYOUT)
        browser.press("2", "Enter")
        browser.wait("document.getElementById('code').textContent === 'nonce_mismatch'")
        require(browser.run(LAYOUT) == layout, f"{where}: the page jumped")
        browser.screenshot(folder / f"{width}-{scheme}-inspect-refused.png")
        hostile_tokens(browser, where)
        wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
        require(wide <= 0, f"{where}: {wide} px stand out at the side")
        quiet(browser, base, where)
    finally:
        browser.close()
        page.stop()
        issuer.stop()


def encoded(text):
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


# Tokens that were made to be pasted: what the page shows of each stays text, and little of it.
MARKUP = '<img src=x onerror="document.title=1"><script>document.title=1</script><b>'
HOSTILE = {
    "markup in place of a token": MARKUP,
    "markup in the claims": f"{encoded('{}')}.{encoded(json.dumps({MARKUP: MARKUP}))}.AAAA",
    "brackets within brackets": f"{encoded('{}')}.{encoded('[' * 4_000)}.AAAA",
    "objects within objects": f"{encoded('{' + chr(34) + 'a' + chr(34) + ':' * 1_500)}.{encoded('{' * 3_000)}.AAAA",
    "longer than any token": f"{encoded('[' * 5_500)}.{encoded('[' * 5_500)}.AAAA",
}
# 12,000 brackets, which is what fits into a body, take 500,000 where each has a line of its own and 40 spaces before it.
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
    """A page of another origin, and one by DNS rebinding, in a real browser."""
    process, base = demo(program)
    port = base.rsplit(":", 1)[1]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            text = ATTACK.replace("TARGET", base).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    attacker = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=attacker.serve_forever, daemon=True).start()
    # The browser believes the name; this is what an attacker's name server would tell it.
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
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--screenshots", default=live.ROOT / ".build/page", type=pathlib.Path)
    folder = parser.parse_args().screenshots
    if not shutil.which("chromedriver"):
        print("SKIPPED: chromedriver is not installed")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    program = live.build()
    try:
        for width in SIZES:
            for scheme in SCHEMES:
                count = scenarios(program, width, scheme, folder)
                inspect(program, width, scheme, folder)
                print(f"page: {width} px, {scheme}: {count} scenarios, a login of one's own and inspect, by the keyboard",
                      flush=True)
        foreign_pages(program)
        print("page: another origin and DNS rebinding are refused in the browser")
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    print(f"page: screenshots are in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
