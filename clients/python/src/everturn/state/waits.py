"""The calls of models that wait for their provider: rule 10 of the shared transcripts."""

from __future__ import annotations

from .fields import count, text
from .model import JsonObject, ModelWait

_MAX_WAITS = 256
"""Past so many waiting calls, the oldest is dropped."""


class Waits:
    """The waiting calls of a conversation, at most one of each agent execution."""

    def __init__(self) -> None:
        self._waits: dict[str, ModelWait] = {}

    def shown(self) -> tuple[ModelWait, ...]:
        """Returns the waiting calls, the newest news last."""
        return tuple(self._waits.values())

    def apply(self, data: JsonObject) -> bool:
        """Takes the news of a waiting call. True for a change."""
        step, attempt = count(data, "step"), count(data, "attempt")
        retry_after_ms = count(data, "retry_after_ms")
        if step is None or attempt is None or retry_after_ms is None:
            return False
        agent = text(data, "agent_execution_id")
        self.drop(agent)
        self._waits[agent] = ModelWait(
            agent_execution_id=agent,
            step=step,
            code=text(data, "code"),
            message=text(data, "message"),
            attempt=attempt,
            retry_after_ms=retry_after_ms,
            message_id=text(data, "message_id"),
        )
        if len(self._waits) > _MAX_WAITS:
            del self._waits[next(iter(self._waits))]
        return True

    def drop(self, agent_execution_id: str) -> bool:
        """Drops the waiting call of an agent execution. True when there was one."""
        return self._waits.pop(agent_execution_id, None) is not None

    def clear(self) -> bool:
        """Drops all waiting calls. True when there were some."""
        had = bool(self._waits)
        self._waits.clear()
        return had
