"""The types of the HTTP API, made of docs/openapi.json: see clients/python/README.md, Changing it."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict


class AgentLimits(TypedDict):
    """
    Limits of an agent's turns. Null means: no limit.
    """

    max_steps: int | None
    """
    The most LLM calls of an agent execution.
    """
    turn_timeout_ms: int | None
    """
    The time limit of a turn, in milliseconds.
    """
    turn_tokens: int | None
    """
    The most tokens of a turn, read and written.
    """
    turn_usd: str | None
    """
    The most money of a turn, in USD.
    """


class AgentTool(TypedDict):
    """
    A tool of an agent.
    """

    kind: str
    """
    The party that runs the tool: `worker`, `client`, `remote` or `delegate`.
    """
    name: str
    """
    The tool's name; `server__*` stands for every tool of an MCP server.
    """
    needs_approval: bool
    """
    True if a person must approve calls of the tool: every call, or the calls that the configuration names.
    """


class ApprovalAnswer(TypedDict):
    """
    A person's answer to a pending tool call.
    """

    answer: NotRequired[dict[str, Any] | None]
    """
    With `approve`, for a call with a `question`: fields of the question's form. At most 64 KiB.
    """
    decision: Literal['approve', 'deny']
    input_hash: str
    """
    `input_hash` of the pending call, or of one of its proposals. The answer counts only for the tool and the input of
    the hash.
    """
    reason: NotRequired[str]
    """
    Reason for the model to read when the call is denied. At most 4 KiB.
    """
    remember: NotRequired[bool]
    """
    With `approve`: the tool needs no further approval in the conversation. Refused for a call that another person must
    approve (`approval_by`).
    """
    tool_input: NotRequired[dict[str, Any] | None]
    """
    With `approve`: input that replaces the model's input. At most 64 KiB. The gateway brings the input into the
    canonical form, so spaces and the order of keys do not matter; numbers stay as written.
    """


class AuditActor(TypedDict):
    """
    The actor: a key, a session, a person or a process.
    """

    id: str | None
    """
    The id of the key or session, the subject of the token, or the user of the command; null when the actor is
    unknown.
    """
    kind: str
    """
    `key`, `session`, `token`, `operator`, `anonymous` or `process`.
    """


class AuditTarget(TypedDict):
    """
    The target of the action.
    """

    id: str | None
    kind: str


class CallParameters(TypedDict):
    """
    Parameters of an LLM call. Null: the provider decided.
    """

    extra_body: Any
    """
    Further fields of the request's body.
    """
    max_output_tokens: int | None
    output_schema: Any
    """
    JSON schema of the answer.
    """
    parallel_tool_calls: bool | None
    reasoning_effort: str | None
    seed: int | None
    service_tier: str | None
    stop: list[str]
    """
    Texts that end the answer.
    """
    temperature: float | None
    thinking_budget: int | None
    tool_choice: str | None
    """
    The demand on the tool calls of the turn's first reply.
    """
    top_p: float | None


class CallTry(TypedDict):
    """
    A try of an LLM call that gave no answer.
    """

    code: str
    """
    Code of the failure; `cancelled` when the turn was cancelled.
    """
    duration_ms: int
    ended_at: str
    generation: int
    """
    Number of the try, counted from 1 over the agent execution's LLM calls.
    """
    is_final: bool
    """
    True when no further try follows.
    """
    model: str
    """
    Called model, as `provider/model`.
    """
    reason: str
    """
    The reason in a sentence, at most 500 bytes.
    """
    retry_after_ms: int | None
    """
    Milliseconds until the next try, if the provider or Everturn named the pause; null when Temporal decides.
    """
    started_at: str
    worker_id: str
    """
    Id of the worker. The worker's identity in Temporal ends with the id.
    """


class Cancelled(TypedDict):
    """
    Outcome of a cancel request.
    """

    status: Literal['cancelling', 'not_running']


class ClientToolResult(TypedDict):
    """
    The result of a client tool.
    """

    is_error: NotRequired[bool]
    """
    True when the result describes an error.
    """
    result: Any
    """
    Any JSON value, at most 1 MiB.
    """


Code: TypeAlias = Literal['invalid_body', 'repeated_key', 'invalid_parameter', 'invalid_id', 'invalid_message', 'key_not_found', 'unknown_agent', 'unknown_model', 'bad_request', 'unauthenticated', 'insufficient_scope', 'owner_refused', 'too_many_refused_owners', 'approval_needs_other', 'approval_not_remembered', 'origin_not_allowed', 'host_not_allowed', 'not_found', 'conversation_not_found', 'tool_server_not_found', 'consent_needs_person', 'consent_state_refused', 'consent_of_other', 'consent_refused', 'consent_unavailable', 'execution_not_found', 'agent_execution_not_found', 'call_not_found', 'blob_not_found', 'method_not_allowed', 'request_timeout', 'conversation_id_taken', 'turn_running', 'turn_complete', 'no_checkpoint', 'not_retryable', 'approval_answered', 'approval_expired', 'approval_mismatch', 'outcome_known', 'outcome_settled', 'client_tool_claimed', 'client_tool_answered', 'client_tool_expired', 'turn_not_running', 'idempotency_conflict', 'conflict', 'message_too_long', 'result_too_large', 'blob_too_large', 'too_many_attachments', 'blob_type_refused', 'range_not_satisfiable', 'body_too_large', 'queue_full', 'too_many_turns', 'too_many_blobs', 'rate_limited', 'too_much_at_once', 'too_many_streams_of_owner', 'too_many_streams_of_tenant', 'too_many_streams', 'store_unavailable', 'blobs_unavailable', 'temporal_unavailable', 'turn_unavailable', 'issuer_unavailable', 'shutting_down', 'internal']


class CodecPayload(TypedDict):
    """
    One payload of Temporal, in the JSON format of Protocol Buffers.
    """

    data: NotRequired[str]
    """
    The data of the payload, in Base64.
    """
    metadata: NotRequired[dict[str, str]]
    """
    Metadata of the payload, such as the encoding of `data`; values are in Base64.
    """


class CodecPayloads(TypedDict):
    """
    Payloads of Temporal.
    """

    payloads: NotRequired[list[CodecPayload]]


class ConsentBegun(TypedDict):
    """
    The address for the browser of the person.
    """

    authorization_url: str
    """
    The address of the authorization server. Open it in the person's browser within ten minutes.
    """


CursorText: TypeAlias = str
"""
The `id` of an event's frame: the event's sequence number and the time of saving. The number alone is a cursor, too, but only the whole `id` shows whether the event log was replaced.
"""


EndReason: TypeAlias = Literal['turn_ended', 'conversation_deleted', 'token_expired']
"""
The reason for the end of a stream that the client need not open again.
"""


class FailureCount(TypedDict):
    """
    The number of failures of an agent with a code.
    """

    agent: str
    code: str | None
    """
    The code of the events `error`.
    """
    failures: int
    """
    Number of failed agent executions.
    """
    first_at: str
    """
    The oldest counted failure.
    """
    last_at: str
    """
    The newest counted failure.
    """


class FailureCounts(TypedDict):
    """
    The numbers of failures.
    """

    counts: list[FailureCount]
    """
    The counts, the largest first.
    """


FileBytes: TypeAlias = bytes


class Frame(TypedDict):
    """
    A frame of a stream of [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html). Only
    events have an `id`, which is a cursor: a reconnecting browser sends the `id` as `Last-Event-ID`.
    """

    data: str
    event: str
    """
    The `type` of the data. The event `error` is named `turn_error` here, because `EventSource` has its own event
    `error`. The frame `conversation` of a chat has no `type`.
    """
    id: NotRequired[str]


class FrameOfList(TypedDict):
    """
    A frame of a list's stream of [server-sent events](https://html.spec.whatwg.org/multipage/server-sent-events.html).
    No frame has an `id`.
    """

    data: str
    event: str
    """
    The `type` of the data.
    """


class Health(TypedDict):
    """
    The gateway is healthy.
    """

    status: Literal['ok']


Id: TypeAlias = str
"""
Part of workflow ids and of paths, and therefore neither `.` nor `..`.
"""


class ItemUsage(TypedDict):
    """
    The tokens of LLM calls with stored answers.
    """

    cacheWriteTokens: int
    """
    The input tokens that the provider wrote to its cache. Part of `inputTokens`.
    """
    cachedTokens: int
    """
    The input tokens that the provider read from its cache. Part of `inputTokens`.
    """
    estimated: bool
    """
    True if a provider counted no tokens for a call, and the numbers include Everturn's estimate.
    """
    inputTokens: int
    outputTokens: int
    reasoningTokens: int
    """
    The output tokens of the reasoning. Part of `outputTokens`.
    """


class Key(TypedDict):
    """
    An API key, without its secret.
    """

    created_at: str
    expires_at: str | None
    """
    End of the key; null: the key is valid until a revocation.
    """
    id: Id
    last_used_at: str | None
    """
    When the key was last used, exact to about a minute.
    """
    made_by_key: Id | None
    made_by_subject: str | None
    """
    The subject of the token that made the key; null: a key or a command made the key.
    """
    name: str
    """
    Purpose of the key.
    """
    owner: str | None
    """
    Owner of the visible conversations; null: the key sees every owner's conversations of the tenant.
    """
    revoked_at: str | None
    scopes: list[str]
    """
    Scopes of the key. Skip unknown scopes, because later versions may add scopes.
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


