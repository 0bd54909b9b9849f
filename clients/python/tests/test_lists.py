"""The shared transcripts of the list's stream: every one ends in its list, also with cuts at random bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest
import transcripts

from everturn import ConversationList
from everturn.core.stream import frame_of
from everturn.wire.sse import SseParser

CUTS = 500


class Reader:
    """What a program knows, and the connection that it reads."""

    def __init__(self) -> None:
        self.known = ConversationList()
        self._parser = SseParser(1024 * 1024)

    def connect(self) -> None:
        self._parser = SseParser(1024 * 1024)

    def read(self, frame: Any, size: int | None = None) -> None:
        if "cut" in frame:
            return self.connect()
        for message in self._parser.feed(transcripts.bytes_of(frame)[:size]):
            if read := frame_of(message):
                self.known.apply(read.data)


@pytest.mark.parametrize("name", transcripts.lists())
def test_list(name: str) -> None:
    transcript = transcripts.list_of(name)
    reader = Reader()
    for frame in transcript["frames"]:
        reader.read(frame)
    assert reader.known.conversations == transcript["list"]


@pytest.mark.parametrize("name", transcripts.lists())
def test_random_cuts_change_nothing(name: str, rng: random.Random) -> None:
    transcript = transcripts.list_of(name)
    for number in range(CUTS):
        assert _with_a_cut(transcript["frames"], rng) == transcript["list"], f"cut {number}"


def _with_a_cut(frames: list[Any], rng: random.Random) -> Any:
    reader, gateway = Reader(), ConversationList()
    at = rng.randrange(len(frames))
    for frame in frames[:at]:
        reader.read(frame)
        gateway.apply(frame.get("data"))
    if "cut" not in frames[at]:
        reader.read(frames[at], rng.randrange(len(transcripts.bytes_of(frames[at]))))
    ahead = frames[at:]
    ends = [index for index, frame in enumerate(ahead) if frame.get("event") == "end"]
    away = rng.randint(0, ends[0] if ends else len(ahead))
    for frame in ahead[:away]:
        gateway.apply(frame.get("data"))
    reader.connect()
    reader.read({"event": "list", "data": {"type": "list", "conversations": gateway.conversations}})
    for frame in ahead[away:]:
        reader.read(frame)
    return reader.known.conversations
