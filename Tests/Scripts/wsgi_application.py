"""The application behind a gateway in these scripts: a WSGI application that answers with the request that it got, and echoes a
WebSocket and a tunnel."""

import base64
import hashlib
import io
import json
import socketserver
import threading
import wsgiref.simple_server


def application(environ, start_response):
    """Answers with the request that it got, as JSON."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    query = environ["QUERY_STRING"]
    text = json.dumps({
        "path": environ["PATH_INFO"] + (f"?{query}" if query else ""),
        "method": environ["REQUEST_METHOD"],
        "body": body.decode(),
        "fields": {name[5:]: value for name, value in environ.items() if name.startswith("HTTP_")},
    }).encode()
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text]


class Handler(wsgiref.simple_server.WSGIRequestHandler):
    """wsgiref's own handler, with a WebSocket's handshake and CONNECT, which WSGI does not have."""

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
            f"Sec-WebSocket-Accept: {accept}", "", f"subject={self.get_environ().get('HTTP_X_AUTH_SUBJECT')}\n",
        ]).encode())
        return self.echo()

    def echo(self):
        """Sends all further bytes back as they come; returns false, since no request is left."""
        while data := self.connection.recv(4096):
            self.wfile.write(data)
        return False

    def read_chunks(self):
        """Reads a chunked body, which WSGI does not have either. Like the most careless servers, it takes the fields of the
        trailer for fields of the header."""
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

    def log_message(self, *_):
        pass


class Backend(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    """A server that ignores errors of connections, since gateways end these at any time."""

    daemon_threads = True

    def handle_error(self, *_):
        pass


def start(port=0):
    """Serves the application on a port of the loopback interface, by default a free one."""
    server = Backend(("127.0.0.1", port), Handler)
    server.set_app(application)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
