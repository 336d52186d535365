"""Relays with and without TLS in front of a service, and proxies, all on loopback."""

from __future__ import annotations

import contextlib
import ipaddress
import random
import select
import socket
import socketserver
import ssl
import threading
from typing import TYPE_CHECKING

from cryptography import x509

from .certificates import Issuer

if TYPE_CHECKING:
    from pathlib import Path

HOST = "customer.test"
# The client does not treat this address as loopback, but a connection to it reaches this machine.
SELF = "0.0.0.0"


class Authority:
    """A certificate authority, and a server certificate that it issued."""

    def __init__(self, folder: Path, *, days: tuple[int, int] = (-1, 30)) -> None:
        """Issues the certificates. They are valid for `days` from now."""
        folder.mkdir(exist_ok=True)
        issuer = Issuer("siteline test authority")
        addresses = [x509.IPAddress(ipaddress.ip_address(one)) for one in ("127.0.0.1", SELF)]
        names = [x509.DNSName(HOST), x509.DNSName("localhost"), *addresses]
        validity = {"begins": days[0], "ends": days[1]}
        issued = issuer.issue(HOST, for_clients=False, names=names, **validity)
        self.pem, self.folder = issuer.pem, folder / "certs"
        self.folder.mkdir()
        self.file, self.chain = folder / "ca.pem", folder / "server.pem"
        for path in (self.file, self.folder / "ours.pem"):
            path.write_bytes(self.pem)
        self.chain.write_bytes(issued.pem + issued.key_pem())
        self.context = self.offering()

    def offering(self, *protocols: str) -> ssl.SSLContext:
        """Returns a TLS context of the server that offers these protocols."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain)
        if protocols:
            context.set_alpn_protocols(protocols)
        return context


def pump(one: socket.socket, other: socket.socket, inspect=lambda data: None) -> None:
    """Copies bytes in both directions until a side ends. `inspect` first gets those from `one`."""
    sides = {one: other, other: one}
    while True:
        pending = [side for side in sides if isinstance(side, ssl.SSLSocket) and side.pending()]
        ready = pending or select.select(list(sides), [], [])[0]
        for side in ready:
            data = side.recv(65536)
            if not data:
                return
            if side is one:
                inspect(data)
            sides[side].sendall(data)


class Server(socketserver.ThreadingTCPServer):
    """A TCP server that counts its connections."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, serve, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        super().__init__(address, None)
        self.serve = serve
        self.port = self.server_address[1]
        self.connections = 0
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def get_request(self):
        accepted = super().get_request()
        self.connections += 1
        return accepted

    def finish_request(self, request, _address) -> None:
        with contextlib.suppress(OSError):
            self.serve(request)

    def __exit__(self, *exception) -> None:
        self.shutdown()
        super().__exit__(*exception)


class Relay(Server):
    """A relay in front of a service without TLS. `inspect` can delay a request."""

    def __init__(self, port: int, inspect, **where) -> None:
        def serve(request):
            with socket.create_connection(("127.0.0.1", port)) as inside:
                pump(request, inside, inspect)

        super().__init__(serve, **where)


class TlsRelay(Server):
    """A relay that adds TLS to a service without TLS."""

    def __init__(self, authority: Authority, port: int) -> None:
        def serve(request):
            with (
                authority.context.wrap_socket(request, server_side=True) as outside,
                socket.create_connection(("127.0.0.1", port)) as inside,
            ):
                pump(outside, inside)

        super().__init__(serve)


class Proxy(Server):
    """An HTTP proxy that connects every tunnel to one local port, for any requested host."""

    def __init__(self, port: int, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> None:
        self.heads: list[str] = []

        def serve(request):
            head = b""
            while b"\r\n\r\n" not in head:
                data = request.recv(4096)
                if not data:
                    return
                head += data
            self.heads.append(head.decode())
            request.sendall(answer)
            if b" 200 " in answer:
                with socket.create_connection(("127.0.0.1", port)) as inside:
                    pump(request, inside)

        super().__init__(serve)


class Socks(Server):
    """A SOCKS 5 proxy that connects every tunnel to one local port. The reply 2 forbids it."""

    def __init__(self, port: int, *, user: tuple[str, str] | None = None, reply: int = 0) -> None:
        self.targets: list[tuple[str, int]] = []

        def serve(request):
            def read(length: int) -> bytes:
                return request.recv(length, socket.MSG_WAITALL)

            def text() -> str:
                return read(read(1)[0]).decode()

            method = 2 if user else 0
            _, methods = read(1), read(read(1)[0])
            request.sendall(bytes([5, method if method in methods else 0xFF]))
            if user:
                _, given = read(1), (text(), text())
                request.sendall(bytes([1, given != user]))
                if given != user:
                    return
            kind = read(4)[3]
            host = text() if kind == 3 else str(ipaddress.ip_address(read(4 if kind == 1 else 16)))
            self.targets.append((host, int.from_bytes(read(2))))
            request.sendall(bytes([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]))
            if reply == 0:
                with socket.create_connection(("127.0.0.1", port)) as inside:
                    pump(request, inside)

        super().__init__(serve)


def unused_port() -> int:
    """Returns a port without a listening socket, which no system gives to another program."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
