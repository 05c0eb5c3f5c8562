"""Checks that ten thousand wrong client keys, of any length, cost no more than right ones."""

import secrets
import time

from harness import Folder, check, installed, output

from .world import Issuer, Service, Wrk, binary, verify_body

REQUESTS = 10_000
# The most and the least seconds of the load, which ends after REQUESTS answers.
SECONDS, LEAST_SECONDS = 120, 4
VERDICTS = 'limited_login_verifications_total{credential="id_token",result="%s"}'


def main():
    if not installed("wrk"):
        return
    with Folder() as folder, Issuer() as issuer:
        made = [output([binary(), "client-key", "new", f"client-{number}"]).split("\n") for number in range(20)]
        clients = folder.write("clients", "".join(lines[1].removeprefix("line: ") + "\n" for lines in made))
        right = [lines[0].removeprefix("key:").strip() for lines in made]
        # Right keys with another last character, unknown keys, and keys that are far too long or too short.
        wrong = [key[:-1] + ("A" if key[-1] != "A" else "B") for key in right]
        wrong += [secrets.token_urlsafe(32) for _ in range(20)] + ["x" * 4000, "x"]
        body = verify_body(issuer.token())
        with Service(issuer, client_keys_file=clients, workers=1) as service:
            costs = {}
            for name, keys, result in (("right", right, "accepted"), ("wrong", wrong, "unauthorized_client")):
                url = f"http://127.0.0.1:{service.port}"
                before = service.cpu_seconds()
                load = Wrk(folder, url, [body], SECONDS, name=name, keys=keys)
                time.sleep(LEAST_SECONDS)
                service.waits_for(VERDICTS % result, REQUESTS, SECONDS)
                load.stop()
                count, failed, broken, slow = load.result()
                costs[name] = (service.cpu_seconds() - before) / max(count, 1) * 1e6
                expected = 0 if name == "right" else count
                check(count >= REQUESTS and failed == expected and broken == 0,
                      f"{count} requests with {name} keys, {failed} refused, {broken} broken, p99 {slow} µs")
            check(costs["wrong"] <= costs["right"],
                  f"a wrong key costs {costs['wrong']:.1f} µs of CPU, a right one with its verdict {costs['right']:.1f} µs")
            refused = service.metric(VERDICTS % "unauthorized_client")
            check(refused >= REQUESTS, f"{refused:.0f} refusals are counted")
            check(all(key not in service.output() + service.metrics() for key in right + wrong[:40]),
                  "no key is in the log or the metrics")
