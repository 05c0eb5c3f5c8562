#!/usr/bin/env python3
"""Sends the requests that this server accepts to other servers. A request that two or more refuse needs an explanation.

Usage: http_differential.py [SERVER], the test server of this package (by default that of the debug build).
Peers that are not installed are named and left out. The exit code is 1 if a refusal has no explanation below.
"""
import collections
import contextlib
import glob
import json
import os
import re
import socket
import sys

import harness
import live
import proxies

CASES = os.path.join(harness.ROOT, "..", "shared", "http-cases")

# The reasons why this server accepts requests that two peers refuse: a pattern of the bytes, and the reason.
EXPLANATIONS = [
    (lambda raw: max(map(len, raw.split(b"\r\n"))) > 4000,
     "Peers bound a field line by 8 KiB or less; this server takes 32 KiB, since gateways forward cookies."),
    (lambda raw: re.match(rb"(GET|HEAD) ", raw) and re.search(rb"content-length: *[1-9]", raw, re.I),
     "RFC 9110 9.3.1 lets GET have content; it is read, so that it is never taken for a request."),
    (lambda raw: re.match(rb"[A-Z]+ https?://", raw, re.I),
     "RFC 9112 3.2.2: absolute-form must be accepted, and Host is then ignored, whatever it says."),
    (lambda raw: re.search(rb"host: *[^\r]*(%|=|_|\.\.|:\r)", raw, re.I) or re.search(rb"host: *\.\r", raw, re.I)
     or re.search(rb"host: *[a0-9.]+:1234\r", raw, re.I),
     "RFC 3986 3.2.2: a registered name may hold these bytes; names are not resolved here, only compared."),
    (lambda raw: re.search(rb"if-modified-since", raw, re.I),
     "Conditional fields mean nothing to this server's resources, so a repeated one is not looked at."),
    (lambda raw: raw.startswith(b"\r\n") or re.search(rb"\r\n\r\n[^\r]*\r\n[A-Z]+ ", raw),
     "RFC 9112 2.2: an empty line before a request line is ignored."),
    (lambda raw: re.search(rb"\r\n\r\n(abcd)?[^\r\n]+$", raw),
     "An unfinished request follows the answered one; at the stream's end peers refuse it, this server closes."),
]


def nginx(folder, port):
    return proxies.nginx(folder, f"""upstream back {{ server 127.0.0.1:{PLAIN['port']}; }}
        server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://back/; proxy_method GET;
        proxy_ignore_client_abort on; }} }}""")


def haproxy(folder, port):
    return proxies.haproxy(folder, f"timeout http-request 2s\noption http-buffer-request\nfrontend test\nbind 127.0.0.1:{port}\n"
                           "http-request return status 200", 2)


def apache(folder, port):
    (folder.path / "root").mkdir()
    return proxies.apache(folder, ["dir"], f"Listen 127.0.0.1:{port}", f"DocumentRoot {folder.path}/root")


def lighttpd(folder, port):
    text = f'server.document-root = "{folder.path}"\nserver.bind = "127.0.0.1"\nserver.port = {port}\n'
    return ["lighttpd", "-D", "-f", folder.write("lighttpd.conf", text)]


def gunicorn(folder, port):
    folder.write("application.py", """def application(environ, start_response):
    environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Length", "0")])
    return [b""]
""")
    return ["gunicorn", "--chdir", folder.path, "--bind", f"127.0.0.1:{port}", "--threads", "4", "--log-level", "critical",
            "application:application"]


def h11(folder, port):
    path = folder.write("h11_server.py", """import h11, socketserver, sys
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.settimeout(2)
        connection = h11.Connection(h11.SERVER)
        def send(event):
            data = connection.send(event)
            if data: self.request.sendall(data)
        try:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    data = self.request.recv(65536)
                    connection.receive_data(data)
                elif isinstance(event, h11.EndOfMessage):
                    send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                    send(h11.EndOfMessage())
                    if connection.our_state is h11.MUST_CLOSE: return
                    connection.start_next_cycle()
                elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
                    return
        except h11.RemoteProtocolError as error:
            if connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
                send(h11.Response(status_code=error.error_status_hint, headers=[("Connection", "close")]))
        except OSError:
            pass
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
""")
    return [harness.python_with("h11"), path, str(port)]


PLAIN = {}
PEERS = {"nginx": nginx, "haproxy": haproxy, "apache2": apache, "lighttpd": lighttpd, "gunicorn": gunicorn, "h11": h11}


def is_installed(name):
    return bool(harness.python_with("h11") if name == "h11" else harness.program_path(name))


def exchange(port, raw):
    """The final statuses of the answers."""
    received = b""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.5) as client:
        client.sendall(raw)
        client.shutdown(socket.SHUT_WR)
        while data := client.recv(65536):
            received += data
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3})", received)]
    return [status for status in statuses if status >= 200]


# Statuses about the message itself; 404, 405 or 501 for a method are about the resource.
REFUSALS = {400, 411, 413, 414, 417, 426, 431, 505}


def main():
    if not os.path.isdir(CASES):
        harness.skip("../shared/http-cases is not there")
        return 0
    server = os.path.abspath((sys.argv[1:] or [harness.ROOT / ".build/debug/http11-probe-server"])[0])
    with contextlib.ExitStack() as stack:
        def starts(name, command):
            process = stack.enter_context(live.Process([str(part) for part in command]))
            return harness.listens(ports[name], process.process)

        ports = {name: harness.free_port() for name in ["this", *PEERS]}
        PLAIN["port"] = ports["this"]
        if not starts("this", [server, f"127.0.0.1:{ports['this']}", "1", "agreeable"]):
            print(f"{server} does not start")
            return 1
        for name, make in PEERS.items():
            if not is_installed(name) or not starts(name, make(stack.enter_context(harness.Folder()), ports[name])):
                harness.skip(f"{name} is not installed, or does not start")
                del ports[name]
        return judge(ports)


def judge(ports):
    accepted, unexplained, used = 0, [], collections.Counter()
    for path in sorted(glob.glob(os.path.join(CASES, "*.json"))):
        with open(path, encoding="utf-8") as file:
            cases = json.load(file)
        for case in cases:
            if case.get("same_bytes_as"):
                continue
            raw = case["raw"].encode("latin-1")
            ours = exchange(ports["this"], raw)
            # 501 refuses CONNECT, and also a transfer coding.
            if not ours or any(status in REFUSALS or status >= 500 for status in ours):
                continue
            accepted += 1
            refusing = []
            for name in list(ports)[1:]:
                theirs = exchange(ports[name], raw)
                if not theirs or any(status in REFUSALS for status in theirs):
                    refusing.append(f"{name} {theirs}")
            if len(refusing) < 2:
                continue
            reason = next((reason for predicate, reason in EXPLANATIONS if predicate(raw)), None)
            if reason:
                used[reason] += 1
            else:
                unexplained.append((case["name"], raw[:200], refusing))
    print(f"peers: {', '.join(name for name in ports if name != 'this')}")
    print(f"{accepted} cases accepted; two or more peers refuse {used.total() + len(unexplained)} of them")
    for reason, count in used.items():
        print(f"  {count:3d}  {reason}")
    for name, raw, refusing in unexplained:
        print(f"UNEXPLAINED: {name}\n  {raw!r}\n  refused by {'; '.join(refusing)}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
