"""The texts that models are writing now: rules 6 and 7 of the shared transcripts."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from .fields import count, text
from .model import JsonObject, OpenText

_MAX_TEXTS = 256
"""More open texts than a gateway shows. Past it, the oldest is dropped: its event will bring it."""

TextKey: TypeAlias = tuple[str, int, str]
"""``agent_execution_id``, ``step`` and ``part``."""


class Texts:
    """The open texts of a conversation. Their pieces are joined only when somebody looks."""

    def __init__(self) -> None:
        self._open: dict[TextKey, _Open] = {}

    def shown(self) -> tuple[OpenText, ...]:
        """Returns the texts, in the order in which they began."""
        return tuple(entry.shown() for entry in self._open.values())

    def apply(self, data: JsonObject, parent: str | None) -> bool:
        """Takes a text frame. ``parent`` is the call that started the sub-agent that writes. True for a change."""
        step, generation = count(data, "step"), count(data, "generation")
        if step is None or generation is None:
            return False
        key = (text(data, "agent_execution_id"), step, text(data, "part"))
        entry = self._open.get(key)
        if data["type"] == "text_start":
            if entry and entry.text.generation > generation:
                return False
            self._open[key] = _Open(data, key, generation, parent)
            if len(self._open) > _MAX_TEXTS:
                del self._open[next(iter(self._open))]
            return True
        if entry is None or entry.text.generation != generation:
            return False
        if data["type"] == "text_end":
            entry.text = replace(entry.text, ended=True)
            return True
        return self._append(key, entry, data)

    def _append(self, key: TextKey, entry: _Open, data: JsonObject) -> bool:
        piece = text(data, "text")
        size, offset = utf8_length(piece), count(data, "offset")
        if offset is not None and offset != entry.bytes:
            if offset + size <= entry.bytes:
                return False  # a repetition
            del self._open[key]  # a piece is missing
            return True
        entry.pieces.append(piece)
        entry.bytes += size
        return True

    def drop(self, agent_execution_id: str) -> None:
        """Drops the texts of an agent execution: an event has taken their place."""
        for key in [key for key in self._open if key[0] == agent_execution_id]:
            del self._open[key]

    def clear(self) -> bool:
        """Drops all texts. True when there were some."""
        had = bool(self._open)
        self._open.clear()
        return had


class _Open:
    """A text and the pieces that are not joined with it yet."""

    __slots__ = ("bytes", "pieces", "text")

    def __init__(self, data: JsonObject, key: TextKey, generation: int, parent: str | None) -> None:
        content = text(data, "text")
        self.bytes = utf8_length(content)
        self.pieces: list[str] = []
        agent, step, part = key
        self.text = OpenText(
            agent_execution_id=agent,
            step=step,
            part=part,
            generation=generation,
            text=content,
            ended=False,
            message_id=text(data, "message_id"),
            parent_tool_call_id=parent,
        )

    def shown(self) -> OpenText:
        if self.pieces:
            self.text = replace(self.text, text=self.text.text + "".join(self.pieces))
            self.pieces.clear()
        return self.text


def utf8_length(value: str) -> int:
    """Returns the bytes that a text has in UTF-8. Half of a surrogate pair, which JSON may hold, counts three."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
