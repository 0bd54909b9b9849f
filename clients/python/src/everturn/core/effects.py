"""The effects that the core asks for. A runner carries them out: ``everturn.runners``."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a gateway."""

    method: str
    path: str
    query: Mapping[str, str | int | None] = field(default_factory=dict)
    """A parameter that is ``None`` is left out."""
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = False
    """It does no harm to send it twice."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gateway, or a proxy before it, answered."""

    status: int
    headers: Mapping[str, str]
    """Their names are in lower case."""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer came."""

    error: str
    was_sent: bool
    """False when the gateway has certainly not seen the request."""


@dataclass(frozen=True, slots=True)
class Raised:
    """A function raised an exception."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Send:
    """Sends a request. The reply is an :class:`Answer` or :class:`Lost`."""

    request: Request


@dataclass(frozen=True, slots=True)
class Open:
    """Opens a stream. The reply is that of :class:`Send`; an answer of 200 has no body, which is then read."""

    request: Request


@dataclass(frozen=True, slots=True)
class Read:
    """Reads more of the open stream. The reply is bytes, or ``None`` when it was cut or is silent."""


@dataclass(frozen=True, slots=True)
class Close:
    """Closes the open stream."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Waits."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """Calls a function of the program. The reply is what it returns, or :class:`Raised`."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    beside: Callable[[], Flow[None]] | None = None
    """Makes a flow that is run again and again while the function runs, each time after ``every_seconds``."""
    every_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Spawn:
    """Runs a flow beside this one, as far as the runner can. There is no reply."""

    flow: Generator[Effect, Any, None]


@dataclass(frozen=True, slots=True)
class Emit(Generic[T_co]):
    """Hands a value to the program, which may take its time."""

    value: T_co


Effect: TypeAlias = Send | Open | Read | Close | Sleep | Call | Spawn

Flow: TypeAlias = Generator[Effect, Any, T]
"""Does something that ends with a value."""

Stream: TypeAlias = Generator[Effect | Emit[T], Any, None]
"""Does something that hands out values meanwhile."""
