"""The frames of a stream of the API, over as many connections as it takes."""

from __future__ import annotations

import json
from typing import Any

from ..errors import EverturnError
from ..state.reducer import Frame
from ..wire.sse import Message, SseParser
from ..wire.step import Cut, Ended, Outcome, Reconnect, Refused, Stop, Wait, next_step
from .effects import Answer, Close, Flow, Lost, Open, Read, Request, Sleep
from .http import Http

FIRST_RETRY_MS = 1000
"""The pause before the next connection, until the gateway names one."""
_MAX_DELAY_MS = 600_000
"""The longest delay of a ``reconnect`` that is obeyed."""


class Frames:
    """Reads the frames of a stream, a batch for each piece of the stream that arrives.

    It comes back after each cut: call :meth:`connect` and :meth:`read`, until ``read`` returns ``None``; then
    :meth:`pause`, which returns true when there is something to come back for.
    """

    def __init__(self, http: Http, path: str) -> None:
        self._http = http
        self._path = path
        self._failures = 0
        self._retry_ms: float = FIRST_RETRY_MS
        self._outcome: Outcome = Cut()
        self._error: EverturnError | None = None
        self._has_frame = False
        self._parser = SseParser(http.limits.frame_bytes)

    def connect(self, cursor: str | None = None) -> Flow[bool]:
        """Opens the stream, behind the cursor if it has one. False when it could not be opened."""
        self._outcome, self._error, self._has_frame = Cut(), None, False
        self._parser = SseParser(self._http.limits.frame_bytes)
        request = Request(
            method="GET",
            path=self._path,
            query={"cursor": cursor},
            headers={"accept": "text/event-stream", "accept-encoding": "identity"},
        )
        answer = yield Open(self._http.prepared(request))
        if is_stream(answer):
            return True
        self._error = self._http.error(answer)
        if isinstance(answer, Answer):
            self._outcome = Refused(answer.status, answer.headers.get("retry-after"))
        return False

    def read(self) -> Flow[list[Frame] | None]:
        """Returns the frames that have come together, possibly none; ``None`` when the connection has ended."""
        if not isinstance(self._outcome, Cut):
            return None
        chunk = yield Read()
        if chunk is None:
            return None
        frames = []
        for message in self._parser.feed(chunk):
            if message.retry is not None:
                self._retry_ms = message.retry
            frame = frame_of(message)
            if frame is None:
                continue
            self._has_frame = True
            frames.append(frame)
            outcome = _own_outcome(frame.data)
            if outcome == Ended("token_expired") and self._http.renews_key:
                outcome = Reconnect(0)
            if outcome is not None:
                self._outcome = outcome
                break
        return frames

    def pause(self) -> Flow[bool]:
        """Waits as long as the rules say. False when the gateway said not to come back.

        Raises ``EverturnError`` when the stream is refused for good, or cannot be opened as often as it was tried.
        """
        yield Close()
        self._failures = 0 if self._has_frame else self._failures + 1
        step = next_step(self._outcome, failures=self._failures, retry_ms=self._retry_ms, random=self._http.random())
        if isinstance(step, Stop) and step.why == "ended":
            return False
        if isinstance(step, Stop) or self._failures >= self._http.limits.connections:
            raise self._error or self._http.error(Lost("the stream was cut before its first frame", was_sent=True))
        assert isinstance(step, Wait)
        yield Sleep(step.ms / 1000)
        return True


def is_stream(answer: Answer | Lost) -> bool:
    """True for the answer to a request of a stream that really is one."""
    if not isinstance(answer, Answer) or answer.status != 200:
        return False
    return answer.headers.get("content-type", "").startswith("text/event-stream")


def frame_of(message: Message) -> Frame | None:
    """Returns the frame of a message; ``None`` for one that has no data, or none that can be read."""
    if not message.data:
        return None
    try:
        return Frame(json.loads(message.data, parse_constant=_refuse), message.id)
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")  # Python's reader takes NaN and Infinity


def _own_outcome(data: Any) -> Outcome | None:
    """How a frame says that its connection ends."""
    if not isinstance(data, dict) or "sequence_number" in data:
        return None
    if data.get("type") == "end":
        return Ended(str(data.get("reason")))
    if data.get("type") != "reconnect":
        return None
    delay = data.get("delay_ms")
    if isinstance(delay, int | float) and not isinstance(delay, bool) and delay >= 0:
        return Reconnect(min(delay, _MAX_DELAY_MS))
    return Reconnect(FIRST_RETRY_MS)