class LeftOutTool(TypedDict):
    """
    A tool that a model does not get.
    """

    model: str
    """
    `provider/model`.
    """
    reason: str
    """
    The reason, for the author of the tool.
    """
    tool: str
    """
    The tool's name, as models see it.
    """


MessageText: TypeAlias = str
"""
The text must not be blank or have a NUL character. The limit counts bytes of UTF-8, and may be configured lower.
"""


Metadata: TypeAlias = dict[str, str]
"""
Texts of the conversation for its LLM calls. The operator decides which of the texts a provider gets.
"""


class ModelWaitingFrame(TypedDict):
    """
    `data` of a frame about a call of the model that the provider has refused, and that is made again later. The provider
    does not bill the call.
    """

    agent_execution_id: str
    attempt: int
    """
    The number of the step's next call, refused calls included.
    """
    code: str
    """
    The code of the refusal: `llm_rate_limited`, `llm_overloaded` or `llm_unavailable`.
    """
    conversation_id: Id
    message: str
    """
    The refusal in a sentence.
    """
    message_id: str
    retry_after_ms: int
    """
    Milliseconds until the next call.
    """
    step: int
    type: Literal['model_waiting']


class NewAttachment(TypedDict):
    """
    An uploaded file attached to a message.
    """

    blob_id: Id
    """
    Id of the file, from the response of the upload.
    """


class NewConversation(TypedDict):
    """
    A new conversation.
    """

    agent: NotRequired[str | None]
    """
    Name of an agent in the gateway's configuration.
    """
    id: NotRequired[Id | None]
    metadata: NotRequired[Metadata | None]
    model: NotRequired[str | None]
    """
    The model of the conversation's messages, `provider/model`, among the models of the agent (`GET /agents`). Without
    the field: the agent's own model.
    """
    title: NotRequired[str | None]
    """
    The title, at most 512 bytes. The beginning of the first message replaces an empty title.
    """


class NewKey(TypedDict):
    """
    Properties of a new key.
    """

    lifetime_s: NotRequired[int | None]
    """
    Lifetime of the key in seconds; a lifetime beyond the end of the caller's own credential is refused. Default:
    `key_lifetime` of `[auth]`, or else valid until a revocation, but at most until the end of the caller's
    credential.
    """
    name: NotRequired[str]
    """
    Purpose of the key.
    """
    owner: NotRequired[str | None]
    """
    Owner of the conversations that the key sees. Default: the owner of the caller's credential.
    """
    scopes: NotRequired[list[Literal['read', 'write', 'approve', 'calls', 'codec', 'admin', 'admin:all']]]
    tenant: NotRequired[Id | None]


OnBusy: TypeAlias = Literal['queue', 'steer', 'interrupt', 'reject']
"""
The effect of a message on a running turn.
"""


class Owner(TypedDict):
    """
    An owner, and the credentials of the owner that gateways refuse.
    """

    ended_at: str | None
    """
    The gateway refuses tokens and sessions of sign-ins up to the time; null: no sign-in was ended.
    """
    is_all_refused: bool
    """
    True while the gateway also refuses credentials with `admin:all`. Only an admin with `admin:all` refuses these
    credentials, and only an admin with `admin:all` allows the owner again.
    """
    is_refused: bool
    """
    True while the gateway refuses every credential of the owner, but credentials with `admin:all`.
    """
    owner: str
    """
    The owner of conversations: the claim `sub` of the owner's tokens.
    """


