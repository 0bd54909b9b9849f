"""Questions to a state. The rules are those of the shared transcripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .model import AssistantMessage, End, Item, State, ToolCall, UserMessage


def end_of_turn(items: Sequence[Item], message_id: str) -> End | None:
    """Returns the end of the turn that took a message; ``None`` while it has not ended, or is not known.

    A message that joined a turn (``steer``) has the end of that turn.
    """
    turn: str | None = message_id
    end: End | None = None
    for item in reversed(items):
        if isinstance(item, UserMessage) and item.id == message_id:
            turn = item.turn
            break
    for item in reversed(items):
        if isinstance(item, End) and item.turn == turn and item.agent_execution_id is None:
            end = item
        elif isinstance(item, UserMessage) and item.id == message_id:
            break
    return end


def answer_of_turn(items: Sequence[Item], message_id: str) -> str | None:
    """Returns what the turn that took a message has answered; ``None`` when it has not, or not yet.

    A provider may have cut the answer into several items: their texts are joined.
    """
    end = end_of_turn(items, message_id)
    if end is None or end.outcome != "complete":
        return None
    parts: list[str] = []
    for item in reversed(items_of_agent(items_of_turn(items, end.turn))):
        if isinstance(item, AssistantMessage):
            if parts and item.finish != "length":
                break
            parts.append(item.content)
    return "".join(reversed(parts))


def items_of_turn(items: Iterable[Item], turn: str | None) -> list[Item]:
    """Returns the items of a turn, those of its sub-agents included."""
    return [item for item in items if item.turn is not None and item.turn == turn]


def items_of_agent(items: Iterable[Item], agent_execution_id: str | None = None) -> list[Item]:
    """Returns the items of one agent: of a sub-agent, or of the turns' own agents when none is named."""
    return [item for item in items if item.agent_execution_id == agent_execution_id]


def pending_approvals(state: State) -> list[ToolCall]:
    """Returns the calls that wait for a person."""
    calls = (item for item in state.items if isinstance(item, ToolCall) and item.state == "running")
    return [call for call in calls if call.approval is not None and call.approval.state == "pending"]
