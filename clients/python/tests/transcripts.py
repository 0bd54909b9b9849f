"""The shared transcripts (clients/transcripts), and states as they write them."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from everturn import Frame, State, ToolCall, ToolResult

FOLDER = Path(__file__).parents[2] / "transcripts"


def conversations() -> list[str]:
    """The names of the transcripts of conversations."""
    return sorted(file.stem for file in (FOLDER / "conversations").glob("*.json"))


def conversation(name: str) -> Any:
    """A transcript of a conversation."""
    return json.loads((FOLDER / "conversations" / f"{name}.json").read_text("utf-8"))


def lists() -> list[str]:
    """The names of the transcripts of lists."""
    return sorted(file.stem for file in (FOLDER / "lists").glob("*.json"))


def list_of(name: str) -> Any:
    """A transcript of a list."""
    return json.loads((FOLDER / "lists" / f"{name}.json").read_text("utf-8"))


def cases(name: str) -> list[Any]:
    """A list of cases: ``sse`` or ``connection``."""
    return list(json.loads((FOLDER / f"{name}.json").read_text("utf-8")))


def frame_of(frame: Any) -> Frame:
    """A frame of a transcript, as the reducer takes it. Data that is a text is no JSON object on the wire."""
    return Frame(frame["data"], frame.get("id"))


def bytes_of(frame: Any) -> bytes:
    """A frame of a transcript, as a gateway sends it."""
    data = frame["data"] if isinstance(frame["data"], str) else json.dumps(frame["data"], ensure_ascii=False)
    first = f"id: {frame['id']}\n" if "id" in frame else ""
    return f"{first}event: {frame['event']}\ndata: {data}\n\n".encode()


def as_written(state: State) -> dict[str, Any]:
    """A state as the transcripts write it: in camelCase, without what is not known."""
    return {
        "cursor": state.cursor,
        "status": state.status,
        "turn": state.turn,
        "ended": state.ended,
        "items": [_fields(item) for item in state.items],
        "texts": [_fields(text) for text in state.texts],
    }


def _fields(value: Any) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        own = getattr(value, field.name)
        if own is not None or _may_be_null(value, field.name):
            known[_camel_case(field.name)] = _value(own)
    return known


def _may_be_null(value: Any, name: str) -> bool:
    """Whether ``None`` is the value ``null`` there, and not a field that is missing."""
    if name == "tool_output":
        return isinstance(value, ToolResult) or value.result_sequence_number is not None
    return isinstance(value, ToolCall) and name == "tool_input"


def _value(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return _fields(value)
    return [_value(one) for one in value] if isinstance(value, tuple) else value


def _camel_case(name: str) -> str:
    return re.sub(r"_(.)", lambda match: match.group(1).upper(), name)