OwnerChangeKind: TypeAlias = Literal['end_sessions', 'refuse', 'allow']
"""
`end_sessions` ends every token and session until now, and every stream of these credentials. `refuse` also refuses
every further credential of the owner. `allow` ends a refusal; ended tokens and sessions stay ended.
"""


class Owners(TypedDict):
    """
    The owners of a tenant with refused credentials.
    """

    owners: list[Owner]
    """
    The owners, ordered by name: about 1000 at the most. An owner who is not refused leaves the list after the
    longest lifetime of a token.
    """
    tenant: Id


class ParentCall(TypedDict):
    """
    The tool call that started a sub-agent.
    """

    call_id: str
    execution_id: Id
    name: str
    """
    Name of the tool.
    """
    parameters: Any
    """
    Input of the tool call, as the model wrote it.
    """
    tool_input: Any
    """
    Equal to `parameters`, for clients of the first version.
    """
    tool_name: str
    """
    Equal to `name`, for clients of the first version.
    """


class Problem(TypedDict):
    """
    An error (RFC 9457). Programs should decide by `code`.
    """

    code: Code
    detail: str
    """
    The error and the advice, for people.
    """
    instance: str
    """
    The path of the request.
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
    One line for people, equal for every occurrence of the code.
    """
    type: str
    """
    The gateway's documentation page of the code.
    """


class ProposedInput(TypedDict):
    """
    An input that a person proposes for a call that needs two other people.
    """

    input_hash: str
    """
    Hash to answer with: an approval with the hash approves the proposed input.
    """
    input_text: str
    """
    The proposed input in canonical form, character for character as the tool would get the input.
    """
    proposed_at: str
    proposed_by: str
    """
    The person.
    """


class Question(TypedDict):
    """
    A question of a running tool. The person fills in a form, or opens an address.
    """

    message: str
    """
    Words of the tool's server. Show them as text.
    """
    schema: NotRequired[dict[str, Any]]
    """
    Form of the answer: the JSON Schema of an object with flat properties. Absent for a question with a URL.
    """
    url: NotRequired[str]
    """
    Address that the person must open before the answer. Show the host, and open no address without the person's word.
    Absent for a form.
    """


class ReconnectFrame(TypedDict):
    """
    `data` of the last frame of a gateway that stops. The client should connect again after `delay_ms`.
    """

    delay_ms: int
    """
    The delay in milliseconds until the client should connect again. The delay differs per client.
    """
    type: Literal['reconnect']


class RemoteToolResult(TypedDict):
    """
    The result of a remote tool.
    """

    is_error: NotRequired[bool]
    """
    True when the result describes an error.
    """
    result: Any
    """
    Any JSON value, at most 1 MiB.
    """
    run_id: Id
    """
    The `run_id` passed to the tool.
    """


class Resumed(TypedDict):
    """
    The outcome of a resume request.
    """

    from_step: NotRequired[int]
    """
    Only with `resuming`: step of the checkpoint where the turn continues; 0 without a checkpoint.
    """
    status: Literal['resuming', 'running']


class Retry(TypedDict):
    """
    The failed turn to retry.
    """

    message_id: NotRequired[Id | None]


class RevokedKeys(TypedDict):
    """
    The revoked keys.
    """

    has_more: bool
    """
    True: more keys may be left. Repeat the request.
    """
    revoked: list[Id]
    """
    The keys that the request revoked, ordered by id. Keys that were revoked before are left out.
    """


class SentFile(TypedDict):
    """
    A file of a message.
    """

    blob_id: Id
    bytes: int
    file_name: str
    media_type: str


class SentTool(TypedDict):
    """
    A tool that a model was offered.
    """

    definition_hash: str
    """
    Hash of the tool's definition. Equal hashes mean equal definitions.
    """
    name: str


class SentToolResult(TypedDict):
    """
    A tool's result that a model was sent.
    """

    call_id: str
    is_error: bool
    result: Any
    tool_name: str


Sequence: TypeAlias = int
"""
The number of an event in the conversation: 1, 2, 3, without gaps. 0 is before the first event.
"""


class Session(TypedDict):
    """
    The caller's identity and rights.
    """

    credential: Literal['key', 'session', 'token', 'none']
    expires_at: str | None
    """
    End of the credential; null when the credential has no end.
    """
    owner: str | None
    """
    Owner of the visible conversations; null: the caller sees every owner's conversations of the tenant.
    """
    scopes: list[Literal['read', 'write', 'approve', 'calls', 'codec', 'admin', 'admin:all']]
    tenant: str


class SettledToolOutcome(TypedDict):
    """
    The settled outcome of a call.
    """

    comment: str
    execution_id: Id
    outcome: Literal['happened', 'not_happened']
    result: NotRequired[Any]
    """
    Result of the call, cut like every result of an event; absent without a result.
    """
    settled_by: str
    """
    The person who settled the outcome first: the owner of the credential, or the id of the key. Empty if the gateway
    requires no credential.
    """
    tool_name: str


class StoredResult(TypedDict):
    """
    A stored result.
    """

    execution_id: Id
    status: Literal['stored']


class Tenant(TypedDict):
    """
    A tenant.
    """

    agents: list[str]
    """
    Agents that the gateway's configuration allows for the tenant's conversations.
    """
    conversations: int
    """
    Number of conversations; 10000 stands for 10000 or more.
    """
    last_activity_at: str | None
    """
    Time of the last activity in the tenant's conversations; null without a conversation.
    """
    running_turns: int
    """
    Number of running turns.
    """
    tenant: str
    valid_keys: int
    """
    Number of API keys that are valid now.
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
    `data` of a text frame: the text that the model is writing. The key of the text is `agent_execution_id`, `step` and
    `part`.
    """

    agent_execution_id: str
    conversation_id: Id
    generation: int
    """
    The number of the attempt that wrote the text. With a larger number, the text begins anew.
    """
    message_id: str
    offset: NotRequired[int]
    """
    The number of UTF-8 bytes of the text before the piece.
    """
    part: Literal['reasoning', 'text', 'call_0', 'call_1', 'call_2', 'call_3', 'call_4', 'call_5', 'call_6', 'call_7']
    step: int
    text: NotRequired[str]
    type: Literal['text_start', 'text_delta', 'text_end']


