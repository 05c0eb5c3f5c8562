"""Parts of the page's test: scripts that look into the page, and the demonstration as a process."""

import json
import re
import urllib.parse

import harness
from login_parts import Failure, expect as require

# The positions of the clicked parts and of the verdict, which no verdict may change.
LAYOUT = "return [...document.querySelectorAll('nav > section'), document.getElementById('verdict')].map((part) => " \
    "[part.id || part.querySelector('h2, summary').textContent, part.offsetTop])"
# True if the whole verdict is within the window.
IN_VIEW = """const box = document.getElementById('verdict').getBoundingClientRect();
return box.top >= 0 && box.bottom <= innerHeight"""
# The cards with an empty stretch of more than a quarter of their height between lines of text, without the padding.
EMPTY = """return [...document.querySelectorAll('main section, nav > section')].filter((card) => card.offsetHeight).map((card) => {
  const style = getComputedStyle(card), box = card.getBoundingClientRect();
  const top = box.top + parseFloat(style.paddingTop), bottom = box.bottom - parseFloat(style.paddingBottom);
  const filled = [[top, top], [bottom, bottom]];
  for (const field of card.querySelectorAll('input, select, textarea, button')) {
    const area = field.getBoundingClientRect();
    if (field.checkVisibility()) filled.push([area.top, area.bottom]);
  }
  const texts = document.createTreeWalker(card, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    if (!texts.currentNode.textContent.trim() || !texts.currentNode.parentElement.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(texts.currentNode);
    for (const line of range.getClientRects()) {
      if (line.top < bottom) filled.push([line.top, Math.min(line.bottom, bottom)]);
    }
  }
  filled.sort((one, other) => one[0] - other[0]);
  let end = top, gap = 0;
  for (const [from, to] of filled) {
    gap = Math.max(gap, from - end);
    end = Math.max(end, to);
  }
  return [card.id || card.querySelector('h2, summary').textContent, gap / box.height];
}).filter(([, share]) => share > 0.25)"""
VERDICT = "return [document.getElementById('status').textContent, document.getElementById('code').textContent]"
FOCUSED = "return document.activeElement?.dataset?.scenario ?? document.activeElement?.name ?? " \
    "document.activeElement?.tagName.toLowerCase()"
# Gives the next answer a hint with markup, which the page must show as text.
HINTED = """const real = window.fetch;
window.fetch = async (...given) => {
  window.fetch = real;
  const answer = JSON.stringify({code: 'expired', detail: 'It is over.', hint: 'Do <b>this</b>.'});
  return Response.json({...await (await real(...given)).json(), status: '401', answer});
};"""
# Makes the service's next answer a 503 without a verdict, as after too many unknown keys; the report stays.
NOBODY_CAN_TELL = """const real = window.fetch;
window.fetch = async (...given) => {
  window.fetch = real;
  const answer = JSON.stringify({code: 'keys_unavailable', detail: 'The keys could not be fetched.'});
  return Response.json({...await (await real(...given)).json(), status: '503', answer});
};"""


def get(url):
    place = urllib.parse.urlsplit(url)
    return json.loads(harness.request(place.port, "GET", place.path)[1])


def text_of(browser, part):
    return browser.run(f"return document.getElementById('{part}').textContent")


def shows(browser, scenario):
    """Waits for the verdict of a scenario."""
    browser.wait("document.getElementById('verdict').dataset.scenario === arguments[0]", scenario)


def tab_to(browser, wanted, limit=30):
    """Presses Tab until the wanted element has the focus."""
    for _ in range(limit):
        browser.press("Tab")
        if browser.run(FOCUSED) == wanted:
            return
    raise Failure(f"Tab does not reach {wanted}")


def quiet(browser, base, where):
    """Checks that the console has no complaint, and that every request went to the page's own origin."""
    complaints = [entry for entry in browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    require(not complaints, f"{where}: the console says {complaints}")
    foreign = [url for url in browser.requests() if not url.startswith(base + "/")]
    require(not foreign, f"{where}: asked for {foreign}")


def counted(browser, where):
    """Checks that the sentence about the checks counts those in the list, without the ones that were not asked for."""
    which = browser.run("return document.getElementById('which').textContent.split(',')[0]")
    said = [int(number) for number in re.findall(r"\d+", which)]
    asked = browser.run("return document.querySelectorAll('#checks li:not(.not_asked)').length")
    require(not said or said[-1] == asked, f"{where}: the verdict counts {said}, the list has {asked} checks")


def above_the_fold(browser, size, where):
    """Checks that the list of checks begins on the first screen, and on a wide one also ends there."""
    browser.run("scrollTo(0, 0)")
    shown, count = browser.run("const rows = [...document.querySelectorAll('#checks li')];"
                               "return [rows.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length, rows.length]")
    wanted = count if size[0] > 900 else 6
    require(shown >= wanted, f"{where}: {shown} of {count} checks are above the fold, not {wanted}")


def explained(browser, size, where):
    """Checks that each button of a narrow page has its sentence, whole and of a readable size."""
    poor = browser.run("""return [...document.querySelectorAll('#scenarios .hint')].filter((hint) => {
      const box = hint.getBoundingClientRect(), card = hint.parentElement.getBoundingClientRect();
      return !hint.textContent || parseFloat(getComputedStyle(hint).fontSize) < 12 || box.bottom > card.bottom || box.height === 0;
    }).map((hint) => hint.textContent)""")
    require(size[0] > 900 or not poor, f"{where}: these sentences are not readable: {poor}")
