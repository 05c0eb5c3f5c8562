#!/usr/bin/env python3
"""Prints the command that stands under `<!-- command: NAME -->` in README.md or the service's documentation.

usage: readme_command.py NAME

A command is written in one place. The scripts that run it read it with this one.
"""

import pathlib
import re
import sys


ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "Sources/LLService/LLService.docc").glob("*.md"))]


def documents() -> str:
    """The text of all documents that have commands."""
    return "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)


def marked(mark: str, text: str) -> str:
    """The fenced block under `<!-- MARK -->`."""
    blocks = re.findall(rf"^<!-- {re.escape(mark)} -->\n+```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if len(blocks) != 1 or not blocks[0].strip():
        sys.exit(f"{len(blocks)} fenced blocks under '<!-- {mark} -->', expected exactly one, with a text")
    return blocks[0]


def command(name: str) -> str:
    return marked(f"command: {name}", documents())


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: readme_command.py NAME")
    sys.stdout.write(command(sys.argv[1]))


if __name__ == "__main__":
    main()
