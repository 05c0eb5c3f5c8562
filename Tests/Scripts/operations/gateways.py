"""nginx and HAProxy speak TLS to the service and show it their certificates. Without a certificate they get no handshake."""

import pathlib

import proxies
from harness import Authority, Folder, check, free_port, installed, request, wait_until_ready

from .world import Issuer, Program, Service, Wrk, verify_body

SECONDS = 3


def nginx(folder, port, upstream, authority, client):
    shown = f"proxy_ssl_certificate {client[0]}; proxy_ssl_certificate_key {client[1]};" if client else ""
    return proxies.nginx_balancer(folder, port, f"server 127.0.0.1:{upstream};", f"""
        proxy_pass https://service; proxy_ssl_trusted_certificate {authority}; proxy_ssl_verify on;
        proxy_ssl_name localhost; proxy_ssl_server_name on; {shown}""")


def haproxy(folder, port, upstream, authority, client):
    text = "".join(pathlib.Path(file).read_text() for file in client or ())
    shown = f"crt {folder.write('haproxy.pem', text)}" if client else ""
    return proxies.haproxy_balancer(folder, port, "http-reuse always", f"server one 127.0.0.1:{upstream} ssl verify required "
                                    f"ca-file {authority} verifyhost localhost {shown} sni str(localhost) alpn http/1.1")


def main():
    with Folder() as folder, Issuer() as issuer:
        authority = Authority(folder)
        settings, client = authority.settings() | {"tls_client_ca_file": authority.file}, authority.issue("client")
        bodies = [verify_body(issuer.token(sub=str(number))) for number in range(20)]
        for name, configure in (("nginx", nginx), ("haproxy", haproxy)):
            if installed(name):
                with Service(issuer, **settings) as service:
                    drive(folder, name, service, lambda port, shown: configure(folder, port, service.port, authority.file, shown),
                          client, bodies)


def drive(folder, name, service, configure, client, bodies):
    port, bare = free_port(), free_port()
    with Program(folder, configure(port, client)) as gateway:
        check(wait_until_ready(port, "/livez"), f"{name} reaches the service by mutual TLS")
        if installed("wrk"):
            Wrk(folder, f"http://127.0.0.1:{port}", bodies, SECONDS, connections=16).judge(f"through {name}", 100)
        failed = [line for line in gateway.output().split("\n") if "SSL" in line]
        check(not failed, f"{name} complains of {failed[:3]}")
    refused = 'http_server_connections_closed_total{cause="tls_handshake"}'
    before = service.metric(refused)
    with Program(folder, configure(bare, None)):
        check(wait_until_ready(bare, "/livez", status=502), f"{name} without a certificate reaches nothing")
    check(service.waits_for(refused, before + 1), "the service counts the failed handshakes")
    check(request(service.admin_port, "GET", "/livez")[0] == 200, "the administrative listener stays open")
