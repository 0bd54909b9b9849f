"""The state of a conversation: the same in every client of Everturn, as described with the shared transcripts.

Everything here is frozen. A field that is not known is ``None``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Json: TypeAlias = Any
"""A value of JSON."""

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON."""

Outcome: TypeAlias = Literal["complete", "error", "cancelled"]
"""How an agent execution ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenText:
    """A text that a model is writing. It is not stored: the event that follows has the whole text."""

    agent_execution_id: str
    step: int
    """The LLM call of the agent execution, from 0."""
    part: str
    """A ``text`` becomes the ``content`` of a thought or an answer, a ``reasoning`` the ``reasoning`` of a thought.
    ``call_`` with a number is a tool call, which ``written_call`` reads."""
    generation: int
    """The try that wrote the text."""
    text: str
    ended: bool
    """The model has finished the text, and its event follows."""
    message_id: str
    """The message whose turn it is."""
    parent_tool_call_id: str | None = None
    """Of a sub-agent's text: the ``call_id`` of the call that started the sub-agent."""

    def written_call(self) -> WrittenCall | None:
        """Returns the tool call that the model is writing; ``None`` for a text of another kind."""
        if not self.part.startswith("call_"):
            return None
        tool_name, _, tool_input = self.text.partition("\n")
        return WrittenCall(tool_name=tool_name, tool_input=tool_input)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A tool call that a model is writing."""

    tool_name: str
    tool_input: str
    """The arguments so far, as the model writes them: JSON that is not whole yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWait:
    """A call of a model that the provider has refused, and that is made again later."""

    agent_execution_id: str
    step: int
    """The LLM call of the agent execution, from 0."""
    code: str
    """The code of the refusal: ``llm_overloaded``, ``llm_rate_limited`` or ``llm_unavailable``."""
    message: str
    """The refusal in a sentence."""
    attempt: int
    """The number of the next try."""
    retry_after_ms: int
    """Milliseconds from the arrival of the news to the next try."""
    message_id: str
    """The message whose turn it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress:
    """A report of a running tool: its progress, or a line of its log."""

    execution_id: str
    agent_execution_id: str
    tool_name: str
    progress: int | float | None = None
    """The amount of work that is done, in the tool's own unit."""
    total: int | float | None = None
    """The whole amount of work, in the same unit."""
    message: str
    """The tool's words; empty without words."""
    level: str | None = None
    """The level of a line of the tool's log, like ``info``. Progress has no level."""
    message_id: str
    """The message of the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBase:
    """What all items have."""

    id: str
    """Unique in the conversation."""
    sequence_number: int
    """The place of its event."""
    timestamp: int
    """Milliseconds since 1970; 0 when it is not known."""
    turn: str | None = None
    """The message id of its turn."""
    step: int | None = None
    """The LLM call that it belongs to, from 0. Calls of one step run in parallel."""
    agent_execution_id: str | None = None
    """Of a sub-agent's item: its agent execution."""
    parent_tool_call_id: str | None = None
    """Of a sub-agent's item: the ``call_id`` of the call that started the sub-agent, under which it belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage(ItemBase):
    """What the user said."""

    content: str
    attachments: Json = None
    """``blob_id``, ``media_type``, ``file_name`` and ``bytes`` of each file."""
    retry_of: str | None = None
    """The message whose failed turn the user has retried. A retry has no text."""
    type: Literal["user_message"] = "user_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A source that a text cites. At least the address or the title is present."""

    url: str | None = None
    """The address of the source, with ``http`` or ``https``."""
    title: str | None = None
    text: str | None = None
    """The cited passage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought(ItemBase):
    """What the model said to the user before it asked for tools, and its reasoning. At least one is not blank."""

    content: str
    """Empty when the model only reasoned."""
    reasoning: str | None = None
    citations: tuple[Citation, ...] | None = None
    """The sources that the text cites."""
    type: Literal["thought"] = "thought"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of a running tool to a person. A call may ask several questions, one after another."""

    message: str
    """The words of the tool's server. Show them as plain text."""
    schema: JsonObject | None = None
    """The form: the JSON Schema of an object with flat properties. ``None`` for a question with a ``url``."""
    url: str | None = None
    """The address that the person is to open. ``None`` for a form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """The approval that a call needs, or needed."""

    state: str
    """``pending``, then the decision: ``approved``, ``denied``, ``declined``, ``expired``, ``cancelled``, or a word
    that is newer."""
    input_hash: str | None = None
    """To be sent back with the answer: binds it to this tool and this input."""
    expires_at: str | None = None
    input_text: str | None = None
    """The input as the store keeps it, character for character. Show people this text."""
    approval_by: str | None = None
    """``other``: another person than the one who asked must approve."""
    edited: bool | None = None
    """It was approved with another input than the model's."""
    remember: bool | None = None
    """This tool never asks again in this conversation."""
    reason: str | None = None
    resolved_by: str | None = None
    question: Question | None = None
    """The question of a tool that runs. ``None`` when a person is to allow the call."""
    answer: JsonObject | None = None
    """The person's answer to a question with a ``schema``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientToolRequest:
    """Marks a call that a client is to run."""

    expires_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgent:
    """An agent that a call gave a task to. Its items have the same ``agent_execution_id``."""

    agent_execution_id: str
    agent: str
    task: str
    depth: int | None = None
    """1: under the turn's own agent."""
    state: Literal["running"] | Outcome = "running"
    """``running``, then how it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(ItemBase):
    """A tool call, and what became of it."""

    tool_name: str
    tool_input: Json
    """What the tool runs with: a person may have edited it."""
    title: str | None = None
    """The title for people, like ``Search the web for cats``; ``None``: show the tool's name. It changes with an edited
    input."""
    execution_id: str | None = None
    """The tool execution. Calls of the first releases have none."""
    call_id: str | None = None
    """The model's id of the call."""
    hook: str | None = None
    """The hook that called the tool, like ``before_turn``; ``None`` when a model asked for it."""
    state: Literal["running", "done", "failed", "unknown"] = "running"
    """``unknown``: the tool was cut off, and may or may not have had its effect (``tool_output`` says so); or the turn
    ended, and nobody said how the call did (then there is no ``tool_output``)."""
    tool_output: Json = None
    is_error: bool | None = None
    duration_ms: int | None = None
    result_sequence_number: int | None = None
    """The place of the result's event; ``None`` while there is no result."""
    result_timestamp: int | None = None
    approval: Approval | None = None
    client_tool: ClientToolRequest | None = None
    """The call is run by a client."""
    sub_agent: SubAgent | None = None
    """The sub-agent that the call started."""
    type: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(ItemBase):
    """How a tool ended whose call is not known, because the items begin after it."""

    tool_name: str
    tool_output: Json
    is_error: bool
    outcome_unknown: bool | None = None
    """``True``: the tool was cut off, and may or may not have had its effect."""
    execution_id: str | None = None
    call_id: str | None = None
    duration_ms: int | None = None
    type: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage(ItemBase):
    """What the agent answered."""

    content: str
    partial: bool | None = None
    """``True``: the text so far of a cancelled turn."""
    finish: str | None = None
    """``stop``, ``length``, ``cancelled``, ``invalid_output``, ``step_limit``, or a word that is newer."""
    citations: tuple[Citation, ...] | None = None
    """The sources that the text cites."""
    type: Literal["assistant_message"] = "assistant_message"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """A step of a work plan. It has nothing to do with an LLM call."""

    step_number: int
    description: str
    status: str
    """``pending``, ``running``, ``completed``, ``failed``, or a word that is newer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPlan(ItemBase):
    """A plan that the agent made. It stays in its place while its steps go on."""

    title: str
    steps: tuple[PlanStep, ...]
    plan_id: str | None = None
    type: Literal["work_plan"] = "work_plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(ItemBase):
    """Something worth a quiet line: a fallback to another model, a compaction, a skill."""

    event: str
    """The type of the event."""
    data: JsonObject
    """The event's own fields, as on the wire (docs/api/events.md)."""
    type: Literal["note"] = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class End(ItemBase):
    """How a turn ended, or the part of a sub-agent."""

    outcome: Outcome
    code: str | None = None
    """Of an error: its stable code, which has a page in docs/errors."""
    message: str | None = None
    """Of an error: a sentence for people."""
    reason: str | None = None
    """Of a cancel."""
    finish: str | None = None
    steps: int | None = None
    """LLM calls."""
    usage: Json = None
    """Tokens, with those of all sub-agents, as on the wire."""
    cost_usd: str | None = None
    """A decimal number as a text."""
    output: Json = None
    """The value of the answer, when the agent has an output schema."""
    type: Literal["end"] = "end"


Item: TypeAlias = UserMessage | Thought | ToolCall | ToolResult | AssistantMessage | WorkPlan | Note | End
"""One thing that a person is shown. ``type`` tells which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A conversation at one moment. It is never changed: what happens next makes a new one."""

    cursor: str = "0"
    """The ``id`` of the last event, as the text that it is: what to come back with. ``"0"`` before the first."""
    status: Literal["idle", "running", "waiting"] = "idle"
    """``waiting``: a turn runs, and at least one of its calls waits for a person or for a client tool."""
    turn: str | None = None
    """The message id of the turn that runs."""
    ended: str | None = None
    """Why the gateway said not to come back: ``conversation_deleted``, ``token_expired``, or a reason that is newer."""
    items: tuple[Item, ...] = ()
    """What a person is shown, in order. An item that has not changed is the same object as before."""
    texts: tuple[OpenText, ...] = ()
    """What models are writing now, in the order in which the texts began."""
    waits: tuple[ModelWait, ...] = ()
    """The calls of models that wait for their provider, the newest news last."""
    progress: tuple[ToolProgress, ...] = ()
    """The latest reports of running tools, the newest last."""
