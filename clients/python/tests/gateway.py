"""A gateway on a real socket, whose answers a test writes byte by byte."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Received:
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


@dataclass
class Answer:
    """An answer. With ``body`` of bytes pieces, it is sent piece by piece, and cut after the last one."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class Cut(Exception):
    """Raised by a route: the connection is closed without an answer."""


Route = Callable[[Received], Answer]


class Gateway:
    """Answers by route: each has a list of answers, and the last one stays."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self._routes: dict[tuple[str, str], list[Answer | Route]] = {}
        self._lock = threading.Lock()
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                gateway._handle(self)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_any

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def on(self, method: str, path: str, *answers: Answer | Route) -> None:
        """Sets what a path below ``/api/v1/agent/`` answers, in this order."""
        self._routes[method, f"/api/v1/agent/{path}"] = list(answers)

    def seen(self, method: str, end: str) -> list[Received]:
        """The requests to a path that ends so."""
        return [request for request in self.received if request.method == method and request.path.endswith(end)]

    def close(self) -> None:
        """Stops."""
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, http: BaseHTTPRequestHandler) -> None:
        url = urlsplit(http.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        body = http.rfile.read(int(http.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in http.headers.items()}
        request = Received(http.command, url.path, query, headers, body)
        with self._lock:
            self.received.append(request)
            answers = self._routes.get((http.command, url.path), [])
            answer = answers.pop(0) if len(answers) > 1 else answers[0] if answers else problem(404, "not_found")
        try:
            _send(http, answer(request) if callable(answer) else answer)
        except (Cut, BrokenPipeError, ConnectionResetError):
            http.close_connection = True


def _send(http: BaseHTTPRequestHandler, answer: Answer) -> None:
    is_stream = isinstance(answer.body, list)
    data = b"" if is_stream or answer.body is None else json.dumps(answer.body).encode()
    http.send_response(answer.status)
    kind = "text/event-stream" if is_stream else "application/json"
    for name, value in ({"content-type": kind} | answer.headers).items():
        http.send_header(name, value)
    if not is_stream:
        http.send_header("content-length", str(len(data)))
        http.end_headers()
        http.wfile.write(data)
        return
    http.send_header("transfer-encoding", "chunked")
    http.end_headers()
    for piece in answer.body:
        if callable(piece):
            piece()
            continue
        http.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        http.wfile.flush()
    raise Cut  # without the last chunk


def problem(status: int, code: str, **headers: str) -> Answer:
    """A problem (RFC 9457)."""
    body = {
        "type": f"/docs/errors/{code}",
        "title": "A title",
        "status": status,
        "detail": f"A sentence about {code}.",
        "code": code,
        "instance": "/",
        "request_id": "req-1",
    }
    return Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def event(number: int, type: str, turn: str = "msg_1", **data: Any) -> bytes:
    """An event, as the stream has it."""
    fields = {"type": type, "message_id": turn, "sequence_number": number, "created_at": "2026-11-18T11:06:41.000Z"}
    return frame(type, fields | data, f"{number}-1a")


def frame(event: str, data: Any, id: str | None = None) -> bytes:
    """A frame of the stream."""
    first = f"id: {id}\n" if id else ""
    return f"{first}event: {event}\ndata: {json.dumps(data)}\n\n".encode()


def text(type: str, **data: Any) -> bytes:
    """A text frame."""
    key = {"agent_execution_id": "run_1", "step": 0, "part": "text", "generation": 1}
    return frame(type, {"type": type, "message_id": "msg_1"} | key | data)


def replay(last: int = 0) -> bytes:
    """The first frame of a stream, after a ``retry`` that is short enough for a test."""
    return b"retry: 1\n\n" + frame("replay", {"type": "replay", "from_sequence": 1, "last_sequence": last})
