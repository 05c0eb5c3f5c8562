#!/usr/bin/env python3
"""Writes seeds into a folder: the shared HTTP cases, and requests that the fuzzed handler parks. The first byte of each seed
steers the fuzz target."""
import glob
import json
import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(ROOT, "..", "..", "..", "shared", "http-cases")
PARKED = b"GET /park HTTP/1.1\r\nHost: a\r\n\r\n"

# These first bytes choose several piece sizes, time that passes or not, and the peer's end.
for script in (0x00, 0x02, 0x08, 0x72, 0xF0):
    with open(os.path.join(sys.argv[1], f"parked-{script:02x}"), "wb") as seed:
        seed.write(bytes([script]) + PARKED * 2)

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
