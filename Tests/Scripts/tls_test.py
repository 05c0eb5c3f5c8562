#!/usr/bin/env python3
"""Judges the TLS of a running `limited-login serve` by sslyze against Mozilla's intermediate configuration.

Usage: tls_test.py [--binary FILE] [--tools FOLDER], by default the debug build and .build/tools/sslyze, a virtual
environment that sslyze is installed into from PyPI. The exit code is 1 if a finding remains, or if a group other than
X25519, P-256 and P-384 is offered.
"""
import json
import sys

from attack_parts import Issuer, Service
from harness import ROOT, Authority, Folder, arguments, check, environment_with, failures, run

VERSION = "6.3.1"
GROUPS = {"X25519", "secp256r1", "secp384r1"}


def main():
    chosen = arguments(__doc__)
    python = environment_with(chosen.tools or ROOT / ".build/tools/sslyze", [f"sslyze=={VERSION}"])
    with Folder() as folder, Service(chosen.binary, Issuer(chosen.binary), **Authority(folder).settings()) as service:
        report = folder.path / "report.json"
        done = run([python, "-m", "sslyze", "--mozilla_config=intermediate", "--elliptic_curves", "--certinfo_ca_file",
                    folder.path / "ca.pem", f"--json_out={report}", f"localhost:{service.port}"])
        verdict = done.stdout[done.stdout.find("COMPLIANCE AGAINST"):].strip()
        check(done.returncode == 0 and " OK - Compliant" in verdict, f"sslyze: Mozilla's intermediate configuration\n{verdict}")
        results = json.loads(report.read_text())["server_scan_results"]
        found = results[0]["scan_result"]["elliptic_curves"]["result"]["supported_curves"] if results else []
        groups = {curve["name"] for curve in found}
        check(groups == GROUPS, f"sslyze: key exchange by {', '.join(sorted(groups))}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
