"""Reloads good and bad configurations in turn, again and again, under full load. No request may fail."""

import json
import time

from harness import Folder, check, installed
from live import APP_ID

from .world import Issuer, Service, Wrk, verify_body

RELOADS = 100
# The most seconds of the load, which ends when the work is done.
SECONDS = 120


def main():
    if not installed("wrk"):
        return
    with Folder() as folder, Issuer() as issuer:
        good = [{"app_ids": [APP_ID]}, {"app_ids": [APP_ID, "42"], "clock_skew_seconds": 30}]
        bad = ['{"app_ids": ', '{"app_ids": []}', '{"colour": "red"}', json.dumps({"app_ids": [APP_ID], "workers": 7}),
               json.dumps({"app_ids": [APP_ID], "client_keys_file": "/nonexistent"})]
        config = folder.write("config.json", json.dumps(good[0]))
        bodies = [verify_body(issuer.token(sub=str(number))) for number in range(50)]
        with Service(issuer, app_ids=None, config=config) as service:
            load = Wrk(folder, f"http://127.0.0.1:{service.port}", bodies, SECONDS)
            taken = refused = 0
            for number in range(RELOADS):
                if number % 2:
                    folder.write("config.json", bad[number // 2 % len(bad)])
                    mark, expected = '"configuration not reloaded', (refused := refused + 1)
                else:
                    folder.write("config.json", json.dumps(good[number // 2 % len(good)]))
                    mark, expected = '"configuration reloaded"', (taken := taken + 1)
                # Let the load run between two reloads.
                time.sleep(0.1)
                service.hang_up()
                if not service.wait_for(mark, expected):
                    check(False, f"reload {number + 1} is {mark}")
                    break
            check(load.is_running(), f"{taken} good and {refused} bad configurations were read while the load lasted")
            load.stop()
            count, failed, broken, slow = load.result()
            check(count > 1000 and failed == 0 and broken == 0,
                  f"{count} requests meanwhile, {failed} not 200, {broken} broken, p99 {slow} µs")
            check(service.process.poll() is None, "the service lives")
