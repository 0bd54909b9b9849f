"""The fields of an event, read without trust: one that is missing or of another type is never an error."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from .model import JsonObject

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_COUNT = 2**53 - 1  # the largest whole number that every client can tell from its neighbours


def text(data: JsonObject, name: str) -> str:
    """A text; ``""`` when there is none."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def text_id(data: JsonObject, name: str) -> str | None:
    """A text that is not empty."""
    return text(data, name) or None


def count(data: JsonObject, name: str) -> int | None:
    """A number that is whole and not negative. JSON does not tell ``1.0`` from ``1``."""
    value = data.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT
    return value if is_count else None


def flag(data: JsonObject, name: str) -> bool | None:
    """True or false; ``None`` when it is neither."""
    value = data.get(name)
    return value if isinstance(value, bool) else None


def milliseconds(data: JsonObject, name: str) -> int:
    """A time of RFC 3339 in milliseconds since 1970; 0 when it is none."""
    try:
        time = datetime.fromisoformat(text(data, name))
    except ValueError:
        return 0
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - _EPOCH) // timedelta(milliseconds=1)
