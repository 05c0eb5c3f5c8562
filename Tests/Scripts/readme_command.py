#!/usr/bin/env python3
"""Prints the command of README.md that stands under `<!-- command: NAME -->`.

usage: readme_command.py NAME [README.md]

The README is the one place where a command is written down; whatever runs it asks here.
"""

import pathlib
import re
import sys


def command(name: str, readme: str) -> str:
    marker = rf"^<!-- command: {re.escape(name)} -->\n+```(?:sh|bash|shell|console)?\n(.*?)^```$"
    blocks = re.findall(marker, readme, re.MULTILINE | re.DOTALL)
    if len(blocks) != 1:
        sys.exit(f"README.md: {len(blocks)} fenced blocks under '<!-- command: {name} -->', expected exactly one")
    if not blocks[0].strip():
        sys.exit(f"README.md: the block under '<!-- command: {name} -->' is empty")
    return blocks[0]


def main() -> None:
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("usage: readme_command.py NAME [README.md]")
    root = pathlib.Path(__file__).resolve().parents[2]
    path = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else root / "README.md"
    sys.stdout.write(command(sys.argv[1], path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
