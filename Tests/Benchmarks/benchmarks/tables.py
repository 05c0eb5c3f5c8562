"""Renders the results as the tables of the page on speed."""


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def render(results):
    parts = [f"{results['date']}, {results['cpu']}, Linux {results['kernel'].split('-')[0]}, {results['openssl']}, "
             f"{results['swift']}. Bare RSA-2048 verification with a reused context: {results['bare_us']} µs."]
    rows = [[server["name"], f"{server['cpu_us']:.1f}", f"{server['ratio']:.2f}", f"{server['per_second']:,.0f}",
             f"{server['half']['p99_us']:,.0f}", f"{server['resident_kib'] / 1024:.1f}"] for server in results["servers"]]
    parts.append(table(["server", "µs of CPU", "of the bare verify", "requests/s", "p99 µs at half load", "resident MB"], rows))
    if results["absent"]:
        parts.append("Not installed or not answering rightly, so not measured: " + ", ".join(results["absent"]) + ".")
    floors = results["floors"]
    parts.append(table(["floor", "measured", "promised"], [
        ["private memory when idle", f"{floors['anonymous_kib'] / 1024:.1f} MB", "4 MB"],
        ["resident memory when idle", f"{floors['resident_kib'] / 1024:.1f} MB", "26 MB"],
        ["memory of an idle connection", f"{floors['connection_bytes']:.0f} B", "1,536 B"],
        ["wake-ups a second when idle", f"{floors['wakeups_per_second']:.1f}", "0"],
        ["start to the first answer", f"{floors['start_ms']:.1f} ms", "20 ms"],
        ["the program, which is all of the image but the certificates", f"{floors['binary_bytes'] / 1e6:.1f} MB", "25 MB"],
    ]))
    costs = {name: f"{cost['cpu_us']:.0f}" for name, cost in results["rejections"].items()}
    parts.append("By outcome, in µs: " + ", ".join(f"{name} {cost}" for name, cost in costs.items()) + ".")
    return "\n\n".join(parts)


def render_gateway(results):
    """The cost of `/auth`, beside other servers in its place."""
    rows = [[name, *(f"{cost[kind][part]:.{places}f}" for kind in ("again", "distinct") for part, places in (
        ("cpu_us", 1), ("ratio", 2)))] for name, cost in results["gateway"].items()]
    if "proofs" in results:
        cost = results["proofs"]
        rows.insert(4, ["**limited-login** `/auth`, a DPoP proof with each request", f"{cost['cpu_us']:.1f}",
                        f"{cost['ratio']:.2f}", "–", "–"])
    return table(["server", "200 tokens again, µs", "of the least", "distinct tokens, µs", "of the least"], rows)


def render_exchange(results):
    """The cost of `POST /token` beside `POST /verify` and OpenSSL's own signature."""
    exchange = results["exchange"]
    cost, ratio = exchange["cpu_us"], exchange["ratio"]
    return table(["request", "µs of CPU", "beside `POST /verify`"], [
        ["`POST /verify`", f"{cost['verify']:.1f}", "1.00"],
        ["`POST /token`, ES256", f"{cost['ES256']:.1f}", f"{ratio['ES256']:.2f}"],
        ["`POST /token`, RS256", f"{cost['RS256']:.1f}", f"+ {ratio['RS256']:.2f} signatures of RSA-2048"],
    ]) + f"\n\nOpenSSL alone signs in {cost['bare ES256']:.1f} and {cost['bare RS256']:.1f} µs. " \
        f"Medians of {exchange['turns']} turns."


def replace_between_marks(file, name, text):
    """Puts the text between the marks with this name in a Markdown file."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, _, rest = file.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{file} has no place for {name}")
    file.write_text(f"{before}{begin}{text}\n{end}{after}")
