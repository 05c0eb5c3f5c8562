#!/usr/bin/env python3
"""Judges the TLS of a running `limited-login serve` by sslyze against Mozilla's intermediate configuration.

Usage: tls_test.py [--binary FILE] [--tools FOLDER], by default the debug build and .build/tools/sslyze, a virtual
environment that sslyze is installed into from PyPI. The exit code is 1 if a finding remains, or if a group other than
X25519, P-256 and P-384 is offered.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from attack_parts import Issuer, Service, certificates
from live import ROOT, check, environment_with, failures

VERSION = "6.3.1"
GROUPS = {"X25519", "secp256r1", "secp384r1"}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--binary", default=os.path.join(ROOT, ".build", "debug", "limited-login"))
    options.add_argument("--tools", default=os.path.join(ROOT, ".build", "tools", "sslyze"))
    chosen = options.parse_args()
    python = environment_with(chosen.tools, [f"sslyze=={VERSION}"])
    with tempfile.TemporaryDirectory() as folder:
        service = Service(os.path.abspath(chosen.binary), Issuer(os.path.abspath(chosen.binary)), **certificates(folder))
        report = os.path.join(folder, "report.json")
        run = subprocess.run(
            [python, "-m", "sslyze", "--mozilla_config=intermediate", "--elliptic_curves", "--certinfo_ca_file",
             f"{folder}/ca.pem", f"--json_out={report}", f"localhost:{service.port}"],
            capture_output=True, text=True, check=False)
        verdict = run.stdout[run.stdout.find("COMPLIANCE AGAINST"):].strip()
        check(run.returncode == 0 and " OK - Compliant" in verdict, f"sslyze: Mozilla's intermediate configuration\n{verdict}")
        with open(report, encoding="utf-8") as file:
            results = json.load(file)["server_scan_results"]
        found = results[0]["scan_result"]["elliptic_curves"]["result"]["supported_curves"] if results else []
        groups = {curve["name"] for curve in found}
        check(groups == GROUPS, f"sslyze: key exchange by {', '.join(sorted(groups))}")
        check(service.stop() == 0, "the service ends with exit code 0")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
