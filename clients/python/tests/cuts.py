"""A gateway that is cut: what the frames of a transcript become when the connection ends at some byte."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from transcripts import bytes_of

_ENDS_TEXTS = {"thought", "assistant_message", "complete", "error", "cancelled"}


@dataclass
class _Log:
    """What a gateway has after some frames: the events, and the texts that are open."""

    events: list[Any] = field(default_factory=list)
    texts: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)

    def take(self, frame: Any) -> None:
        data: Any = frame.get("data")
        if "cut" in frame:
            self.texts.clear()
        if not isinstance(data, dict):
            return
        if _is_event(data):
            if _number(frame) > self.last:
                self.events.append(frame)
                if data["type"] in _ENDS_TEXTS:
                    self._drop_texts(data.get("agent_execution_id"))
        elif data.get("type") in ("replay", "reset"):
            self.texts.clear()
            if data["type"] == "reset":
                self.events = [event for event in self.events if _number(event) < data["from_sequence"]]
        elif str(data.get("type")).startswith("text_") and {"step", "generation"} <= data.keys():
            self._take_text(data)

    def _take_text(self, data: dict[str, Any]) -> None:
        key = (data.get("agent_execution_id"), data["step"], data.get("part"))
        text = self.texts.get(key)
        if data["type"] == "text_start":
            if text is None or text["generation"] <= data["generation"]:
                self.texts[key] = dict(data)
        elif text is None or text["generation"] != data["generation"]:
            return
        elif data["type"] == "text_end":
            text["ended"] = True
        elif data["type"] == "text_delta":
            so_far, piece = len(text["text"].encode()), data["text"]
            offset = data.get("offset", so_far)
            if offset == so_far:
                text["text"] += piece
            elif offset + len(piece.encode()) > so_far:
                del self.texts[key]

    def _drop_texts(self, agent: Any) -> None:
        self.texts = {key: text for key, text in self.texts.items() if key[0] != agent}

    @property
    def last(self) -> int:
        return _number(self.events[-1]) if self.events else 0


def cut(frames: list[Any], rng: random.Random) -> list[bytes]:
    """The bytes of each connection, when the transcript is cut once at a random byte."""
    sizes = [0 if "cut" in frame else len(bytes_of(frame)) for frame in frames]
    place = rng.randrange(sum(sizes))
    whole = 0  # frames that arrive whole
    while whole < len(frames) and place >= sizes[whole]:
        place -= sizes[whole]
        whole += 1
    client, gateway = _Log(), _Log()
    for frame in frames[:whole]:
        client.take(frame)
        gateway.take(frame)
    half = bytes_of(frames[whole])[:place] if whole < len(frames) else b""
    ahead = frames[whole:]
    ends = [index for index, frame in enumerate(ahead) if frame.get("event") == "end"]
    missed = ahead[: rng.randint(0, ends[0] if ends else len(ahead))]
    resets = []
    for frame in missed:
        gateway.take(frame)
        if _type(frame) == "reset":
            resets.append(frame["data"]["from_sequence"])
    before = _connections(frames[:whole])
    before[-1] += half
    rest = _connections(ahead[len(missed) :])
    rest[0] = _come_back(client, gateway, min(resets, default=None)) + rest[0]
    return before + rest


def _come_back(client: _Log, gateway: _Log, reset_from: int | None) -> bytes:
    """What a new connection begins with."""
    start = client.last + 1
    frames = [{"event": "replay", "data": {"type": "replay", "last_sequence": gateway.last}}]
    if reset_from is not None and reset_from <= client.last:
        start = reset_from
        frames.append({"event": "reset", "data": {"type": "reset", "from_sequence": start}})
    frames += [event for event in gateway.events if _number(event) >= start]
    for text in gateway.texts.values():
        ended = text.pop("ended", False)
        frames.append({"event": "text_start", "data": {**text, "type": "text_start"}})
        if ended:
            frames.append({"event": "text_end", "data": {**text, "type": "text_end"}})
    return b"".join(bytes_of(frame) for frame in frames)


def _connections(frames: list[Any]) -> list[bytes]:
    connections = [b""]
    for frame in frames:
        if "cut" in frame:
            connections.append(b"")
        else:
            connections[-1] += bytes_of(frame)
    return connections


def _is_event(data: dict[str, Any]) -> bool:
    number = data.get("sequence_number")
    return isinstance(data.get("type"), str) and isinstance(number, int) and number > 0


def _number(frame: Any) -> int:
    return int(frame["data"]["sequence_number"])


def _type(frame: Any) -> Any:
    data = frame.get("data")
    return data.get("type") if isinstance(data, dict) else None