class TimelineItem(TypedDict):
    """
    One item of a timeline.
    """

    agentExecutionId: NotRequired[str | None]
    """
    The id of the sub-agent's agent execution, in a sub-agent's item.
    """
    attachments: NotRequired[list[Any]]
    """
    The attached files of a user's message: `blob_id`, `media_type`, `file_name` and `bytes` per file.
    """
    callId: NotRequired[str]
    """
    The model's id of the tool call. The tool call, its result and later items about the call have an equal id.
    """
    citations: NotRequired[list[Any]]
    """
    The sources that the text of an answer or a thought cites: objects with `url`, `title` and `text` (the cited
    passage), without the fields that the provider did not send. Absent if the text cites nothing.
    """
    code: NotRequired[str]
    """
    The stable code of an `error`.
    """
    content: NotRequired[str]
    """
    The text of a message; the text of a thought, which is empty if the model only reasoned; the sentence of an
    `error`; the reason of a `cancelled`.
    """
    costUsd: NotRequired[str]
    """
    The cost of the usage, in USD; absent if no model has a price.
    """
    data: NotRequired[Any]
    """
    The event's data. Present if the item's type equals the event's type, except in `error` and `cancelled`.
    """
    durationMs: NotRequired[int]
    """
    The duration of the tool, in milliseconds.
    """
    executionId: NotRequired[str]
    """
    The id of the tool execution. The tool call, its result and later items about the call have an equal id.
    """
    finish: NotRequired[str]
    """
    The reason for the end of the answer's text.
    """
    id: str
    """
    The message's id for a message; otherwise `<event type>-<sequence number>`.
    """
    isError: NotRequired[bool]
    """
    True for a tool result with an error.
    """
    outcomeUnknown: NotRequired[bool]
    """
    True for a result of an interrupted tool. The tool may or may not have had its effect.
    """
    parentToolCallId: NotRequired[str | None]
    """
    The `callId` of the tool call that started the sub-agent, in a sub-agent's item. Show the item below the call.
    """
    partial: NotRequired[bool]
    """
    True for an incomplete answer, because the turn was cut short.
    """
    reasoning: NotRequired[str]
    """
    The model's reasoning, in a thought with a reasoning.
    """
    retryOf: NotRequired[str]
    """
    In a retry: the id of the message whose failed turn was retried. A retry has an empty text.
    """
    sequenceNumber: Sequence
    """
    The sequence number of the item's event.
    """
    step: NotRequired[int]
    """
    The number of the LLM call within the agent execution, from 0.
    """
    timestamp: int
    """
    The time of the event, in milliseconds since 1970.
    """
    title: NotRequired[str]
    """
    The title of a tool call for people, like `Search the web for cats`; absent if the tool has no template, or an input
    of the template is missing. Without a title, show the name of the tool.
    """
    toolInput: NotRequired[Any]
    """
    The input of a tool call, exactly as in the event. An input edited in an approval replaces the model's input.
    """
    toolName: NotRequired[str]
    """
    The name of the tool, in a tool call or result.
    """
    toolOutput: NotRequired[Any]
    """
    The output of a tool result, exactly as in the event.
    """
    type: Literal['user_message', 'thought', 'tool_call', 'tool_result', 'assistant_message', 'error', 'cancelled', 'work_plan', 'step_start', 'step_end', 'approval_requested', 'approval_resolved', 'client_tool_requested', 'sub_agent_start', 'context_compacted', 'model_fallback', 'outcome_probed', 'outcome_settled']
    usage: NotRequired[ItemUsage]
    """
    The tokens of the agent and its sub-agents at every level. The last item of a turn, or of a sub-agent's part,
    has the usage.
    """


class ToolExecution(TypedDict):
    """
    A tool execution. The input and the result are in the events.
    """

    approval: str | None
    """
    State of the approval; null when the tool needs no approval.
    """
    asked_at: str
    attempts: int
    """
    Number of attempts by workers; 0 for a tool that a client runs.
    """
    call_id: str
    """
    Id of the tool call, given by the model.
    """
    duration_ms: int
    """
    Duration of the tool execution.
    """
    effect: Literal['read', 'idempotent', 'once']
    execution_id: Id
    finished_at: str | None
    is_error: bool
    started_at: str | None
    """
    Start of the first attempt.
    """
    status: Literal['pending', 'running', 'completed', 'failed', 'cancelled', 'unknown']
    step: int | None
    """
    Step of the tool call, from 0; null for a hook after the turn.
    """
    timeout_ms: int
    tool_name: str


class ToolOutcome(TypedDict):
    """
    A person's knowledge about a call whose outcome is unknown.
    """

    comment: NotRequired[str]
    """
    Comment for the model and the readers. At most 4 KiB.
    """
    outcome: Literal['happened', 'not_happened']
    result: NotRequired[Any]
    """
    With `happened`: the result of the call, any JSON value of at most 1 MiB. The model reads the result.
    """


