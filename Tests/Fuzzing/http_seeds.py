#!/usr/bin/env python3
"""Writes the shared HTTP cases as seeds into a folder, behind the one byte that steers a fuzz target."""
import glob
import json
import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(ROOT, "..", "..", "..", "shared", "http-cases")

count = 0
for path in sorted(glob.glob(os.path.join(CASES, "*.json"))):
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    for case in cases:
        raw = case["raw"].encode("latin-1")
        if len(raw) > 4000:
            continue
        with open(os.path.join(sys.argv[1], f"seed-{count:04d}"), "wb") as seed:
            seed.write(bytes([count % 256]) + raw)
        count += 1
print(f"{count} seeds" if count else "SKIPPED: no seeds, ../shared/http-cases is not there")
