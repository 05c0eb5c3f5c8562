"""Checks with promtool that the metrics, the alerts and the dashboard are valid, and that all named metrics exist."""

import json

from harness import ROOT, Folder, check, installed, request, run
from live import APP_ID

from .world import Issuer, Service, verify_body

FILES = ROOT / "config" / "prometheus"


def promtool(*arguments, text=None):
    return run(["promtool", *arguments], input=text)


def main():
    if not installed("promtool"):
        return
    rules = promtool("check", "rules", FILES / "rules.yaml")
    check(rules.returncode == 0, f"promtool check rules: {rules.stdout.strip()} {rules.stderr.strip()}")
    tested = promtool("test", "rules", FILES / "rules_test.yaml")
    check(tested.returncode == 0, f"promtool test rules: {tested.stdout.strip()} {tested.stderr.strip()}")
    expressions = [target["expr"] for panel in json.loads((FILES / "dashboard.json").read_text())["panels"]
                   for target in panel["targets"]]
    # promtool judges an expression only within a rule. ObservabilityFilesTests compares the names with the service's metrics.
    rule = {"groups": [{"name": "dashboard", "rules": [
        {"record": f"dashboard:{number}", "expr": expression.replace("$instance", ".*")}
        for number, expression in enumerate(expressions)]}]}
    with Folder() as folder, Issuer() as issuer, Service(
        issuer, access_tokens="accept", graph_url="http://127.0.0.1:9",
        app_secrets_file=folder.write("app-secrets", f"{APP_ID} a-secret-of-this-test\n"),
    ) as service:
        valid = promtool("check", "rules", folder.write("dashboard.rules", json.dumps(rule)))
        check(valid.returncode == 0, f"the dashboard's {len(expressions)} expressions: {valid.stdout} {valid.stderr}")
        # No server listens at port 9: a failed call of Graph counts like any other.
        for body in (verify_body(token := issuer.token()), verify_body(token, "other"), "{", '{"access_token": "EAAx"}'):
            request(service.port, "POST", "/verify", body)
        text = service.metrics()
        judged = promtool("check", "metrics", text=text)
        check(judged.returncode == 0 and not judged.stderr.strip(),
              f"promtool check metrics: {text.count(chr(10))} lines {judged.stdout} {judged.stderr}")
