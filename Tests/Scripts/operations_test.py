#!/usr/bin/env python3
"""Runs the service as an operator would, with real processes around it, and fails if a check does not hold.

Usage: operations_test.py [NAME...]; by default all:
  metrics      promtool reads the metrics and the rules
  gateways     nginx and HAProxy by TLS
  renewals     certificates and callers' keys renewed under full load
  forged_keys  a flood of made-up key IDs, directly and behind nginx, HAProxy and Envoy (FORGED_SECONDS: of each run, 20)
  limits       few descriptors and threads, little address space, and inherited state
  soak         mixed load, rotations and reloads (SOAK_MINUTES: 12)
  unit         systemd's filter of system calls
  rolling      two replicas replaced behind HAProxy (CONTAINER_IMAGE: containers of this image)
A part is named and skipped if its programs are not installed. LIMITED_LOGIN names the program; else it is built.
"""
import importlib
import sys
import time

from harness import failures, raise_descriptor_limit

NAMES = ["metrics", "gateways", "renewals", "forged_keys", "limits", "soak", "unit", "rolling"]

# A thousand forged tokens a second wait on six thousand connections.
raise_descriptor_limit()
for name in sys.argv[1:] or NAMES:
    if name not in NAMES:
        sys.exit(__doc__)
    began = time.monotonic()
    print(f"--- {name}", flush=True)
    importlib.import_module(f"operations.{name}").main()
    print(f"--- {name}: {time.monotonic() - began:.0f} s", flush=True)
for failure in failures:
    print("FAILED: " + failure)
sys.exit(1 if failures else 0)
