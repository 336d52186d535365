"""An HTTP/2 server with TLS in front of a sandbox, with faults, for tests of connections."""

from __future__ import annotations

import http.client
import select
import threading
from typing import TYPE_CHECKING

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset, WindowUpdated

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
        self.barrier: threading.Barrier | None = None
        self.requested = 0
        self.paths: list[str] = []
        self.counting = threading.Lock()
        context = authority.offering("h2", "http/1.1")

        def serve(request):
            with context.wrap_socket(request, server_side=True) as outside:
                assert outside.selected_alpn_protocol() == "h2"
                connection = Connection(self, outside)
                self.sessions.append(connection)
                connection.serve()

        super().__init__(serve)

    def fault_of(self, path: str) -> str | None:
        """Counts a request and returns the fault of a data request."""
        self.paths.append(path.partition("?")[0])
        if not path.partition("?")[0].endswith("/data"):
            return None
        if self.barrier:
            self.barrier.wait(60)
        with self.counting:
            self.requested += 1
            return self.fault.get(self.requested)


class Connection:
    """A connection. The condition `changed` guards it and is notified if the window grows."""

    def __init__(self, service: H2Service, outside) -> None:
        self.service, self.outside = service, outside
        self.changed = threading.Condition()
        self.state = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.requests: dict[int, tuple[dict[str, str], bytearray]] = {}
        self.reset: set[int] = set()
        self.is_open = True

    def serve(self) -> None:
        with self.changed:
            self.state.initiate_connection()
            self.flush()
        try:
            while self.is_open and self.receive():
                pass
        finally:
            with self.changed:
                self.is_open = False
                self.changed.notify_all()

    def receive(self) -> bool:
        if not self.outside.pending():
            select.select([self.outside], [], [], 0.05)
        with self.changed:
            if not self.is_open:
                return False
            self.outside.setblocking(False)
            try:
                data = self.outside.recv(65536)
            except OSError:
                return True
            finally:
                self.outside.setblocking(True)
            for event in self.state.receive_data(data):
                self.handle(event)
            self.flush()
        return bool(data)

    def handle(self, event) -> None:
        stream = getattr(event, "stream_id", None)
        match event:
            case RequestReceived():
                self.requests[stream] = (dict(event.headers), bytearray())
            case DataReceived():
                self.requests[stream][1].extend(event.data)
                self.state.acknowledge_received_data(event.flow_controlled_length, stream)
            case StreamEnded():
                head, body = self.requests.pop(stream)
                answer = threading.Thread(target=self.answer, args=(stream, head, bytes(body)))
                answer.daemon = True
                answer.start()
            case StreamReset():
                self.reset.add(stream)
                self.changed.notify_all()
            case WindowUpdated():
                self.changed.notify_all()

    def answer(self, stream: int, head: dict[str, str], body: bytes) -> None:
        fault = self.service.fault_of(head[":path"])
        if fault in ("refused", "gone"):
            with self.changed:
                if fault == "refused":
                    self.state.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
                else:
                    self.state.close_connection(last_stream_id=0)
                    self.is_open = False
                self.flush()
            return
        status, headers, reply = self.relay(head, body)
        with self.changed:
            if not self.is_open or stream in self.reset:
                return
            self.state.send_headers(stream, [(":status", str(status)), *headers])
            self.flush()
            self.send(stream, reply[: len(reply) // 2] if fault == "cut" else reply)
            if not self.is_open or stream in self.reset:
                return
            if fault == "cut":
                self.state.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)
            else:
                self.state.end_stream(stream)
            self.flush()

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
        while body and self.is_open and stream not in self.reset:
            window = self.state.local_flow_control_window(stream)
            window = min(window, self.state.max_outbound_frame_size)
            if window == 0:
                self.changed.wait(60)
                continue
            self.state.send_data(stream, body[:window])
            body = body[window:]
            self.flush()

    def flush(self) -> None:
        self.outside.sendall(self.state.data_to_send())
