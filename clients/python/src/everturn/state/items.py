"""What an event makes a person see, before anything else happened to it."""

from __future__ import annotations

import re
from typing import Any, TypedDict

from .fields import count, flag, milliseconds, text, text_id
from .model import (
    Approval,
    AssistantMessage,
    Citation,
    End,
    Item,
    JsonObject,
    Note,
    PlanStep,
    Question,
    SubAgent,
    Thought,
    ToolCall,
    ToolResult,
    UserMessage,
)

# Unicode's White_Space. `str.isspace` also takes the separators U+001C to U+001F.
_BLANK = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*")
# Fields of every event, which a note does not repeat.
_ENVELOPE = frozenset({"type", "conversation_id", "message_id", "sequence_number", "created_at"})
NOTES = frozenset(
    {
        "context_compacted",
        "model_fallback",
        "outcome_probed",
        "outcome_settled",
        "pattern_match",
        "skill_matched",
        "skill_execution_start",
        "skill_execution_complete",
    }
)
ENDS = frozenset({"complete", "error", "cancelled"})
_WITH_STEP = frozenset({"thought", "act", "assistant_message"})


class Base(TypedDict):
    """The fields of :class:`~everturn.state.model.ItemBase`."""

    id: str
    sequence_number: int
    timestamp: int
    turn: str | None
    step: int | None
    agent_execution_id: str | None
    parent_tool_call_id: str | None


def base_of(data: JsonObject, sequence_number: int, turn: str | None) -> Base:
    """Returns what an item has of its event, for an agent execution that is no sub-agent's."""
    kind = text(data, "type")
    of_turn = None if kind == "assistant_message" else text_id(data, "message_id")
    return {
        "id": f"{kind}-{sequence_number}",
        "sequence_number": sequence_number,
        "timestamp": milliseconds(data, "created_at"),
        "turn": turn or of_turn,
        "step": count(data, "step") if kind in _WITH_STEP else None,
        "agent_execution_id": None,
        "parent_tool_call_id": None,
    }


def item_of(data: JsonObject, base: Base) -> Item | None:
    """Makes the item of an event that stands for itself; ``None`` for one that changes others, or is not shown."""
    kind = text(data, "type")
    if kind == "user_message":
        base["id"] = text_id(data, "message_id") or base["id"]
        files, retry_of = data.get("attachments"), text_id(data, "retry_of")
        return UserMessage(**base, content=text(data, "content"), attachments=files, retry_of=retry_of)
    if kind == "thought":
        return _thought(data, base)
    if kind == "act":
        return ToolCall(
            **base,
            tool_name=text(data, "tool_name"),
            tool_input=data.get("tool_input"),
            title=text_id(data, "title"),
            execution_id=text_id(data, "execution_id"),
            call_id=text_id(data, "call_id"),
            hook=text_id(data, "hook"),
        )
    if kind == "assistant_message":
        return _assistant_message(data, base)
    if kind in NOTES:
        own = {name: value for name, value in data.items() if name not in _ENVELOPE}
        return Note(**base, event=kind, data=own)
    return _end(data, base) if kind in ENDS else None


def _thought(data: JsonObject, base: Base) -> Thought | None:
    content, reasoning = text(data, "thought"), text(data, "reasoning")
    has_reasoning = not _BLANK.fullmatch(reasoning)
    if _BLANK.fullmatch(content) and not has_reasoning:
        return None
    return Thought(**base, content=content, reasoning=reasoning if has_reasoning else None, citations=_citations(data))


def _assistant_message(data: JsonObject, base: Base) -> AssistantMessage:
    """An answer's ``message_id`` is its own. Those of the first releases have none, and carry that of their turn."""
    own = text_id(data, "message_id")
    if own is not None and own != base["turn"]:
        base["id"] = own
    return AssistantMessage(
        **base,
        content=text(data, "content"),
        partial=flag(data, "partial") or None,
        finish=text_id(data, "finish"),
        citations=_citations(data),
    )


