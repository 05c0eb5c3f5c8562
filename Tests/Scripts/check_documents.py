#!/usr/bin/env python3
"""Checks the documents against four rules.

  1. No long sentence stands twice in the Markdown files, word for word or nearly so: each fact has one place.
  2. Every relative link leads to an existing file, and its anchor to a heading.
  3. The README has at most 130 lines.
  4. Every page about a login's nonce has the sentence `NONCE_RULE` about the origin of a nonce.
"""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
README_LINES = 130
# A backend that takes the nonce from the token's own request checks nothing, so this sentence stands on each page on purpose.
NONCE_RULE = (
    "Take the nonce from your own session or store: every token shows its nonce, so one that comes with the token proves nothing."
)
NONCE_PAGES = [
    "README.md", "config/llms.txt", "Tests/Examples/README.md", "Sources/CLLDocuments/openapi.json", "Sources/limited-login/Verify.swift",
    "Sources/LimitedLogin/LimitedLogin.docc/GettingStarted.md", "Sources/LimitedLogin/LimitedLogin.docc/LimitedLogin.md",
    "Sources/LLService/LLService.docc/API.md",
    "Sources/LLService/LLService.docc/Nonces.md",
    "Sources/LLService/LLService.docc/Wrappers.md",
]
# Sentences with fewer words may be alike.
LONG_WORDS = 14
# Two sentences are alike if they share this part of their runs of `RUN_WORDS` words.
RUN_WORDS = 5
ALIKE = 0.5


def documents(root: pathlib.Path) -> list[pathlib.Path]:
    return sorted(
        path for path in root.rglob("*.md")
        if not any(part.startswith(".build") or part == ".git" for part in path.relative_to(root).parts)
    )


def paragraphs(text: str):
    """Each paragraph, list item and table row as one line, with the number of its first line; code blocks are left out."""
    number, gathered, is_code = 0, "", False
    for position, line in enumerate(text.split("\n") + [""], 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        begins = is_code or not line.strip() or re.match(r"\s*([-*|#`<]|\d+\.)", line)
        if begins and gathered:
            yield number, gathered
            gathered = ""
        if not is_code and line.strip() and not line.lstrip().startswith("```"):
            number = number if gathered else position
            gathered += " " + line
    if gathered:
        yield number, gathered


def plain(text: str) -> str:
    """The text without line breaks and the backslashes that continue a Swift string."""
    return " ".join(text.replace("\\\n", " ").split())


def without_nonce_rule(root: pathlib.Path, pages: list[str]) -> list[str]:
    return [
        f"{page}: does not say: {NONCE_RULE}" for page in pages
        if NONCE_RULE not in plain((root / page).read_text(encoding="utf-8"))
    ]


def sentences(text: str):
    """The long sentences of each paragraph as their words, with the number of the paragraph's first line."""
    for number, paragraph in paragraphs(text):
        paragraph = plain(paragraph).replace(NONCE_RULE, "")
        for sentence in re.split(r"[.:!?]\s", paragraph):
            words = re.findall(r"\w+", sentence.lower())
            if len(words) >= LONG_WORDS:
                yield number, words


def repetitions(root: pathlib.Path) -> list[str]:
    """Pairs of long sentences that share most of their runs of words."""
    seen: dict[tuple[str, ...], list[int]] = {}
    places, sizes, found = [], [], []
    for file in documents(root):
        # A test compares each row of this table with the service, and one hint of the service fits several mistakes.
        if file.name == "Mistakes.md":
            continue
        for number, words in sentences(file.read_text(encoding="utf-8")):
            runs = {tuple(words[at : at + RUN_WORDS]) for at in range(len(words) - RUN_WORDS + 1)}
            shared: dict[int, int] = {}
            for run in runs:
                for other in seen.get(run, []):
                    shared[other] = shared.get(other, 0) + 1
            for other, count in shared.items():
                if count >= ALIKE * min(len(runs), sizes[other]):
                    found.append(f"{file.relative_to(root)}:{number}: says what {places[other]} says")
            for run in runs:
                seen.setdefault(run, []).append(len(places))
            places.append(f"{file.relative_to(root)}:{number}")
            sizes.append(len(runs))
    return found


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def broken_links(root: pathlib.Path) -> list[str]:
    found = []
    for file in documents(root):
        text = re.sub(r"```.*?```", "", file.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", text):
            path, _, name = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            place = (file.parent / path).resolve() if path else file
            if not place.exists():
                found.append(f"{file.relative_to(root)}: {target} leads nowhere")
            elif name and name not in {
                anchor(line.lstrip("#")) for line in place.read_text(encoding="utf-8").split("\n") if line.startswith("#")
            }:
                found.append(f"{file.relative_to(root)}: {target}: no such heading")
    return found


def findings(root: pathlib.Path, nonce_pages: list[str]) -> list[str]:
    lines = (root / "README.md").read_text(encoding="utf-8").count("\n")
    too_long = [f"README.md has {lines} lines, {README_LINES} at most"] if lines > README_LINES else []
    return repetitions(root) + broken_links(root) + too_long + without_nonce_rule(root, nonce_pages)


def self_test() -> None:
    """Checks that each rule finds its planted fault."""
    reload = (
        "At SIGHUP the service reads its file again and puts the new `app_ids`, `issuers`{} and the content of three files in "
        "force, for every request that begins from then on; no connection is dropped.\n"
    )
    planted = {
        "twice": ("# A\n" + reload.format("") + reload.format(", `replay`"), "says what"),
        "link": ("# A\n[there](b.md)\n", "leads nowhere"),
        "anchor": ("# A\n[there](#b)\n", "no such heading"),
        "long": ("# A\n" + "x\n" * README_LINES, "at most"),
        "nonce": ("# A\nTake the nonce from the request.\n", "does not say"),
        "nothing": ("# A\n[there](#a)\n" + reload.format(""), None),
    }
    for name, (text, expected) in planted.items():
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "README.md").write_text(text)
            found = findings(pathlib.Path(folder), ["README.md"] if name == "nonce" else [])
        if (expected is None) != (not found) or (expected and expected not in found[0]):
            sys.exit(f"self-test {name}: expected {expected}, found {found}")
    print(f"{len(planted)} planted documents judged rightly")


def main() -> None:
    self_test()
    found = findings(ROOT, NONCE_PAGES)
    print("\n".join(found) or f"{len(documents(ROOT))} Markdown files: nothing stands twice, every link leads somewhere")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
