"""Answers to approvals."""

from __future__ import annotations

from typing import Any

from ..api import PendingApproval
from ..state.model import JsonObject, ToolCall


def approval(
    call: PendingApproval | ToolCall, tool_input: JsonObject | None, remember: bool, answer: JsonObject | None
) -> tuple[str, dict[str, Any]]:
    """Returns the ``execution_id`` of the call, and the body of the answer that approves it."""
    execution_id, input_hash = _bound_to(call)
    body: dict[str, Any] = {"decision": "approve", "input_hash": input_hash}
    # A gateway refuses `remember` for a question, and `answer` without one.
    if remember:
        body["remember"] = True
    given = {"tool_input": tool_input, "answer": answer}
    return execution_id, {**body, **{name: value for name, value in given.items() if value is not None}}


def denial(call: PendingApproval | ToolCall, reason: str | None) -> tuple[str, dict[str, Any]]:
    """Returns the ``execution_id`` of the call, and the body of the answer that denies it."""
    execution_id, input_hash = _bound_to(call)
    body = {"decision": "deny", "input_hash": input_hash}
    return execution_id, body if reason is None else {**body, "reason": reason}


def _bound_to(call: PendingApproval | ToolCall) -> tuple[str, str]:
    if not isinstance(call, ToolCall):
        return call["execution_id"], call["input_hash"]
    if call.execution_id is None or call.approval is None or call.approval.input_hash is None:
        raise ValueError(f"The call of {call.tool_name} needs no approval.")
    return call.execution_id, call.approval.input_hash
