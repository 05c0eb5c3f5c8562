"""Renews the certificate and the callers' keys under full load, in four ways. No request is lost, and the new ones count in time."""

import http.client
import os
import pathlib
import ssl

from harness import Authority, Folder, check, installed, until
from live import client_line

from .world import Issuer, Service, Wrk, verify_body

RENEWALS, PROMISED, SECONDS = 34, 3, 180


def change(way, place, texts):
    """Changes the files by rename (also before SIGHUP), in place, or as Kubernetes does, whose files are links through `..data`."""
    renames = way in ("rename", "SIGHUP")
    target = place / f"..{len(list(place.iterdir()))}" if way == "switch" else place
    target.mkdir(exist_ok=True)
    for name, text in texts.items():
        (target / (f"{name}.new" if renames else name)).write_text(text)
        if renames:
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
    if not installed("wrk"):
        return
    with Folder() as folder, Issuer() as issuer:
        authority = Authority(folder)
        context = authority.context()
        pairs = [[pathlib.Path(file).read_text() for file in authority.issue(name)] for name in ("one", "two")]
        clients = [client_line("b", "k"), client_line("b", "k") + client_line("c", "second")]
        states = [{"cert": pair[0], "key": pair[1], "clients": lines} for pair, lines in zip(pairs, clients)]
        wanted = [(ssl.PEM_cert_to_DER_cert(pair[0]), status) for pair, status in zip(pairs, (401, 400))]
        for way in ("rename", "in place", "switch", "SIGHUP"):
            (place := folder.path / way).mkdir()
            change(way, place, states[0])
            files = {"tls_certificate_file": place / "cert", "tls_key_file": place / "key", "client_keys_file": place / "clients"}
            with Service(issuer, watch_files="disabled" if way == "SIGHUP" else "enabled", **files) as service:
                load = Wrk(folder, f"https://127.0.0.1:{service.port}", [verify_body(issuer.token())], SECONDS, 8, "k")
                for number in range(1, RENEWALS + 1):
                    change(way, place, states[number % 2])
                    if way == "SIGHUP":
                        service.hang_up()
                    if not until(lambda: certificate_and_status(service.port, context) == wanted[number % 2], PROMISED):
                        check(False, f"{way}: renewal {number} is not served after {PROMISED} s")
                # The service may refuse requests where the machine is late.
                load.stop(f"{way}: {RENEWALS} renewals, each served within {PROMISED} s,",
                          lambda: int(service.metric("http_server_overloaded_total") or 0))
