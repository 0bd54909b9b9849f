"""Makes items of events, in their order: rules 3 to 5 of the shared transcripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from .fields import count, text, text_id
from .items import (
    ENDS,
    Base,
    base_of,
    item_of,
    plan_steps,
    requested_approval,
    resolved_approval,
    result_of,
    started_sub_agent,
    unpaired_result,
)
from .model import Approval, ClientToolRequest, Item, JsonObject, Outcome, ToolCall, WorkPlan

# Events whose `message_id` does not show that a turn runs: the id of an answer is its own, and an outcome may be
# settled after the end of its turn.
_SHOW_NO_TURN = frozenset({"assistant_message", "outcome_settled"})


@dataclass(frozen=True, slots=True)
class _KnownAgent:
    """A sub-agent that is known."""

    call_id: str | None
    call_at: int | None
    """Where its call is in the items."""


class Fold:
    """The items of the events so far. Items are replaced and never changed."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.turn: str | None = None
        """The message id of the turn that runs."""
        self._agents: dict[str, _KnownAgent] = {}
        self._calls_by_execution: dict[str, int] = {}
        self._calls_by_id: dict[str, int] = {}
        self._running: dict[int, None] = {}
        """Where the calls are that still run, in their order."""
        self._plans: dict[str, int] = {}

    @property
    def is_waiting(self) -> bool:
        """True when a call waits for a person or for a client tool."""
        return any(_is_waiting(self._call(at)) for at in self._running)

    def parent_of(self, agent_execution_id: str) -> str | None:
        """Returns the ``call_id`` of the call that started a sub-agent; ``None`` for an agent that is no known one."""
        known = self._agents.get(agent_execution_id)
        return known.call_id if known else None

    def apply(self, data: JsonObject, sequence_number: int) -> None:
        """Takes the next event."""
        kind = text(data, "type")
        if self.turn is None and kind not in ENDS and kind not in _SHOW_NO_TURN:
            self.turn = text_id(data, "message_id")
        agent = text_id(data, "agent_execution_id")
        known = self._agents.get(agent) if agent else None
        base = base_of(data, sequence_number, self.turn)
        if known:
            base["agent_execution_id"] = agent
            base["parent_tool_call_id"] = known.call_id
        item = item_of(data, base)
        if kind == "outcome_settled":
            self._settle(data)
        if item is not None:
            self._push(item)
        elif change := self._CHANGES.get(kind):
            change(self, data, base)
        if kind in ENDS:
            self._end(data["type"], agent, known)

    def _push(self, item: Item) -> None:
        at = len(self.items)
        self.items.append(item)
        if not isinstance(item, ToolCall):
            return
        self._running[at] = None
        if item.execution_id is not None:
            self._calls_by_execution[item.execution_id] = at
        if item.call_id is not None:
            self._calls_by_id[item.call_id] = at

    def _call(self, at: int) -> ToolCall:
        item = self.items[at]
        assert isinstance(item, ToolCall)
        return item

    def _call_at(self, data: JsonObject) -> int | None:
        return self._calls_by_execution.get(text(data, "execution_id"))

    def _change_call(self, at: int | None, **changes: Any) -> None:
        if at is not None:
            self.items[at] = replace(self._call(at), **changes)

    def _observe(self, data: JsonObject, base: Base) -> None:
        has_execution = text_id(data, "execution_id") is not None
        at = self._call_at(data) if has_execution else self._first_of_name(text(data, "tool_name"))
        if at is None or self._call(at).result_sequence_number is not None:
            return self._push(unpaired_result(data, base))
        self._change_call(at, **result_of(data, base))
        self._running.pop(at, None)

    def _first_of_name(self, tool_name: str) -> int | None:
        """The first call that runs and has no execution id, as in events of the first releases."""
        for at in self._running:
            call = self._call(at)
            if call.execution_id is None and call.tool_name == tool_name:
                return at
        return None

    def _settle(self, data: JsonObject) -> None:
        """A person says how a call with an unknown outcome did."""
        at = self._call_at(data)
        if at is not None and self._call(at).state == "unknown" and self._call(at).result_sequence_number is not None:
            self._change_call(at, state="done" if data.get("outcome") == "happened" else "failed")

    def _request_approval(self, data: JsonObject, _base: Base) -> None:
        self._change_call(self._call_at(data), approval=requested_approval(data))

    def _resolve_approval(self, data: JsonObject, _base: Base) -> None:
        at = self._call_at(data)
        if at is None:
            return
        before = self._call(at).approval or Approval(state="")
        self._change_call(at, approval=replace(before, **resolved_approval(data)))
        if data.get("edited") is True and "tool_input" in data:
            self._change_call(at, tool_input=data["tool_input"], title=text_id(data, "title"))

    def _request_client_tool(self, data: JsonObject, _base: Base) -> None:
        request = ClientToolRequest(expires_at=text_id(data, "expires_at"))
        self._change_call(self._call_at(data), client_tool=request)

    def _start_agent(self, data: JsonObject, _base: Base) -> None:
        agent = text_id(data, "agent_execution_id")
        if agent is None:
            return
        call_id = text_id(data, "call_id")
        has_execution = text_id(data, "execution_id") is not None
        at = self._call_at(data) if has_execution else self._calls_by_id.get(call_id or "")
        self._agents[agent] = _KnownAgent(call_id, at)
        self._change_call(at, sub_agent=started_sub_agent(data))

    def _plan(self, data: JsonObject, base: Base) -> None:
        plan_id = text_id(data, "plan_id")
        title, steps = text(data, "title"), plan_steps(data)
        at = self._plans.get(plan_id) if plan_id else None
        if at is not None:
            self._change_plan(at, lambda plan: replace(plan, title=title, steps=steps))
            return
        if plan_id is not None:
            self._plans[plan_id] = len(self.items)
        self.items.append(WorkPlan(**base, plan_id=plan_id, title=title, steps=steps))

    def _change_plan(self, at: int, change: Callable[[WorkPlan], WorkPlan]) -> None:
        plan = self.items[at]
        assert isinstance(plan, WorkPlan)
        self.items[at] = change(plan)

    def _start_step(self, data: JsonObject, _base: Base) -> None:
        self._set_step(data, "running")

    def _end_step(self, data: JsonObject, _base: Base) -> None:
        self._set_step(data, text_id(data, "status"))

    def _set_step(self, data: JsonObject, status: str | None) -> None:
        at, number = self._plans.get(text(data, "plan_id")), count(data, "step_number")
        if at is None or status is None:
            return

        def change(plan: WorkPlan) -> WorkPlan:
            steps = (replace(step, status=status) if step.step_number == number else step for step in plan.steps)
            return replace(plan, steps=tuple(steps))

        self._change_plan(at, change)

    def _end(self, outcome: Outcome, agent: str | None, known: _KnownAgent | None) -> None:
        """Ends a sub-agent, or the turn. Its calls that still run have no outcome."""
        if known is None:
            self.turn = None
        elif known.call_at is not None and (started := self._call(known.call_at).sub_agent):
            self._change_call(known.call_at, sub_agent=replace(started, state=outcome))
        for at in list(self._running):
            if known is None or self.items[at].agent_execution_id == agent:
                self._change_call(at, state="unknown")
                del self._running[at]

    _CHANGES: ClassVar[dict[str, Callable[[Fold, JsonObject, Base], None]]] = {
        "observe": _observe,
        "approval_requested": _request_approval,
        "approval_resolved": _resolve_approval,
        "client_tool_requested": _request_client_tool,
        "sub_agent_start": _start_agent,
        "work_plan": _plan,
        "step_start": _start_step,
        "step_end": _end_step,
    }
    """The events that change items instead of adding one."""


def _is_waiting(call: ToolCall) -> bool:
    is_pending = call.approval is not None and call.approval.state == "pending"
    return is_pending or call.client_tool is not None
