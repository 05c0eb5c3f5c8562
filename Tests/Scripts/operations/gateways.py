"""nginx and HAProxy speak TLS to the service and show it their certificates. Without a certificate they get no handshake."""

import pathlib

import proxies
from harness import Folder, check, free_port, installed, request, wait_until_ready

from .world import Certificates, Issuer, Program, Service, Wrk, verify_body

SECONDS = 3


def nginx(folder, port, upstream, certificates, client):
    shown = f"proxy_ssl_certificate {client[0]}; proxy_ssl_certificate_key {client[1]};" if client else ""
    return proxies.nginx(folder, f"""
        upstream service {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 500; }}
        server {{
            listen 127.0.0.1:{port}; keepalive_requests 1000000;
            location / {{
                proxy_pass https://service; proxy_http_version 1.1; proxy_set_header Connection "";
                proxy_ssl_trusted_certificate {certificates.authority}; proxy_ssl_verify on;
                proxy_ssl_name localhost; proxy_ssl_server_name on; {shown}
            }}
        }}
    """, "user root;")


def haproxy(folder, port, upstream, certificates, client):
    text = "".join(pathlib.Path(file).read_text() for file in client or ())
    shown = f"crt {folder.write('haproxy.pem', text)}" if client else ""
    return proxies.haproxy(folder, f"listen service\nbind 127.0.0.1:{port}\nhttp-reuse always\nserver one 127.0.0.1:{upstream} ssl "
                           f"verify required ca-file {certificates.authority} verifyhost localhost {shown} sni str(localhost) alpn http/1.1")


def main():
    with Folder() as folder, Issuer() as issuer:
        certificates = Certificates(folder)
        server, client = certificates.issue("server"), certificates.issue("client")
        bodies = [verify_body(issuer.token(sub=str(number))) for number in range(20)]
        for name, configure in (("nginx", nginx), ("haproxy", haproxy)):
            if not installed(name):
                continue
            for authority in ("", certificates.authority):
                drive(folder, issuer, name, configure, certificates, server, client, authority, bodies)


def drive(folder, issuer, name, configure, certificates, server, client, authority, bodies):
    kind = "mutual TLS" if authority else "TLS"
    with Service(issuer, tls_certificate_file=server[0], tls_key_file=server[1],
                 tls_client_ca_file=authority or None) as service:
        port, bare = free_port(), free_port()
        with Program(folder, configure(folder, port, service.port, certificates, client if authority else None)) as gateway:
            check(wait_until_ready(port, "/livez"), f"{name} reaches the service by {kind}")
            if installed("wrk"):
                load = Wrk(folder, f"http://127.0.0.1:{port}", bodies, SECONDS, connections=16)
                count, refused, broken, slow = load.result()
                check(count > 100 and refused == 0 and broken == 0,
                      f"{name} by {kind}: {count} requests, {refused} not 200, {broken} broken, p99 {slow} µs")
            if failed := [line for line in gateway.output().split("\n") if "SSL" in line]:
                check(False, f"{name}: {failed[:3]}")
        if not authority:
            return
        before = service.metric('http_server_connections_closed_total{cause="tls_handshake"}')
        with Program(folder, configure(folder, bare, service.port, certificates, None)):
            check(wait_until_ready(bare, "/livez", status=502),
                  f"{name} without a certificate reaches nothing")
        check(service.waits_for('http_server_connections_closed_total{cause="tls_handshake"}', before + 1),
              "the service counts the failed handshakes")
        check(request(service.admin_port, "GET", "/livez")[0] == 200, "the administrative listener stays open")
