"""The progress of running tools: rule 11 of the shared transcripts."""

from __future__ import annotations

from .fields import text
from .model import JsonObject, ToolProgress

_MAX_REPORTS = 256
"""Past so many reports, the oldest is dropped."""


class Reports:
    """The latest reports of running tools: of each tool execution at most one step and one line."""

    def __init__(self) -> None:
        self._reports: dict[tuple[str, bool], ToolProgress] = {}

    def shown(self) -> tuple[ToolProgress, ...]:
        """Returns the reports, the newest last."""
        return tuple(self._reports.values())

    def apply(self, data: JsonObject) -> bool:
        """Takes a report. True for a change."""
        execution_id = text(data, "execution_id")
        if not execution_id:
            return False
        report = ToolProgress(
            execution_id=execution_id,
            agent_execution_id=text(data, "agent_execution_id"),
            tool_name=text(data, "tool_name"),
            progress=_number(data, "progress"),
            total=_number(data, "total"),
            message=text(data, "message"),
            level=text(data, "level") or None,
            message_id=text(data, "message_id"),
        )
        key = (execution_id, report.level is None)
        self._reports.pop(key, None)
        self._reports[key] = report
        if len(self._reports) > _MAX_REPORTS:
            del self._reports[next(iter(self._reports))]
        return True

    def drop(self, execution_id: str) -> None:
        """Drops the reports of a tool execution that has ended."""
        for is_step in (True, False):
            self._reports.pop((execution_id, is_step), None)

    def drop_of_agent(self, agent_execution_id: str) -> None:
        """Drops the reports of an agent execution that has ended."""
        left = {key: it for key, it in self._reports.items() if it.agent_execution_id != agent_execution_id}
        self._reports = left

    def clear(self) -> bool:
        """Drops all reports. True when there were some."""
        had = bool(self._reports)
        self._reports.clear()
        return had


def _number(data: JsonObject, name: str) -> int | float | None:
    value = data.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
