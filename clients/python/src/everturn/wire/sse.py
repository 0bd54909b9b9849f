"""Server-sent events, from bytes.

Why not ``httpx-sse``: it gives each message the last ``id`` of the stream, where a cursor must be the message's own,
it keeps a byte order mark, and it has no limit. The shared ``sse.json`` says what is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import EverturnError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WHOLE_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)


@dataclass(slots=True)
class Message:
    """One message of a stream."""

    event: str = ""
    data: str = ""
    id: str | None = None
    """The message's own, and not the last one that was seen."""
    retry: int | None = None
    """Milliseconds."""


class SseParser:
    """Cuts a stream of bytes into messages, wherever its pieces end. ``max_bytes`` bounds one message."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        """Bytes of the message that is not complete."""
        self._line: list[bytes] = []
        """The pieces of the line that is not complete."""
        self._ended_with_cr = False
        self._is_first_line = True
        self._message = Message()
        self._data: list[str] = []
        self._has_field = False

    def feed(self, chunk: bytes) -> list[Message]:
        """Takes the next bytes, and returns the messages that they complete.

        Raises ``EverturnError`` with the code ``frame_too_large``.
        """
        messages = []
        for line in chunk.splitlines(keepends=True):  # of bytes: at LF, CR and CR LF alone
            was_cut, self._ended_with_cr = self._ended_with_cr, line.endswith(b"\r")
            if was_cut and line == b"\n":
                continue
            self._bytes += len(line)
            if self._bytes > self._max_bytes:
                raise EverturnError(
                    "frame_too_large", f"A frame of the stream is larger than the limit of {self._max_bytes} bytes."
                )
            self._line.append(line.rstrip(b"\r\n"))
            if line.endswith((b"\n", b"\r")):
                whole = b"".join(self._line)
                self._line.clear()
                if message := self._take_line(whole):
                    messages.append(message)
        return messages

    def _take_line(self, line: bytes) -> Message | None:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            return self._end_message()
        name, _, value = line.decode("utf-8", "replace").partition(":")
        self._take_field(name, value.removeprefix(" "))
        return None

    def _take_field(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._message.event = value
        elif name == "id" and "\0" not in value:
            self._message.id = value
        elif name == "retry" and _WHOLE_NUMBER.fullmatch(value):
            self._message.retry = int(value)
        else:
            return
        self._has_field = True

    def _end_message(self) -> Message | None:
        message, has_field = self._message, self._has_field
        message.data = "\n".join(self._data)
        self._message, self._has_field, self._bytes = Message(), False, 0
        self._data.clear()
        return message if has_field else None
