"""Compares the cost of `POST /token` with `POST /verify` of the same tokens and caller, and with OpenSSL's signature."""

import hashlib
import json
import statistics

from . import peers
from .measurements import medians
from .processes import BUILT, WORK, harness, output
from .tokens import keyed, post_token, write_requests

CALLER_KEY = "llk_" + "5a" * 32


def measure(bench):
    """Each turn measures everything, one after the other; each ratio is of two values of one turn."""
    measured = [turn for _ in range(bench.rounds) for turn in turns(bench)]
    ratios = {
        "ES256": [turn["ES256"] / turn["verify"] for turn in measured],
        "RS256": [(turn["RS256"] - turn["verify"]) / turn["bare RS256"] for turn in measured],
    }
    return {"cpu_us": medians(measured), "turns": len(measured),
            "ratio": {name: statistics.median(values) for name, values in ratios.items()}}


def turns(bench):
    """Starts two services, one for each kind of key, and measures a few turns."""
    (WORK / "client-keys").write_text(f"bench {hashlib.sha256(CALLER_KEY.encode()).hexdigest()}\n")
    entries = bench.tokens.tokens[:2000]
    verify = write_requests("keyed", [keyed(request, CALLER_KEY) for request in peers.requests_for(None, entries)])
    token = write_requests("token", [keyed(post_token(entry), CALLER_KEY) for entry in entries])
    programs, found = {}, []
    for name, more in (("RS256", ()), ("ES256", ("--ec",))):
        key = key_file(name)
        key.unlink(missing_ok=True)
        key.touch(mode=0o600)
        key.write_text(harness.output([bench.binary, "signing-key", "new", *more]))
        programs[name] = bench.start(more=("--client-keys-file", WORK / "client-keys", "--issuer",
                                           "https://login.example.com", "--signing-keys-file", key))
    try:
        for _ in range(5):
            turn = {"verify": 0}
            for name, program in programs.items():
                turn[f"bare {name}"] = json.loads(output(
                    "taskset", "-c", "0", BUILT / "bare-verify", key_file(name), 0.5))["mean_us"]
                turn[name] = load(bench, program, token)
                turn["verify"] += load(bench, program, verify) / len(programs)
            found.append(turn)
    finally:
        for program in programs.values():
            program.stop()
    # The first turn warms the services up.
    return found[1:]


def load(bench, program, file):
    # Use few connections: on a busy machine the service would refuse a queue of expensive requests as overload.
    return bench.load(program, file, connections=8, seconds=1)["cpu_us"]


def key_file(name):
    return WORK / f"signing-key-{name}.pem"
