"""What a reader does when its connection has ended, and when a request may be repeated."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

MAX_WAIT_MS = 30_000
"""The longest pause that is not the gateway's own wish."""

_PASSING = frozenset({408, 425, 429})
_WHOLE_SECONDS = re.compile(r"[0-9]{1,6}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection was cut, or could not be made."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The gateway answered, but not with a stream."""

    status: int
    retry_after: str | None = None
    """The header."""


@dataclass(frozen=True, slots=True)
class Reconnect:
    """The gateway stops: come back after a while."""

    delay_ms: float


@dataclass(frozen=True, slots=True)
class Ended:
    """Do not come back."""

    reason: str


Outcome: TypeAlias = Cut | Refused | Reconnect | Ended
"""How a connection ended."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Connect again after a pause."""

    ms: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Do not connect again."""

    why: Literal["ended", "refused"]


def next_step(outcome: Outcome, *, failures: int, retry_ms: float, random: float) -> Wait | Stop:
    """Decides what comes next.

    ``failures`` counts the connections in a row that brought no frame, the one that has just ended included.
    ``retry_ms`` is the last ``retry:`` of the stream. ``random`` is from 0 to below 1.
    """
    match outcome:
        case Ended():
            return Stop("ended")
        case Reconnect(delay_ms):
            return Wait(delay_ms)
        case Refused(status) if is_permanent(status):
            return Stop("refused")
    if failures == 0:
        return Wait(retry_ms)
    doublings = min(failures - 1, 64)  # more do not change the least of the two
    back_off = min(retry_ms * 2.0**doublings, MAX_WAIT_MS) * (0.5 + random / 2)
    least = retry_after_ms(outcome.retry_after) if isinstance(outcome, Refused) else 0
    return Wait(math.floor(max(back_off, least) + 0.5))


def is_permanent(status: int) -> bool:
    """True for an answer that stays the same however often one asks."""
    return 400 <= status < 500 and status not in _PASSING


def retry_after_ms(header: str | None) -> int:
    """Returns the header ``Retry-After`` in milliseconds; 0 when it is no whole number of seconds."""
    return int(header) * 1000 if header and _WHOLE_SECONDS.fullmatch(header) else 0