class ToolProgressFrame(TypedDict):
    """
    `data` of a frame about a tool that works on: the progress of the tool, or a line of its log. At most one frame of each
    kind comes a second from a call, and a frame may be missing.
    """

    agent_execution_id: str
    conversation_id: Id
    execution_id: str
    level: NotRequired[str]
    """
    The level of a line of the tool's log, like `info`. A frame about progress has no level.
    """
    message: str
    """
    The tool's words; empty without words.
    """
    message_id: str
    progress: NotRequired[float]
    """
    The amount of work that is done, in the tool's own unit.
    """
    tool_name: str
    total: NotRequired[float]
    """
    The whole amount of work, in the same unit.
    """
    type: Literal['tool_progress']


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
    Start of the slice, in bytes of UTF-8.
    """
    text: str
    """
    Text of the slice: the content of a string result, or the JSON of any other result. Empty behind the end.
    """
    total_bytes: int
    """
    Length of the whole result, in bytes of UTF-8.
    """


class ToolServer(TypedDict):
    """
    A tool server that people consent to.
    """

    consented_at: str | None
    """
    The time of the caller's consent; null: the caller has not consented, is no person, or the consent has ended.
    """
    name: str
    """
    The name of the server. Its tools are called `<name>__<tool>`.
    """


class ToolServers(TypedDict):
    """
    The tool servers that people consent to.
    """

    servers: list[ToolServer]


class ToolUsageDay(TypedDict):
    """
    Calls of a tool by a tenant on a day. A call counts on the day on which its agent execution ends.
    """

    calls: int
    """
    Number of calls.
    """
    day: str
    """
    The day, in UTC.
    """
    duration_ms: int
    """
    Time of the calls together, in milliseconds.
    """
    failed_calls: int
    """
    Calls with an error as their result: the tool failed, or the call was denied, cancelled or cut.
    """
    tool: str
    """
    The tool.
    """


class Usage(TypedDict):
    """
    Tokens of LLM calls.
    """

    cache_write_tokens: int
    """
    Tokens written to the provider's cache; included in `input_tokens`.
    """
    cached_tokens: int
    """
    Tokens read from the provider's cache; included in `input_tokens`.
    """
    estimated: bool
    """
    True if a provider counted no tokens for a call, and the numbers include Everturn's estimate.
    """
    input_tokens: int
    """
    Tokens read, including cached tokens.
    """
    output_tokens: int
    """
    Tokens written, including reasoning tokens.
    """
    reasoning_tokens: int
    """
    Tokens of the reasoning; included in `output_tokens`.
    """


class UsageDay(TypedDict):
    """
    Usage of a model, or of an agent, by a tenant on a day.
    """

    agent: str | None
    """
    The agent; null in sums by model.
    """
    calls: int
    """
    Number of LLM calls with a stored answer.
    """
    cost_usd: str
    """
    Cost of the calls, in USD. Calls of a model without a price count as 0.
    """
    cut_calls: int
    """
    Calls that were cut before their answers were stored; not included in `calls`.
    """
    cut_cost_usd: str
    """
    Maximum cost of the cut calls, in USD.
    """
    cut_tokens: int
    """
    Maximum tokens used by the cut calls.
    """
    day: str
    """
    The day, in UTC.
    """
    model: str | None
    """
    `provider/model`; null in sums by agent.
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
    tools: list[ToolUsageDay]
    """
    With `by=tool`: the rows, ordered by day and tool. Otherwise empty.
    """
    usage: list[UsageDay]
    """
    The rows, ordered by day, and by model or agent. Empty with `by=tool`.
    """


class WaitingCall(TypedDict):
    """
    A tool call that waits for a person or a client.
    """

    agent_execution_id: Id
    call_id: str
    """
    Id of the call, given by the model.
    """
    execution_id: Id
    expires_at: NotRequired[str]
    """
    Answers after the expiry time are refused.
    """
    message_id: Id
    requested_at: str
    title: NotRequired[str]
    """
    The title of the call for people; absent without a template in the tool's configuration.
    """
    tool_input: Any
    """
    Input of the call as the model wrote it, usually an object.
    """
    tool_name: str


class WaitingClientTools(TypedDict):
    """
    Tool calls for the client to run.
    """

    client_tools: list[WaitingCall]
    """
    Waiting tool calls, the oldest first.
    """


class AcceptedMessage(TypedDict):
    """
    A stored message.
    """

    conversation_id: Id
    message_id: Id
    """
    The gateway's id of the message, used in events.
    """
    status: Literal['queued', 'accepted_before']


class Agent(TypedDict):
    """
    An agent.
    """

    contact: NotRequired[str | None]
    """
    The address of the owner. Only for callers with the scope `admin:all`.
    """
    description: str
    """
    The purpose of the agent; empty if the configuration has no description.
    """
    left_out_tools: list[LeftOutTool]
    """
    The tools that a model of the agent does not get, because its provider would refuse every request with the tool.
    Workers note such a tool when they first make a request; the list is empty before.
    """
    limits: AgentLimits
    model: str | None
    """
    `provider/model`; null when only workers know the model.
    """
    models: list[str]
    """
    The models that a message may choose, the agent's own model first; empty when only workers know the models.
    """
    name: str
    owner: NotRequired[str | None]
    """
    The team or person that owns the agent. Only for callers with the scope `admin:all`.
    """
    samples: list[str]
    """
    Messages with which a person may begin.
    """
    tools: list[AgentTool]
    """
    The tools, in the order of the configuration.
    """


class AgentExecution(TypedDict):
    """
    An agent execution: an agent's work on a turn, or on a task from a parent agent.
    """

    agent: str
    cost_usd: str | None
    """
    Cost of the LLM calls, in USD; null when the model has no price.
    """
    cut_calls: int
    """
    LLM calls without a stored answer that the provider probably billed; not included in `usage`.
    """
    cut_cost_usd: str
    """
    Maximum cost of the cut calls, in USD; not included in `cost_usd`.
    """
    cut_tokens: int
    """
    Maximum tokens used by the cut calls.
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
    Equal to `input_tokens` in `usage`, for clients of the first version.
    """
    message_id: Id
    """
    Message of the agent execution's turn.
    """
    output_tokens: int
    """
    Equal to `output_tokens` in `usage`, for clients of the first version.
    """
    parentActToolCall: ParentCall | None
    parent_execution_id: str | None
    root_execution_id: Id
    started_at: str
    status: Literal['running', 'completed', 'cancelled', 'failed']
    steps: int
    """
    Number of LLM calls so far.
    """
    usage: Usage
    """
    Usage of the agent execution's own LLM calls, without the calls of its sub-agents.
    """
    workflow_id: str
    """
    Workflow of the agent execution. A conversation's turns share one workflow id.
    """
    workflow_url: str | None
    """
    URL of the workflow's page in the Temporal UI; null when the configuration has no Temporal UI.
    """


class AgentExecutions(TypedDict):
    """
    A page of agent executions.
    """

    executions: list[AgentExecution]
    """
    Agent executions, ordered by their start.
    """
    next_after: str | None
    """
    `after` of the next page; null at the end.
    """


class AgentList(TypedDict):
    """
    The agents of the caller's tenant.
    """

    agents: list[Agent]
    """
    The agents, ordered by name.
    """
    default_agent: str | None
    """
    The agent of a conversation that is created without an agent's name; null if the configuration has no such agent
    for the tenant.
    """


