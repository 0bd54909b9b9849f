"""The types of the HTTP API, made of docs/openapi.json: see clients/python/README.md, Changing it."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict


class ApprovalAnswer(TypedDict):
    """
    A person's answer.
    """

    decision: Literal['approve', 'deny']
    input_hash: str
    """
    The `input_hash` of the pending call. The answer is for what that call shows.
    """
    reason: NotRequired[str]
    """
    The model reads it when the call is denied. At most 4 KiB.
    """
    remember: NotRequired[bool]
    """
    approve: do not ask again for this tool in this conversation.
    """
    tool_input: NotRequired[dict[str, Any] | None]
    """
    approve: the tool runs with this instead. At most 64 KiB.
    """


class AuditActor(TypedDict):
    """
    Who did it.
    """

    id: str | None
    """
    The id of the key or session, the subject of the token, the user of the command; null when nobody is known.
    """
    kind: str
    """
    `key`, `session`, `token`, `operator`, `anonymous` or `process`.
    """


class AuditTarget(TypedDict):
    """
    What it was done to.
    """

    id: str | None
    kind: str


class Cancelled(TypedDict):
    """
    What became of a cancel.
    """

    status: Literal['cancelling', 'not_running']


class ClientToolResult(TypedDict):
    """
    What came of a client tool.
    """

    is_error: NotRequired[bool]
    """
    True when it says what went wrong.
    """
    result: Any
    """
    Any JSON, at most 1 MiB.
    """


Code: TypeAlias = Literal['invalid_body', 'invalid_parameter', 'invalid_id', 'invalid_message', 'key_not_found', 'unknown_agent', 'bad_request', 'unauthenticated', 'insufficient_scope', 'approval_needs_other', 'origin_not_allowed', 'host_not_allowed', 'not_found', 'conversation_not_found', 'execution_not_found', 'agent_execution_not_found', 'blob_not_found', 'method_not_allowed', 'request_timeout', 'conversation_id_taken', 'turn_running', 'turn_complete', 'no_checkpoint', 'approval_answered', 'approval_expired', 'approval_mismatch', 'client_tool_claimed', 'client_tool_answered', 'client_tool_expired', 'turn_not_running', 'idempotency_conflict', 'conflict', 'message_too_long', 'result_too_large', 'blob_too_large', 'too_many_attachments', 'blob_type_refused', 'range_not_satisfiable', 'body_too_large', 'queue_full', 'too_many_turns', 'too_many_blobs', 'rate_limited', 'too_much_at_once', 'too_many_streams_of_owner', 'too_many_streams_of_tenant', 'too_many_streams', 'store_unavailable', 'blobs_unavailable', 'temporal_unavailable', 'turn_unavailable', 'issuer_unavailable', 'shutting_down', 'internal']


class CodecPayload(TypedDict):
    """
    One payload of Temporal, as JSON of Protocol Buffers has it.
    """

    data: NotRequired[str]
    """
    The data of the payload, in Base64.
    """
    metadata: NotRequired[dict[str, str]]
    """
    How `data` is written, and more; each value in Base64.
    """


class CodecPayloads(TypedDict):
    """
    Payloads of Temporal.
    """

    payloads: NotRequired[list[CodecPayload]]


CursorText: TypeAlias = str
"""
The `id` of an event's frame: the event's sequence number, and when it was saved. The number alone is a cursor, too, but only the whole `id` tells that a log is another one than before.
"""


EndReason: TypeAlias = Literal['turn_ended', 'conversation_deleted', 'token_expired']
"""
Why there is nothing to come back for.
"""


FileBytes: TypeAlias = bytes


class FirstMessage(TypedDict):
    """
    What a message makes a conversation of that does not exist. Without effect on one that does.
    """

    agent: NotRequired[str | None]
    """
    A name of the gateway's configuration.
    """
    title: NotRequired[str | None]
    """
    The title, at most 512 bytes. While it is empty, the beginning of the message takes its place.
    """


class Frame(TypedDict):
    """
    A frame of a stream, as [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html) have it.
    Only events have an `id`, which is a cursor: what a browser sends back as `Last-Event-ID`.
    """

    data: str
    event: str
    """
    The `type` of its data, but `turn_error` for the event `error`: `EventSource` has one of its own. The frame
    `conversation` of a chat has no `type`.
    """
    id: NotRequired[str]


class FrameOfList(TypedDict):
    """
    A frame of the stream of a list, as [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html)
    have it. No frame has an `id`.
    """

    data: str
    event: str
    """
    The `type` of its data.
    """


class Health(TypedDict):
    """
    All is well.
    """

    status: Literal['ok']


Id: TypeAlias = str
"""
Part of workflow ids and of paths.
"""


class ItemUsage(TypedDict):
    """
    Tokens of LLM calls whose answers were stored.
    """

    cacheWriteTokens: int
    """
    Input tokens that the provider wrote to its cache. They are part of `inputTokens`.
    """
    cachedTokens: int
    """
    Input tokens that the provider read from its cache. They are part of `inputTokens`.
    """
    inputTokens: int
    outputTokens: int
    reasoningTokens: int
    """
    Output tokens of the reasoning. They are part of `outputTokens`.
    """


class Key(TypedDict):
    """
    An API key, without its secret.
    """

    created_at: str
    expires_at: str | None
    """
    Null: until it is revoked.
    """
    id: Id
    last_used_at: str | None
    """
    When the key was last used, exact to about a minute.
    """
    name: str
    """
    What it is for.
    """
    owner: str | None
    """
    Null: it sees every owner's conversations of the tenant.
    """
    revoked_at: str | None
    scopes: list[str]
    """
    Skip words that you do not know; there may be more.
    """
    state: Literal['valid', 'expired', 'revoked']
    tenant: str


class KeyPage(TypedDict):
    """
    A page of keys.
    """

    keys: list[Key]
    """
    The keys, ordered by id.
    """
    next_after: str | None
    """
    `after` of the next page; null at the end.
    """


MessageText: TypeAlias = str
"""
Not blank, without NUL. The limit counts bytes of UTF-8, and may be configured lower.
"""


class NewAttachment(TypedDict):
    """
    A file that a message names.
    """

    blob_id: Id
    """
    The id of the file, as the upload answered it.
    """


class NewConversation(TypedDict):
    """
    A conversation to be.
    """

    agent: NotRequired[str | None]
    """
    A name of the gateway's configuration.
    """
    id: NotRequired[Id | None]
    title: NotRequired[str | None]
    """
    The title, at most 512 bytes. While it is empty, the beginning of the first message takes its place.
    """


class NewKey(TypedDict):
    """
    A key to be.
    """

    lifetime_s: NotRequired[int | None]
    """
    How many seconds it is valid. Left out: as `key_lifetime` of `[auth]` says, else until it is revoked. It ends with the
    caller's own credential at the latest.
    """
    name: NotRequired[str]
    """
    What it is for.
    """
    owner: NotRequired[str | None]
    """
    Only this owner's conversations. Left out: as the caller's own.
    """
    scopes: NotRequired[list[Literal['read', 'write', 'approve', 'codec', 'admin', 'admin:all']]]
    tenant: NotRequired[Id | None]


OnBusy: TypeAlias = Literal['queue', 'steer', 'interrupt', 'reject']
"""
What a message does when a turn is running.
"""


class ParentCall(TypedDict):
    """
    The tool call that started a sub-agent.
    """

    call_id: str
    execution_id: Id
    name: str
    """
    The tool.
    """
    parameters: Any
    """
    What the model called it with.
    """
    tool_input: Any
    """
    The same as `parameters`, for clients of the first version.
    """
    tool_name: str
    """
    The same as `name`, for clients of the first version.
    """


class Problem(TypedDict):
    """
    An error (RFC 9457). Decide by `code`.
    """

    code: Code
    detail: str
    """
    What happened and what to do, for people.
    """
    instance: str
    """
    The path that was asked for.
    """
    request_id: str
    """
    The id of the request, as in the header `x-request-id` and in the gateway's log.
    """
    status: int
    """
    The HTTP status.
    """
    title: str
    """
    One line for people, the same for each occurrence of the code.
    """
    type: str
    """
    The page of the code, on this gateway.
    """


class ReconnectFrame(TypedDict):
    """
    `data` of the last frame of a gateway that stops: come back, after a while.
    """

    delay_ms: int
    """
    Another time for each reader.
    """
    type: Literal['reconnect']


class RemoteToolResult(TypedDict):
    """
    What came of a remote tool.
    """

    is_error: NotRequired[bool]
    """
    True when it says what went wrong.
    """
    result: Any
    """
    Any JSON, at most 1 MiB.
    """
    run_id: Id
    """
    The `run_id` that the tool was given.
    """


class Rename(TypedDict):
    """
    What to change.
    """

    title: str
    """
    The new title, at most 512 bytes. An empty one is replaced by the beginning of the next message.
    """


class Resumed(TypedDict):
    """
    What became of a resume.
    """

    from_step: NotRequired[int]
    """
    Only when `resuming`: the step of the checkpoint from which it goes on; 0 without one.
    """
    status: Literal['resuming', 'running']


Sequence: TypeAlias = int
"""
The number of an event in its conversation: 1, 2, 3, without gaps. 0 is before the first.
"""


class Session(TypedDict):
    """
    Who the caller is.
    """

    credential: Literal['key', 'session', 'token', 'none']
    expires_at: str | None
    """
    When their credential ends; null: not by time.
    """
    owner: str | None
    """
    Null: they see every owner's conversations of the tenant.
    """
    scopes: list[Literal['read', 'write', 'approve', 'codec', 'admin', 'admin:all']]
    tenant: str


class StoredResult(TypedDict):
    """
    A result that is stored.
    """

    execution_id: Id
    status: Literal['stored']


class Tenant(TypedDict):
    """
    A tenant.
    """

    agents: list[str]
    """
    The agents that its conversations may have, as this gateway is configured.
    """
    conversations: int
    """
    Conversations; 10000 stands for that many or more.
    """
    last_activity_at: str | None
    """
    When something last happened in a conversation; null without any.
    """
    running_turns: int
    """
    Turns that run now.
    """
    tenant: str
    valid_keys: int
    """
    API keys that are valid now.
    """


class TenantPage(TypedDict):
    """
    A page of tenants.
    """

    next_after: str | None
    """
    `after` of the next page; null at the end.
    """
    tenants: list[Tenant]
    """
    The tenants, ordered by id.
    """


class TextFrame(TypedDict):
    """
    `data` of a text's frame: what the model is writing now. Its key is `agent_execution_id`, `step` and `part`.
    """

    agent_execution_id: str
    conversation_id: Id
    generation: int
    """
    The try that wrote the text: with a larger one, the text begins anew.
    """
    message_id: str
    offset: NotRequired[int]
    """
    Bytes of UTF-8 before this piece.
    """
    part: Literal['text', 'reasoning']
    step: int
    text: NotRequired[str]
    type: Literal['text_start', 'text_delta', 'text_end']


class TimelineItem(TypedDict):
    """
    One item of a timeline.
    """

    agentExecutionId: NotRequired[str | None]
    """
    The id of the sub-agent's agent execution, in an item of a sub-agent.
    """
    attachments: NotRequired[list[Any]]
    """
    The files that a user's message names: `blob_id`, `media_type`, `file_name` and `bytes` of each.
    """
    callId: NotRequired[str]
    """
    The model's id of the tool call. The tool call, its result and the other items about the call have the same one.
    """
    code: NotRequired[str]
    """
    The code of an `error`, which is stable.
    """
    content: NotRequired[str]
    """
    Text of a message or a thought; the sentence of an `error`; the reason of a `cancelled`.
    """
    costUsd: NotRequired[str]
    """
    What that cost, in USD; absent when no model has a price.
    """
    data: NotRequired[Any]
    """
    The event's data. An item has it when its type is its event's, but for `error` and `cancelled`.
    """
    durationMs: NotRequired[int]
    """
    How long the tool of a tool result took, in milliseconds.
    """
    executionId: NotRequired[str]
    """
    The id of the tool execution. The tool call, its result and the other items about the call have the same one.
    """
    finish: NotRequired[str]
    """
    Why the text of an answer ends where it does.
    """
    id: str
    """
    The message's id, else `<event type>-<sequence number>`.
    """
    isError: NotRequired[bool]
    """
    Whether a tool result is an error.
    """
    outcomeUnknown: NotRequired[bool]
    """
    True of a tool result whose tool was cut off: it may or may not have had its effect.
    """
    parentToolCallId: NotRequired[str | None]
    """
    The `callId` of the tool call that started the sub-agent, in an item of a sub-agent. The item belongs under that call.
    """
    partial: NotRequired[bool]
    """
    True of an answer that is only the text so far, because the turn was cut short.
    """
    sequenceNumber: Sequence
    """
    The event's place.
    """
    step: NotRequired[int]
    """
    The LLM call that the item comes from, of those of its agent execution: from 0.
    """
    timestamp: int
    """
    Milliseconds since 1970.
    """
    toolInput: NotRequired[Any]
    """
    The input of a tool call, exactly as the event has it.
    """
    toolName: NotRequired[str]
    """
    The name of the tool, in a tool call or result.
    """
    toolOutput: NotRequired[Any]
    """
    The output of a tool result, exactly as the event has it.
    """
    type: Literal['user_message', 'thought', 'tool_call', 'tool_result', 'assistant_message', 'error', 'cancelled', 'work_plan', 'step_start', 'step_end', 'approval_requested', 'approval_resolved', 'client_tool_requested', 'sub_agent_start', 'context_compacted', 'model_fallback']
    usage: NotRequired[ItemUsage]
    """
    What the agent and all sub-agents below it took. The last item of a turn, or of a sub-agent's part, has it.
    """


class ToolExecution(TypedDict):
    """
    A tool call being carried out. Its input and its result are in the events.
    """

    approval: str | None
    """
    How its approval stands; null when it needs none.
    """
    asked_at: str
    attempts: int
    """
    How often a worker has begun it; 0 of a tool that a client runs.
    """
    call_id: str
    """
    The model's.
    """
    duration_ms: int
    """
    How long it ran.
    """
    effect: Literal['read', 'idempotent', 'once']
    execution_id: Id
    finished_at: str | None
    is_error: bool
    started_at: str | None
    """
    When it was begun for the first time.
    """
    status: Literal['pending', 'running', 'completed', 'failed', 'cancelled', 'unknown']
    step: int | None
    """
    The step that asked for it, from 0; null for a hook after the turn.
    """
    timeout_ms: int
    tool_name: str


class ToolResultSlice(TypedDict):
    """
    A slice of a tool's result, cut between characters.
    """

    execution_id: Id
    next_offset: int | None
    """
    `offset` of the next slice; null at the end.
    """
    offset: int
    """
    Where the slice begins, in bytes of UTF-8.
    """
    text: str
    """
    A result that is a string is read as its text, any other one as its JSON. Empty behind the end.
    """
    total_bytes: int
    """
    Length of the whole result, in bytes of UTF-8.
    """


class Usage(TypedDict):
    """
    Tokens of LLM calls.
    """

    cache_write_tokens: int
    """
    Tokens that the provider wrote to its cache. They are part of `input_tokens`.
    """
    cached_tokens: int
    """
    Tokens that the provider read from its cache. They are part of `input_tokens`.
    """
    input_tokens: int
    """
    Tokens read, with the cached ones.
    """
    output_tokens: int
    """
    Tokens written, with those of the reasoning.
    """
    reasoning_tokens: int
    """
    Tokens of the reasoning. They are part of `output_tokens`.
    """


class UsageDay(TypedDict):
    """
    What a tenant took of one model on one day.
    """

    calls: int
    """
    LLM calls whose answers were stored.
    """
    cost_usd: str
    """
    What these calls cost, in USD. Calls of a model without a price count as 0.
    """
    cut_calls: int
    """
    Calls of turns with a budget that were cut before their answers were stored. They are not among `calls`.
    """
    cut_cost_usd: str
    """
    The most that they may have cost, in USD.
    """
    cut_tokens: int
    """
    The most tokens that these may have taken.
    """
    day: str
    """
    The day, in UTC.
    """
    model: str
    """
    `provider/model`.
    """
    usage: Usage


class UsagePage(TypedDict):
    """
    A page of sums.
    """

    next_after: str | None
    """
    `after` of the next page; null at the end.
    """
    usage: list[UsageDay]
    """
    The rows, ordered by day and model.
    """


class WaitingCall(TypedDict):
    """
    A tool call as someone outside sees it.
    """

    agent_execution_id: Id
    call_id: str
    """
    The model's.
    """
    execution_id: Id
    expires_at: NotRequired[str]
    """
    No answer is taken after it.
    """
    message_id: Id
    requested_at: str
    tool_input: Any
    """
    The input as the model wrote it, commonly an object.
    """
    tool_name: str


class WaitingClientTools(TypedDict):
    """
    The calls that the client is to run.
    """

    client_tools: list[WaitingCall]
    """
    Oldest first.
    """


class AcceptedMessage(TypedDict):
    """
    A stored message.
    """

    conversation_id: Id
    message_id: Id
    """
    Ours, as events name it.
    """
    status: Literal['queued', 'accepted_before']


class AgentExecution(TypedDict):
    """
    An agent at work: on a turn, or on a task that another agent gave it.
    """

    agent: str
    cost_usd: str | None
    """
    What they cost, in USD; null when their model has no price.
    """
    depth: int
    """
    0 for a turn's own agent.
    """
    error_code: str | None
    finished_at: str | None
    id: Id
    input_tokens: int
    """
    The same as in `usage`, for clients of the first version.
    """
    message_id: Id
    """
    The message whose turn it belongs to.
    """
    output_tokens: int
    """
    The same as in `usage`, for clients of the first version.
    """
    parentActToolCall: ParentCall | None
    parent_execution_id: str | None
    root_execution_id: Id
    started_at: str
    status: Literal['running', 'completed', 'cancelled', 'failed']
    steps: int
    """
    LLM calls so far.
    """
    usage: Usage
    """
    What its LLM calls took, without those of its sub-agents.
    """
    workflow_id: str
    """
    The workflow that runs it. All turns of a conversation are runs of one workflow.
    """
    workflow_url: str | None
    """
    Its page in the Temporal UI; null where none is configured.
    """


class AgentExecutions(TypedDict):
    """
    A page of agent executions.
    """

    executions: list[AgentExecution]
    """
    The agent executions, in the order in which they began.
    """
    next_after: str | None
    """
    `after` of the next page; null at the end.
    """


class AnsweredApproval(TypedDict):
    """
    The call that was answered.
    """

    decision: Literal['approved', 'denied']
    execution_id: Id
    remember: bool
    tool_input: Any
    """
    What runs, when it was approved.
    """
    tool_name: str


class AuditEntry(TypedDict):
    """
    An entry of the audit trail. Skip words that you do not know; there will be more.
    """

    action: str
    actor: AuditActor
    address: str | None
    """
    Where the request came from; null for what came by no request.
    """
    at: str
    details: dict[str, Any]
    """
    The details, which depend on the action: see `docs/operate/audit.md`.
    """
    id: int
    """
    Its place: entries have numbers without gaps, in their order.
    """
    outcome: str
    """
    `requested`, `done` or `refused`.
    """
    request_id: str | None
    """
    The id of the request, as in the header `x-request-id` and in the log.
    """
    target: AuditTarget
    tenant: str | None
    """
    Null: no tenant is known. Only admins of all tenants see these.
    """


class AuditPage(TypedDict):
    """
    A page of the audit trail.
    """

    entries: list[AuditEntry]
    """
    The entries in their order, the oldest first.
    """
    next_after: int | None
    """
    `after` of the next page; null at the end. Whoever follows the trail goes on behind the last entry.
    """


class Blob(TypedDict):
    """
    A stored file.
    """

    blob_id: Id
    """
    What messages name it by.
    """
    bytes: int
    file_name: str
    """
    The name of the file, without a path; may be empty.
    """
    media_type: str
    """
    The media type, without parameters.
    """
    sha256: str
    """
    The SHA-256 hash of the bytes, in hexadecimal digits.
    """


class Cancel(TypedDict):
    """
    What to cancel.
    """

    message_id: NotRequired[Id | None]


class Chat(TypedDict):
    """
    A message, and where it goes.
    """

    agent: NotRequired[str | None]
    """
    The agent of a new conversation.
    """
    attachments: NotRequired[list[NewAttachment]]
    """
    Files that were uploaded before, in the order in which the model is given them.
    """
    conversation_id: NotRequired[Id | None]
    message: MessageText
    """
    The text of the message. When there are `attachments`, it may be left out, or empty.
    """
    message_id: NotRequired[Id | None]


class ChatFrame(TypedDict, closed=True):
    """
    `data` of the first frame of a chat: where the message went.
    """

    conversation_id: Id
    message_id: str


class Checkpoint(TypedDict):
    """
    A stored point from which the turn can go on.
    """

    execution_id: Id | None
    generation: int
    """
    Which try stored it: of the agent execution's LLM calls, or of the tool. 0: the hooks before the turn, for which
    no model is called.
    """
    step: int
    """
    The number of the step, from 0.
    """
    stored_at: str
    type: Literal['llm_complete', 'tool_start', 'llm_partial']


class ClaimOfClientTool(TypedDict):
    """
    Who is to run a call.
    """

    claimant: Id
    """
    The client's own id of itself, or of this run of the call. The same one may claim again, to keep the claim.
    """
    lease_ms: NotRequired[int]
    """
    How long no other client gets the claim, in milliseconds.
    """


class ClaimedClientTool(TypedDict):
    """
    The client is to run the call.
    """

    claimant: Id
    execution_id: Id
    expires_at: str
    """
    When the claim ends. Until then no other client gets it.
    """
    is_repeated: bool
    """
    True when another client had claimed the call, and its claim ended without a result: the tool may have had its
    effect.
    """


class Conversation(TypedDict):
    """
    A conversation.
    """

    agent: str
    created_at: str
    id: Id
    last_sequence: Sequence
    """
    The number of the last event, 0 before the first.
    """
    message_count: int
    """
    User messages that turns have taken, and the agent's answers.
    """
    title: str
    updated_at: str
    """
    The time of the last event.
    """


class ConversationRemovedFrame(TypedDict):
    """
    `data` of the frame of a conversation that is not in the list any more.
    """

    conversation_id: Id
    type: Literal['conversation_removed']


class CreatedKey(TypedDict):
    """
    A key that was made.
    """

    expires_at: str | None
    id: Id
    key: str
    """
    The key itself, this once: only its hash is stored.
    """
    owner: str | None
    scopes: list[str]
    tenant: str


class EndFrame(TypedDict):
    """
    `data` of the last frame of a stream that its reader need not open again.
    """

    reason: EndReason
    reconnect: bool
    """
    Always false.
    """
    type: Literal['end']


class Event(TypedDict):
    """
    An event. Skip types that you do not know; there will be more.
    """

    conversation_id: Id
    created_at: str
    event_data: Any
    """
    The data of the event, which depends on its type: see the API's documentation.
    """
    event_type: str
    id: str
    message_id: str
    """
    The user message whose turn this event belongs to.
    """
    sequence_number: Sequence


class EventFrame(TypedDict):
    """
    `data` of an event's frame: beside these fields, those of `event_data`.
    """

    conversation_id: Id
    created_at: str
    message_id: str
    sequence_number: Sequence
    type: str
    """
    The event's type.
    """


class EventPage(TypedDict):
    """
    A page of events.
    """

    events: list[Event]
    has_more: bool
    """
    There are more events. Ask again, from the last sequence number + 1; when the page was read backwards, before its
    first one.
    """


class ExecutionStatus(TypedDict):
    """
    Where a conversation stands.
    """

    current_message_id: Id | None
    is_running: bool
    """
    A turn runs, or a message waits for its turn.
    """
    last_sequence: Sequence
    """
    The number of the last event, 0 before the first.
    """


class ListedConversation(Conversation):
    """
    A conversation in a list, with what goes on in it.
    """

    state: Literal['idle', 'queued', 'running', 'waiting_for_approval', 'waiting_for_client_tool']
    waiting_approvals: int
    """
    Calls that a person must approve.
    """
    waiting_client_tools: int
    """
    Calls that the client is to run.
    """


class NewMessage(TypedDict):
    """
    A message to be.
    """

    attachments: NotRequired[list[NewAttachment]]
    """
    Files that were uploaded before, in the order in which the model is given them.
    """
    content: MessageText
    """
    The text of the message. When there are `attachments`, it may be left out, or empty.
    """
    create: NotRequired[FirstMessage | None]
    message_id: NotRequired[Id | None]
    on_busy: NotRequired[OnBusy]


class PendingApproval(WaitingCall):
    """
    A call that waits for an approval.
    """

    input_hash: str
    """
    The hash to send back with the answer. It binds the answer to this tool, this input and the tool's definition.
    """


class PendingApprovals(TypedDict):
    """
    The calls that wait for a person.
    """

    approvals: list[PendingApproval]
    """
    Oldest first.
    """


class ReplayFrame(TypedDict):
    """
    `data` of the first frame: where this connection begins.
    """

    conversation_id: Id
    from_sequence: int
    """
    The first event that will come.
    """
    last_sequence: Sequence
    """
    The last one there is now.
    """
    type: Literal['replay']


class ResetFrame(TypedDict):
    """
    `data` of the frame that a reader gets whose cursor is of another log: the database has lost its last commits, or the
    conversation was removed and made anew. What the reader has from `from_sequence` on counts no more.
    """

    conversation_id: Id
    from_sequence: Sequence
    """
    The first event that will come.
    """
    type: Literal['reset']


class StepUsage(TypedDict):
    """
    What the LLM call of one step took.
    """

    cost_usd: str | None
    """
    What the call cost, in USD; null when the model has no price.
    """
    generation: int
    """
    Which try of the agent execution's LLM calls answered, from 1. Numbers that are left out failed or were cut.
    """
    model: str
    """
    The model that answered.
    """
    step: int
    """
    The number of the step, from 0.
    """
    stored_at: str
    """
    When the answer was stored.
    """
    usage: Usage


class TenantUsageDay(UsageDay):
    """
    What a tenant took of one model on one day.
    """

    tenant: str


class TenantUsagePage(TypedDict):
    """
    A page of sums.
    """

    next_after: str | None
    """
    `after` of the next page; null at the end.
    """
    usage: list[TenantUsageDay]
    """
    The rows, ordered by tenant, day and model.
    """


class Timeline(TypedDict):
    """
    What a chat window shows.
    """

    conversationId: str
    nextBefore: Sequence | None
    timeline: list[TimelineItem]
    """
    The items, in order: as many as the limits of items and of bytes allow.
    """
    total: int
    """
    Items of the page.
    """


class AgentExecutionDetail(AgentExecution):
    """
    An agent execution with what each of its LLM calls took.
    """

    checkpoints: list[Checkpoint]
    """
    The newest 1000 checkpoints, in the order of their steps.
    """
    step_usage: list[StepUsage]
    """
    The newest 1000 LLM calls whose answers were stored, in the order of their steps.
    """
    tool_executions: list[ToolExecution]
    """
    The newest 1000 tool calls, in the order in which they were asked for.
    """


class ConversationChangedFrame(TypedDict):
    """
    `data` of the frame of a conversation that is new in the list, or shown otherwise than before.
    """

    conversation: ListedConversation
    """
    It replaces the one with the same id.
    """
    type: Literal['conversation_changed']


class ConversationPage(TypedDict):
    """
    A page of conversations.
    """

    conversations: list[ListedConversation]
    next_before: str | None
    """
    `before` of the next page; null on the last one.
    """


class ListFrame(TypedDict):
    """
    `data` of the first frame of a list's stream, and of the frame that replaces what a reader has: the newest conversations.
    """

    conversations: list[ListedConversation]
    """
    The last updated first.
    """
    next_before: str | None
    """
    `before` of the page of the list with older ones; null when there are none.
    """
    type: Literal['list']