def _citations(data: JsonObject) -> tuple[Citation, ...] | None:
    """Returns the sources that a text cites, without the entries that are no objects."""
    listed = data.get("citations")
    if not isinstance(listed, list):
        return None
    found = [entry for entry in listed if isinstance(entry, dict)]
    return tuple(Citation(url=text_id(it, "url"), title=text_id(it, "title"), text=text_id(it, "text")) for it in found)


def _end(data: JsonObject, base: Base) -> End:
    return End(
        **base,
        outcome=data["type"],
        code=text_id(data, "code"),
        message=text_id(data, "message"),
        reason=text_id(data, "reason"),
        finish=text_id(data, "finish"),
        steps=count(data, "steps"),
        usage=data.get("usage"),
        cost_usd=text_id(data, "cost_usd"),
        output=data.get("output"),
    )


def result_of(data: JsonObject, base: Base) -> dict[str, Any]:
    """What an ``observe`` changes of its call."""
    is_error = flag(data, "is_error") or False
    return {
        "state": "unknown" if _is_unknown(data) else "failed" if is_error else "done",
        "tool_output": _output(data),
        "is_error": is_error,
        "duration_ms": count(data, "duration_ms"),
        "result_sequence_number": base["sequence_number"],
        "result_timestamp": base["timestamp"],
    }


def unpaired_result(data: JsonObject, base: Base) -> ToolResult:
    """Makes the item of an ``observe`` whose call is not known."""
    return ToolResult(
        **base,
        tool_name=text(data, "tool_name"),
        tool_output=_output(data),
        is_error=flag(data, "is_error") or False,
        outcome_unknown=_is_unknown(data) or None,
        execution_id=text_id(data, "execution_id"),
        call_id=text_id(data, "call_id"),
        duration_ms=count(data, "duration_ms"),
    )


def _is_unknown(data: JsonObject) -> bool:
    """The tool was cut off: it may or may not have had its effect."""
    return flag(data, "outcome_unknown") or False


def _output(data: JsonObject) -> Any:
    """The first design named the result ``observation``."""
    return data["result"] if "result" in data else data.get("observation")


def requested_approval(data: JsonObject) -> Approval:
    """Returns the approval that an ``approval_requested`` asks for."""
    return Approval(
        state="pending",
        input_hash=text_id(data, "input_hash"),
        expires_at=text_id(data, "expires_at"),
        input_text=text_id(data, "input_text"),
        approval_by=text_id(data, "approval_by"),
        question=_question(data.get("question")),
    )


def _question(asked: Any) -> Question | None:
    """Returns the question of a tool that runs."""
    if not isinstance(asked, dict):
        return None
    return Question(message=text(asked, "message"), schema=_object(asked, "schema"), url=text_id(asked, "url"))


def _object(data: JsonObject, name: str) -> JsonObject | None:
    value = data.get(name)
    return value if isinstance(value, dict) else None


def resolved_approval(data: JsonObject) -> dict[str, Any]:
    """What an ``approval_resolved`` changes of an approval."""
    changes = {
        "edited": flag(data, "edited"),
        "remember": flag(data, "remember"),
        "reason": text_id(data, "reason"),
        "resolved_by": text_id(data, "resolved_by"),
        "input_text": text_id(data, "input_text"),
        "answer": _object(data, "answer"),
    }
    known = {name: value for name, value in changes.items() if value is not None}
    return {"state": text(data, "decision"), **known}


def started_sub_agent(data: JsonObject) -> SubAgent:
    """Returns the sub-agent that a ``sub_agent_start`` begins."""
    return SubAgent(
        agent_execution_id=text(data, "agent_execution_id"),
        agent=text(data, "agent"),
        task=text(data, "task"),
        depth=count(data, "depth"),
    )


def plan_steps(data: JsonObject) -> tuple[PlanStep, ...]:
    """Returns the steps of a ``work_plan``, without those that have no number."""
    steps = data.get("steps")
    found = [_plan_step(step) for step in steps] if isinstance(steps, list) else []
    return tuple(step for step in found if step is not None)


def _plan_step(step: Any) -> PlanStep | None:
    number = count(step, "step_number") if isinstance(step, dict) else None
    if number is None:
        return None
    return PlanStep(step_number=number, description=text(step, "description"), status=text(step, "status"))
