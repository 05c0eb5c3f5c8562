"""The application behind a gateway in these scripts: it answers with the request that it got, its fields named as WSGI does, and
echoes a WebSocket and a tunnel."""

import base64
import hashlib
import io
import json
import threading

import harness


class Application(harness.Handler):
    """Also takes a WebSocket's handshake and CONNECT."""

    do_PUT = do_DELETE = do_OPTIONS = harness.Handler.answer

    def parse_request(self):
        if not super().parse_request():
            return False
        if self.command == "CONNECT":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            return self.echo()
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            self.read_chunks()
        if self.headers.get("Upgrade", "").lower() != "websocket":
            return True
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.wfile.write("\r\n".join([
            "HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket",
            f"Sec-WebSocket-Accept: {accept}", "", f"subject={fields(self).get('X_AUTH_SUBJECT')}\n",
        ]).encode())
        return self.echo()

    def echo(self):
        """Sends all further bytes back as they come; returns false, since no request is left."""
        while data := self.connection.recv(4096):
            self.wfile.write(data)
        return False

    def read_chunks(self):
        """Reads a chunked body. Like the most careless servers, it takes the fields of the trailer for fields of the header."""
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while b":" in (line := self.rfile.readline()):
            name, _, value = line.decode("latin-1").partition(":")
            self.headers.add_header(name, value.strip())
        del self.headers["Transfer-Encoding"]
        self.headers["Content-Length"] = str(len(body))
        self.rfile = io.BytesIO(body)
        self.close_connection = True


def fields(request):
    """The fields as WSGI names them: upper case, `_` for `-`, and those of one name joined by a comma (PEP 3333)."""
    found = {}
    for name, value in request.headers.items():
        name = name.replace("-", "_").upper()
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def answer(request):
    told = {"path": request.path, "method": request.command, "body": request.body.decode(), "fields": fields(request)}
    return json.dumps(told).encode()


def start(port=0):
    """Serves the application on a port of the loopback interface, by default a free one; returns its address."""
    server = harness.HTTPServer(("127.0.0.1", port), Application)
    server.answer, server.media_type = answer, "application/json"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"
