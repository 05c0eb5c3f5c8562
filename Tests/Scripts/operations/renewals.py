"""Renews the certificate and the callers' keys under full load, in three ways. No request is lost, and the new ones count in time."""

import http.client
import os
import pathlib
import ssl

from harness import Folder, check, installed, until
from live import client_line

from .world import Certificates, Issuer, Service, Wrk, verify_body

RENEWALS, PROMISED, SECONDS = 34, 3, 180


def change(way, place, texts):
    """Changes the files by rename, by a write in place, or as Kubernetes does, whose files are links through `..data`."""
    target = place / f"..{len(list(place.iterdir()))}" if way == "switch" else place
    target.mkdir(exist_ok=True)
    for name, text in texts.items():
        (target / (f"{name}.new" if way == "rename" else name)).write_text(text)
        if way == "rename":
            os.replace(place / f"{name}.new", place / name)
        elif way == "switch" and not (place / name).is_symlink():
            os.symlink(f"..data/{name}", place / name)
    if way == "switch":
        os.symlink(target.name, place / "..new")
        os.replace(place / "..new", place / "..data")


def certificate_and_status(port, context):
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
    connection.request("POST", "/verify", "{}", {"Content-Type": "application/json", "X-Api-Key": "second"})
    return connection.sock.getpeercert(True), connection.getresponse().status


def main():
    with Folder() as folder, Issuer() as issuer:
        certificates = Certificates(folder)
        context = ssl.create_default_context(cafile=certificates.authority)
        pairs = [[pathlib.Path(file).read_text() for file in certificates.issue(name)] for name in ("one", "two")]
        states = [{"cert": pairs[0][0], "key": pairs[0][1], "clients": client_line("b", "k")},
                  {"cert": pairs[1][0], "key": pairs[1][1], "clients": client_line("b", "k") + client_line("c", "second")}]
        wanted = [(ssl.PEM_cert_to_DER_cert(pair[0]), status) for pair, status in zip(pairs, (401, 400))]
        for way in ("rename", "in place", "switch") if installed("wrk") else ():
            (place := folder.path / way).mkdir()
            change(way, place, states[0])
            files = {"tls_certificate_file": place / "cert", "tls_key_file": place / "key", "client_keys_file": place / "clients"}
            with Service(issuer, watch_files="enabled", **files) as service:
                load = Wrk(folder, f"https://127.0.0.1:{service.port}", [verify_body(issuer.token())], SECONDS, 8, keys=["k"])
                for number in range(1, RENEWALS + 1):
                    change(way, place, states[number % 2])
                    if not until(lambda: certificate_and_status(service.port, context) == wanted[number % 2], PROMISED):
                        check(False, f"{way}: renewal {number} is not served after {PROMISED} s")
                check(load.is_running(), f"{way}: {RENEWALS} renewals, each served within {PROMISED} s")
                load.stop()
                count, failed, broken, _ = load.result()
                # The service may refuse requests where the machine is late.
                late = service.metric("http_server_overloaded_total") or 0
                check(count > 1000 and failed <= late and not broken, f"{count} requests, {failed} not 200, {late:.0f} late, {broken} broken")
