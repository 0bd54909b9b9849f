"""The API's timeline, from the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from ..api import TimelineItem
from .model import AssistantMessage, Item, Thought, ToolCall, ToolResult, UserMessage


def timeline(items: Iterable[Item]) -> list[TimelineItem]:
    """Makes the messages, thoughts, tool calls and results that ``GET …/messages`` answers for the same events.

    The API's timeline also has items of other types, and other fields.
    """
    entries = [cast(TimelineItem, entry) for item in items for entry in _entries(item)]
    return sorted(entries, key=lambda entry: entry["sequenceNumber"])


def _entries(item: Item) -> Iterator[dict[str, Any]]:
    match item:
        case UserMessage():
            files = {} if item.attachments is None else {"attachments": item.attachments}
            yield {**_base(item), "content": item.content, **files, **_known({"retryOf": item.retry_of})}
        case Thought():
            yield {**_base(item), "content": item.content, **_known({"reasoning": item.reasoning}), **_citations(item)}
        case AssistantMessage():
            yield {**_base(item), "content": item.content, **_citations(item)}
        case ToolCall():
            yield {**_base(item), **_tool(item), **_known({"title": item.title}), "toolInput": item.tool_input}
            if item.result_sequence_number is not None:
                place = {
                    "id": f"observe-{item.result_sequence_number}",
                    "type": "tool_result",
                    "sequenceNumber": item.result_sequence_number,
                    "timestamp": item.result_timestamp,
                }
                yield {**_base(item), **place, **_tool(item), **_output(item)}
        case ToolResult():
            yield {**_base(item), **_tool(item), **_output(item)}
        case _:
            return


def _base(item: Item) -> dict[str, Any]:
    agent = {"agentExecutionId": item.agent_execution_id, "parentToolCallId": item.parent_tool_call_id}
    place = {"id": item.id, "type": item.type, "sequenceNumber": item.sequence_number, "timestamp": item.timestamp}
    return {**place, **_known(agent)}


def _citations(item: Thought | AssistantMessage) -> dict[str, Any]:
    if item.citations is None:
        return {}
    return {"citations": [_known({"url": it.url, "title": it.title, "text": it.text}) for it in item.citations]}


def _tool(item: ToolCall | ToolResult) -> dict[str, Any]:
    return {"toolName": item.tool_name, **_known({"executionId": item.execution_id, "callId": item.call_id})}


def _output(item: ToolCall | ToolResult) -> dict[str, Any]:
    return {"toolOutput": item.tool_output, "isError": item.is_error}


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
