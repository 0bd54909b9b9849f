"""Keeps a conversation from being read twice at once: two streams would mix in one state."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Generator
from types import AsyncGeneratorType
from typing import Any, TypeVar

G = TypeVar("G", bound="Generator[Any, None, None] | AsyncGenerator[Any, None]")


class OneReader:
    """Knows the generator that reads. A loop that is left forgets its generator, which frees the place."""

    def __init__(self) -> None:
        self._current: weakref.ref[Any] | None = None

    def take(self, generator: G) -> G:
        """Makes this generator the one that reads. Raises ``RuntimeError`` when there is another."""
        current = self._current() if self._current else None
        if current is not None and not _is_over(current):
            raise RuntimeError(
                "This conversation is being read already. Leave that loop first, or read with another object: "
                "everturn.conversation(id)."
            )
        self._current = weakref.ref(generator)
        return generator


def _is_over(generator: Any) -> bool:
    frame = generator.ag_frame if isinstance(generator, AsyncGeneratorType) else generator.gi_frame
    return frame is None
