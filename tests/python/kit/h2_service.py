"""An HTTP/2 server with TLS in front of a sandbox, with faults, for tests of connections."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded

from kit.tls_service import Server

if TYPE_CHECKING:
    from kit.tls_service import Authority

HOP = {"connection", "keep-alive", "transfer-encoding"}


class H2Service(Server):
    """Sends each stream to the sandbox as a request.

    `fault` maps the number of a data request to its fault: "refused" (the request does not reach
    the sandbox), "gone" (the connection ends with GOAWAY), "cut" (half of the body, then a reset).
    """

    def __init__(self, authority: Authority, port: int) -> None:
        self.port_inside = port
        self.sessions: list[Connection] = []
        self.fault: dict[int, str] = {}
        self.together = 1
        """The number of data requests that must be open before one of them is answered."""
        self.requested = 0
        self.paths: list[str] = []
        context = authority.offering("h2", "http/1.1")

        def serve(request):
            with context.wrap_socket(request, server_side=True) as outside:
                assert outside.selected_alpn_protocol() == "h2"
                self.sessions.append(Connection(self, outside))
                self.sessions[-1].serve()

        super().__init__(serve)

    def fault_of(self, path: str) -> str | None:
        """Counts a request and returns the fault of a data request."""
        self.paths.append(path)
        if not path.endswith("/data"):
            return None
        self.requested += 1
        return self.fault.get(self.requested)


class Connection:
    """A connection. It answers one stream after the other."""

    def __init__(self, service: H2Service, outside) -> None:
        self.service, self.outside = service, outside
        self.state = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests: dict[int, tuple[dict[str, str], bytearray]] = {}
        self.complete: list[int] = []
        self.is_open = True

    def serve(self) -> None:
        self.state.initiate_connection()
        while self.is_open:
            self.receive()
            data = sum("/data" in self.requests[one][0][":path"] for one in self.complete)
            if data >= self.service.together:
                self.service.together = 1
            if data == 0 or self.service.together == 1:
                while self.complete and self.is_open:
                    self.answer(self.complete.pop(0))

    def receive(self) -> None:
        self.outside.sendall(self.state.data_to_send())
        data = self.outside.recv(65536)
        self.is_open = bool(data)
        for event in self.state.receive_data(data):
            match event:
                case RequestReceived():
                    self.requests[event.stream_id] = (dict(event.headers), bytearray())
                case DataReceived():
                    self.requests[event.stream_id][1].extend(event.data)
                case StreamEnded():
                    self.complete.append(event.stream_id)

    def answer(self, stream: int) -> None:
        head, body = self.requests.pop(stream)
        fault = self.service.fault_of(head[":path"].partition("?")[0])
        if fault == "refused":
            self.state.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
        elif fault == "gone":
            self.state.close_connection(last_stream_id=0)
            self.is_open = False
        else:
            status, headers, reply = self.relay(head, bytes(body))
            self.state.send_headers(stream, [(":status", str(status)), *headers])
            self.send(stream, reply[: len(reply) // 2] if fault else reply)
            if fault:
                self.state.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)
            else:
                self.state.end_stream(stream)
        self.outside.sendall(self.state.data_to_send())

    def relay(self, head: dict[str, str], body: bytes):
        inside = http.client.HTTPConnection("127.0.0.1", self.service.port_inside)
        headers = {name: value for name, value in head.items() if not name.startswith(":")}
        inside.request(head[":method"], head[":path"], body or None, headers)
        reply = inside.getresponse()
        found = [(name.lower(), value) for name, value in reply.getheaders()]
        content = reply.read()
        inside.close()
        return reply.status, [pair for pair in found if pair[0] not in HOP], content

    def send(self, stream: int, body: bytes) -> None:
        """Sends a body as fast as the client's flow-control window allows."""
        while body and self.is_open:
            window = self.state.local_flow_control_window(stream)
            window = min(window, self.state.max_outbound_frame_size)
            if window == 0:
                self.receive()
                continue
            self.state.send_data(stream, body[:window])
            body = body[window:]
