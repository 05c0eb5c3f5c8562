#!/usr/bin/env python3
"""Runs the service as an operator would, with real processes around it, and fails where something does not hold.

Usage: operations_test.py [NAME...]: metrics (promtool), gateways (nginx and HAProxy by TLS), reload (under full load),
wrong_keys (what they cost), forged_keys (a flood of made-up key IDs, straight and behind nginx, HAProxy and Envoy), unit (systemd's filter of system calls), rolling (two replicas replaced behind HAProxy); by default these. rolling_containers does the
last with containers of the image that CONTAINER_IMAGE names. What is not
installed is named and left out. LIMITED_LOGIN_BINARY names the program; else it is the newest build.
"""
import importlib
import sys
import time

from live import failures

NAMES = ["metrics", "gateways", "reload", "wrong_keys", "forged_keys", "unit", "rolling"]

for name in sys.argv[1:] or NAMES:
    if name not in NAMES + ["rolling_containers"]:
        sys.exit(__doc__)
    began = time.monotonic()
    print(f"--- {name}", flush=True)
    importlib.import_module(f"operations.{name}").main()
    print(f"--- {name}: {time.monotonic() - began:.0f} s", flush=True)
for failure in failures:
    print("FAILED: " + failure)
sys.exit(1 if failures else 0)
