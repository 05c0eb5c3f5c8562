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


def command(name: str) -> str:
    marker = rf"^<!-- command: {re.escape(name)} -->\n+```(?:sh|bash|shell|console)?\n(.*?)^```$"
    blocks = re.findall(marker, documents(), re.MULTILINE | re.DOTALL)
    if len(blocks) != 1:
        sys.exit(f"{len(blocks)} fenced blocks under '<!-- command: {name} -->', expected exactly one")
    if not blocks[0].strip():
        sys.exit(f"the block under '<!-- command: {name} -->' is empty")
    return blocks[0]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: readme_command.py NAME")
    sys.stdout.write(command(sys.argv[1]))


if __name__ == "__main__":
    main()
