"""Checks with promtool that the metrics, the alerts and the dashboard are valid, and that all named metrics exist."""

import json
import re
import subprocess

from live import APP_ID, ROOT, check, installed, request

from .world import Certificates, Folder, Issuer, Service, run, verify_body

FILES = ROOT / "config" / "prometheus"


def promtool(*arguments, text=None):
    return subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True)


def main():
    if not installed("promtool"):
        return
    rules = promtool("check", "rules", FILES / "rules.yaml")
    check(rules.returncode == 0, f"promtool check rules: {rules.stdout.strip()} {rules.stderr.strip()}")
    tested = promtool("test", "rules", FILES / "rules_test.yaml")
    check(tested.returncode == 0, f"promtool test rules: {tested.stdout.strip()} {tested.stderr.strip()}")
    expressions = [target["expr"] for panel in json.loads((FILES / "dashboard.json").read_text())["panels"]
                   for target in panel["targets"]]
    with Folder() as folder, Issuer() as issuer:
        # promtool judges an expression only within a rule.
        rule = {"groups": [{"name": "dashboard", "rules": [
            {"record": f"dashboard:{number}", "expr": expression.replace("$instance", ".*")}
            for number, expression in enumerate(expressions)]}]}
        valid = promtool("check", "rules", folder.write("dashboard.rules", json.dumps(rule)))
        check(valid.returncode == 0, f"the dashboard's {len(expressions)} expressions: {valid.stdout} {valid.stderr}")
        live(folder, issuer, expressions + [(FILES / "rules.yaml").read_text()])


def live(folder, issuer, texts):
    from .world import binary
    certificate, key = Certificates(folder).issue("server")
    made = run([binary(), "client-key", "new", "backend"]).split("\n")
    clients = folder.write("clients", made[1].removeprefix("line: ") + "\n")
    secrets = folder.write("app-secrets", f"{APP_ID} a-secret-of-this-test\n")
    # No server listens at port 9: a failed call of Graph counts like any other.
    with Service(issuer, tls_certificate_file=certificate, tls_key_file=key, client_keys_file=clients,
                 app_secrets_file=secrets, graph_url="http://127.0.0.1:9") as service:
        token = issuer.token()
        for body in (verify_body(token), verify_body(token, "other"), "{"):
            run(["curl", "-sS", "-k", f"https://127.0.0.1:{service.port}/verify", "-d", body, "-H",
                 "Content-Type: application/json", "-H", "X-Api-Key: " + made[0].removeprefix("key:").strip()])
        run(["curl", "-sS", "-k", f"https://127.0.0.1:{service.port}/users/1/permissions", "-H",
             "X-Api-Key: " + made[0].removeprefix("key:").strip()])
        request(service.admin_port, "GET", "/nowhere")
        text = service.metrics()
        judged = promtool("check", "metrics", text=text)
        check(judged.returncode == 0 and not judged.stderr.strip(),
              f"promtool check metrics: {text.count(chr(10))} lines {judged.stdout} {judged.stderr}")
        exposed = set(re.findall(r"^# TYPE (\S+)", text, re.M))
        named = {re.sub("_(bucket|sum|count)$", "", name) for part in texts
                 for name in re.findall(r"\b(?:limited_login|http_server|jwks|process)_\w+", part)}
        check(named <= exposed, f"all of the {len(named)} metrics that are named are exposed: {named - exposed}")
