"""What both runners have in common: how httpx is called, and how its errors are read."""

from __future__ import annotations

from typing import Any

import httpx

from ..core.effects import Answer, Lost, Request
from ..errors import EverturnError
from ..options import Limits

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def arguments(request: Request) -> dict[str, Any]:
    """Returns what httpx builds a request of."""
    body: dict[str, Any] = {}
    if request.json is not None:
        body["json"] = request.json
    if request.content is not None:
        body["content"] = request.content
    return {
        "method": request.method,
        "url": request.path,
        "params": dict(request.query),
        "headers": dict(request.headers),
        **body,
    }


def timeout(limits: Limits, silence_seconds: float) -> httpx.Timeout:
    """Returns the time that a connection may take, and that it may be silent."""
    return httpx.Timeout(limits.request_seconds, read=silence_seconds)


def lost(error: httpx.RequestError) -> Lost:
    """Returns what an exception of the transport means."""
    return Lost(str(error) or type(error).__name__, was_sent=not isinstance(error, _NEVER_SENT))


def head(response: httpx.Response) -> Answer:
    """Returns an answer without its body."""
    return Answer(response.status_code, {name.lower(): value for name, value in response.headers.items()})


class Body:
    """Collects the body of an answer, up to a limit."""

    def __init__(self, response: httpx.Response, max_bytes: int) -> None:
        self._head = head(response)
        self._max_bytes = max_bytes
        self._pieces = bytearray()

    def add(self, piece: bytes) -> None:
        """Takes the next bytes. Raises ``EverturnError`` with the code ``answer_too_large``."""
        self._pieces += piece
        if len(self._pieces) > self._max_bytes:
            raise EverturnError("answer_too_large", f"An answer is larger than the limit of {self._max_bytes} bytes.")

    @property
    def answer(self) -> Answer:
        """The answer with what has come of its body."""
        return Answer(self._head.status, self._head.headers, bytes(self._pieces))
