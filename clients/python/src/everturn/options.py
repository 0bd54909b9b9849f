"""What a program may set, and the limits that hold when it sets nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Key: TypeAlias = str | Callable[[], str]
"""A key or a token, or a function that gets one for each request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a client."""

    request_seconds: float = 30.0
    """Until a request without an answer is given up."""
    attempts: int = 5
    """How often a request that may be repeated is tried, while nobody answers or the answer may pass."""
    answer_bytes: int = 32 * 1024 * 1024
    """Of an answer that is no stream."""
    frame_bytes: int = 16 * 1024 * 1024
    """Of a frame of the stream."""
    silence_seconds: float = 45.0
    """Without a byte, after which a stream counts as dead. Gateways send one every 15 s."""
    connections: int = 20
    """Connections in a row without a frame, until following a conversation fails."""
    events: int = 50_000
    """That a conversation keeps in memory; past it, the oldest are forgotten."""
    outbox: int = 100
    """Messages of a conversation that wait to be sent."""
    parallel_tools: int = 16
    """Client tools of a client that run at once; further calls wait."""