class AnsweredApproval(TypedDict):
    """
    The answered tool call.
    """

    decision: Literal['approved', 'denied', 'declined', 'proposed']
    execution_id: Id
    remember: bool
    tool_input: Any
    """
    Input that the tool runs with, when the call was approved.
    """
    tool_name: str


class AuditEntry(TypedDict):
    """
    An entry of the audit trail. Ignore unknown words, because later versions add words.
    """

    action: str
    actor: AuditActor
    address: str | None
    """
    The client's address; null when the action did not come from a request.
    """
    at: str
    details: dict[str, Any]
    """
    The details of the action. Their names depend on the action: see `docs/operate/audit.md`.
    """
    id: int
    """
    The entry's position in the trail. Entries are numbered in order and without gaps.
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
    The tenant of the entry; null when no tenant is known. Only admins of every tenant see an entry without a
    tenant.
    """


class AuditPage(TypedDict):
    """
    A page of the audit trail.
    """

    entries: list[AuditEntry]
    """
    Entries, the oldest first.
    """
    next_after: int | None
    """
    `after` of the next page; null at the end. To follow the trail later, send the `id` of the last entry as `after`.
    """


class Blob(TypedDict):
    """
    A stored file.
    """

    blob_id: Id
    """
    Id of the file, for the attachments of messages.
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


class CallTries(TypedDict):
    """
    Tries of an LLM call without an answer.
    """

    failed: list[CallTry]
    """
    Newest tries without an answer, oldest first. A lost worker leaves no entry, and the number `generation` of the lost
    try is missing.
    """
    older: int
    """
    Number of older tries without an answer. Their reasons are not kept: a step keeps the newest `kept_tries` of
    `[worker]`.
    """


class CalledTool(TypedDict):
    """
    A tool call of a model.
    """

    call_id: str
    execution_id: Id
    tool_input: Any
    tool_name: str


class Cancel(TypedDict):
    """
    The message to cancel.
    """

    message_id: NotRequired[Id | None]


class Chat(TypedDict):
    """
    A message and its conversation.
    """

    agent: NotRequired[str | None]
    """
    The agent of a new conversation.
    """
    attachments: NotRequired[list[NewAttachment]]
    """
    Uploaded files, in the order for the model.
    """
    conversation_id: NotRequired[Id | None]
    message: MessageText
    """
    Text of the message. A message with `attachments` may omit the text or leave the text empty.
    """
    message_id: NotRequired[Id | None]
    model: NotRequired[str | None]
    """
    The model of the whole turn, `provider/model`, among the models of the agent. Without the field: the model of the
    conversation, or else the agent's own model.
    """


class ChatFrame(TypedDict, closed=True):
    """
    `data` of the second frame of a chat, after `replay`: the conversation and the id of the message.
    """

    conversation_id: Id
    message_id: str


class Checkpoint(TypedDict):
    """
    A stored point where the turn can continue.
    """

    execution_id: Id | None
    generation: int
    """
    Number of the attempt that stored the checkpoint: an LLM call's attempt or a tool's attempt. 0: hooks before the
    turn, which call no model.
    """
    step: int
    """
    The number of the step, from 0.
    """
    stored_at: str
    type: Literal['llm_complete', 'tool_start', 'tool_complete', 'llm_partial']


class ClaimOfClientTool(TypedDict):
    """
    A client's claim of a tool call.
    """

    claimant: Id
    """
    Id chosen by the client for itself, or for its attempt at the call. A repeated claim with the id renews the claim.
    """
    lease_ms: NotRequired[int]
    """
    Duration of the claim in milliseconds. Until the end, every further claimant is refused.
    """


class ClaimedClientTool(TypedDict):
    """
    A granted claim: the client must run the call.
    """

    claimant: Id
    execution_id: Id
    expires_at: str
    """
    End of the claim. Until the end, every further claimant is refused.
    """
    is_repeated: bool
    """
    True when an earlier client's claim ended without a result. The tool may already have had its effect.
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
    The number of messages: user messages taken by turns, and the agent's answers.
    """
    model: str | None
    """
    The model of new messages, `provider/model`; null for the agent's own model.
    """
    title: str
    updated_at: str
    """
    The time of the last change in lists: the conversation was created, a turn began or ended, a message joined a turn,
    or a call began or ended to wait for a person or the client. Lists are in this order.
    """


class ConversationChange(TypedDict):
    """
    Changes of a conversation. A missing field changes nothing.
    """

    metadata: NotRequired[Metadata | None]
    model: NotRequired[str | None]
    """
    The model of new messages, `provider/model`, among the models of the agent. The empty text chooses the agent's own
    model. Messages that wait already keep their model.
    """
    title: NotRequired[str | None]
    """
    The new title, at most 512 bytes. The beginning of the next message replaces an empty title.
    """


class ConversationRemovedFrame(TypedDict):
    """
    `data` of the frame of a conversation that is no longer in the list.
    """

    conversation_id: Id
    type: Literal['conversation_removed']


class CreatedKey(TypedDict):
    """
    A created key, with its secret.
    """

    expires_at: str | None
    id: Id
    key: str
    """
    The secret key. Only the creation's response contains the secret, because the gateway stores a hash.
    """
    owner: str | None
    scopes: list[str]
    tenant: str


class EndFrame(TypedDict):
    """
    `data` of the last frame of a stream that the client need not open again.
    """

    reason: EndReason
    reconnect: bool
    """
    Always false.
    """
    type: Literal['end']


class Event(TypedDict):
    """
    An event. Skip unknown event types, because later versions add types.
    """

    conversation_id: Id
    created_at: str
    event_data: Any
    """
    Data of the event. The format depends on `event_type`: see the API's documentation.
    """
    event_type: str
    id: str
    message_id: str
    """
    User message of the event's turn.
    """
    sequence_number: Sequence


class EventFrame(TypedDict):
    """
    `data` of an event's frame: the fields here, and the fields of `event_data`.
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
    True when more events exist. Continue from the last sequence number + 1, or, reading backwards, before the first
    sequence number.
    """


class ExecutionStatus(TypedDict):
    """
    Status of a conversation.
    """

    current_message_id: Id | None
    is_running: bool
    """
    True when a turn runs or a message waits for its turn.
    """
    last_sequence: Sequence
    """
    Number of the last event; 0 before the first event.
    """
    model: str | None
    """
    The chosen model of the running turn, `provider/model`; null when the agent's own model answers.
    """
    waiting: WaitingCall | None


class Failure(TypedDict):
    """
    A failed agent execution: an agent that failed in a turn, or on a task from a parent agent.
    """

    agent: str
    agent_execution_id: Id
    attempts: int
    """
    Number of LLM calls of the last step that called a model: more than 1 after a repeated call, 0 without a call.
    """
    code: str | None
    """
    The code of the event `error`. Ignore unknown codes, because later versions add codes.
    """
    conversation_id: Id
    failed_at: str
    message: str | None
    """
    The message of the event `error`, at most 1024 bytes.
    """
    message_id: Id
    """
    The message of the turn.
    """
    parent_execution_id: str | None
    """
    The agent execution that delegated the task; null when the turn's own agent failed.
    """
    started_at: str
    tenant: str


class FailurePage(TypedDict):
    """
    A page of failures.
    """

    failures: list[Failure]
    """
    The failures, the newest first.
    """
    next_after: str | None
    """
    `after` of the next page; null at the end.
    """


class FirstMessage(TypedDict):
    """
    Properties of a conversation that the message creates. An existing conversation stays unchanged.
    """

    agent: NotRequired[str | None]
    """
    Name of an agent in the gateway's configuration.
    """
    metadata: NotRequired[Metadata | None]
    model: NotRequired[str | None]
    """
    The model of the conversation's messages, `provider/model`, among the models of the agent.
    """
    title: NotRequired[str | None]
    """
    The title, at most 512 bytes. The beginning of the message replaces an empty title.
    """


class ListedConversation(Conversation):
    """
    A conversation in a list, with its current activity.
    """

    state: Literal['idle', 'queued', 'running', 'waiting_for_approval', 'waiting_for_client_tool']
    waiting_approvals: int
    """
    The number of tool calls that wait for a person's approval.
    """
    waiting_client_tools: int
    """
    The number of tool calls that wait for the client to run them.
    """


class ModelCall(TypedDict):
    """
    An LLM call with a stored answer, without its content.
    """

    cost_usd: str | None
    """
    Cost of the call, in USD; null when the model has no price.
    """
    duration_ms: int | None
    """
    Milliseconds between both times, including the last wait in a slot for the limits of the provider.
    """
    finish: Literal['stop', 'tool_calls', 'compacted', 'step_limit']
    generation: int
    """
    Number of the attempt that answered, counted from 1 over the agent execution's LLM calls. Missing numbers are failed
    or interrupted attempts.
    """
    model: str
    offered_tools: int | None
    """
    Number of tools that the model was offered. The call's content names them.
    """
    provider: str
    """
    Name of the provider in the configuration.
    """
    received_characters: int | None
    """
    Characters of the reply: of the text, the reasoning and the inputs of the tool calls.
    """
    sent_characters: int | None
    """
    Characters of the instructions and the messages.
    """
    sent_files: int | None
    """
    Number of files that the model was sent, at most 100. The call's content names them.
    """
    sent_messages: int | None
    """
    Number of messages that the model was sent; null when no model was called: a compaction left messages out without a
    summary.
    """
    started_at: str | None
    """
    Time when a worker began the attempt that answered; null for a call of an earlier version.
    """
    step: int
    """
    The number of the step, from 0.
    """
    stored_at: str
    """
    Time when the answer was stored.
    """
    tries: CallTries
    usage: Usage


class NewMessage(TypedDict):
    """
    A new message.
    """

    attachments: NotRequired[list[NewAttachment]]
    """
    Uploaded files, in the order for the model.
    """
    content: MessageText
    """
    Text of the message. A message with `attachments` may omit the text or leave the text empty.
    """
    create: NotRequired[FirstMessage | None]
    message_id: NotRequired[Id | None]
    model: NotRequired[str | None]
    """
    The model of the whole turn, `provider/model`, among the models of the agent (`GET /agents`). Without the field: the
    model of the conversation, or else the agent's own model. A message that joins a running turn changes no model.
    """
    on_busy: NotRequired[OnBusy]


class OwnerChange(TypedDict):
    """
    A change of an owner.
    """

    change: OwnerChangeKind
    owner: str
    """
    The owner: the claim `sub` of a token, or the owner of keys.
    """
    tenant: NotRequired[Id | None]


class PendingApproval(WaitingCall):
    """
    A tool call that waits for a person: for an approval before the tool runs, or for the answer to a question of the tool.
    """

    approval_by: NotRequired[str]
    """
    `other`: the approver must be a person who neither owns the conversation nor has sent a message of the turn. Absent
    when every person with the scope may approve.
    """
    input_hash: str
    """
    Hash to send with the answer. The hash binds the answer to the tool, input and definition.
    """
    input_text: str
    """
    `tool_input` as the store keeps it, character for character. Show people the text: a reader that parses `tool_input`
    may round long numbers.
    """
    proposals: NotRequired[list[ProposedInput]]
    """
    Inputs that one person proposes in place of the model's, the newest first. Another person may approve a proposal.
    Absent without a proposal.
    """
    question: NotRequired[Question]
    """
    Question of the running tool. Absent for a call that waits for an approval before it runs.
    """


class PendingApprovals(TypedDict):
    """
    Tool calls that wait for a person's approval.
    """

    approvals: list[PendingApproval]
    """
    Pending tool calls, the oldest first.
    """


class ReplayFrame(TypedDict):
    """
    `data` of the first frame: the position where the connection begins.
    """

    conversation_id: Id
    from_sequence: int
    """
    The sequence number of the first event in the stream, unless a frame `reset` follows.
    """
    last_sequence: Sequence
    """
    The sequence number of the conversation's last event at the start of the stream.
    """
    type: Literal['replay']


class ResetFrame(TypedDict):
    """
    `data` of the frame for a client whose cursor comes from another log. The database has lost its last commits, or the
    conversation was removed and made anew. The client must discard events and texts from `from_sequence` on.
    """

    conversation_id: Id
    from_sequence: Sequence
    """
    The sequence number of the first event after the reset.
    """
    type: Literal['reset']


class SentMessage(TypedDict):
    """
    A message that a model was sent.
    """

    attachments: list[SentFile]
    content: str
    is_kept: bool
    """
    True for a message from before a summary that the model is still sent.
    """
    role: Literal['user', 'assistant', 'summary']
    sequence_number: Sequence | None
    tool_calls: list[CalledTool]
    tool_results: list[SentToolResult]


class SentToModel(TypedDict):
    """
    What a model was sent: instructions, messages, and the names of the offered tools. Everturn stores no request; the
    request is made again from the stored messages and the stored definition of the agent.
    """

    files: list[SentFile]
    """
    Files that the model was sent: files of messages and of results, each file once, at most 100.
    """
    instructions: str
    """
    Instructions of the agent.
    """
    is_exact: bool
    """
    True when number and characters of the messages equal the numbers that the worker noted before the call. False when
    the request cannot be made again exactly, for example after a change of Everturn's version.
    """
    messages: list[SentMessage]
    """
    Newest messages of the call, oldest first.
    """
    older_messages: int
    """
    Number of older messages of the call that are left out here, because the messages have more bytes than `call_bytes`
    of `[gateway]`.
    """
    parameters: CallParameters
    summary_through: Sequence | None
    tools: list[SentTool]
    """
    Offered tools. Their definitions are not stored.
    """


class StepUsage(TypedDict):
    """
    Usage and cost of one step's LLM call.
    """

    cost_usd: str | None
    """
    Cost of the call, in USD; null when the model has no price.
    """
    generation: int
    """
    Number of the attempt that answered, counted from 1 over the agent execution's LLM calls. Missing numbers are failed
    or interrupted attempts.
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
    Time when the answer was stored.
    """
    usage: Usage


class TenantToolUsageDay(ToolUsageDay):
    """
    A tenant's calls of one tool on one day.
    """

    tenant: str
    """
    The tenant.
    """


class TenantUsageDay(UsageDay):
    """
    The usage of a model, or of an agent, by a tenant on a day.
    """

    tenant: str


class TenantUsagePage(TypedDict):
    """
    A page of usage sums.
    """

    next_after: str | None
    """
    `after` of the next page; null at the end.
    """
    tools: list[TenantToolUsageDay]
    """
    With `by=tool`: the rows, ordered by tenant, day and tool. Otherwise empty.
    """
    usage: list[TenantUsageDay]
    """
    The rows, ordered by tenant and day, and by model or agent. Empty with `by=tool`.
    """


class Timeline(TypedDict):
    """
    A page of a conversation's timeline, as a chat window shows a conversation.
    """

    conversationId: str
    nextBefore: Sequence | None
    timeline: list[TimelineItem]
    """
    The items, the oldest first: as many as the limits of items and of bytes allow.
    """
    total: int
    """
    Number of items of the page.
    """


class UnansweredCall(TypedDict):
    """
    A step whose LLM call has no answer.
    """

    step: int
    """
    The number of the step, from 0.
    """
    tries: CallTries


class AgentExecutionDetail(AgentExecution):
    """
    An agent execution with its LLM calls, checkpoints and tool calls.
    """

    checkpoints: list[Checkpoint]
    """
    The newest 1000 checkpoints, in the order of their steps.
    """
    step_usage: list[StepUsage]
    """
    Newest 1000 LLM calls with a stored answer, in the order of their steps.
    """
    tool_executions: list[ToolExecution]
    """
    Newest 1000 tool calls, in the order of the model's requests.
    """


class AnsweredByModel(TypedDict):
    """
    What a model answered.
    """

    citations: list[Any]
    """
    The sources that the text cites: objects with `url`, `title` and `text`, without the fields that the provider did
    not send.
    """
    invalid_output: str | None
    """
    Why the answer does not match the agent's `output`; null for a matching answer.
    """
    is_cut: bool
    """
    True when the provider cut the answer at its limit of tokens.
    """
    reasoning: str
    """
    Reasoning, if the provider tells the reasoning.
    """
    text: str
    tool_calls: list[CalledTool]


class ConversationChangedFrame(TypedDict):
    """
    `data` of the frame of a conversation that is new in the list, or whose entry has changed.
    """

    conversation: ListedConversation
    """
    The new entry of the conversation. The entry replaces the client's entry with the same id.
    """
    type: Literal['conversation_changed']


class ConversationDetail(ListedConversation):
    """
    A conversation with its current activity, and with the usage and cost of its LLM calls.
    """

    cost_usd: str | None
    """
    Cost of the LLM calls, in USD; null when no model of the calls has a price.
    """
    cut_calls: int
    """
    LLM calls without a stored answer that the provider probably billed; not included in `usage`.
    """
    cut_cost_usd: str
    """
    Maximum cost of the cut calls, in USD; not included in `cost_usd`.
    """
    cut_tokens: int
    """
    Maximum tokens used by the cut calls.
    """
    metadata: Metadata
    """
    The metadata of the conversation.
    """
    usage: Usage
    """
    Usage of every LLM call with a stored answer, also of sub-agents and of the running turn.
    """


class ConversationPage(TypedDict):
    """
    A page of conversations.
    """

    conversations: list[ListedConversation]
    next_before: str | None
    """
    `before` of the next page; null on the last page.
    """


class InboxApproval(PendingApproval):
    """
    A tool call of any conversation that waits for a person's approval.
    """

    agent: str
    """
    The agent that calls the tool.
    """
    conversation_id: str


class ListFrame(TypedDict):
    """
    `data` of the frame with the newest conversations. The frame begins a list's stream, and later replaces the client's
    whole list.
    """

    conversations: list[ListedConversation]
    """
    The conversations, with the last updated conversation first.
    """
    next_before: str | None
    """
    The value of `before` for the list page with older conversations; null without older conversations.
    """
    type: Literal['list']


class ModelCallContent(ModelCall):
    """
    An LLM call with its content.
    """

    answered: AnsweredByModel
    sent: SentToModel | None


class ModelCalls(TypedDict):
    """
    A page of LLM calls.
    """

    calls: list[ModelCall]
    """
    LLM calls, in the order of their steps.
    """
    next_after: int | None
    """
    `after` of the next page; null at the end.
    """
    unanswered: UnansweredCall | None


class ApprovalInbox(TypedDict):
    """
    A page of the inbox of approvals.
    """

    approvals: list[InboxApproval]
    """
    Waiting calls, the nearest deadline first.
    """
    next_after: str | None
    """
    `after` of the next page; null at the end.
    """
