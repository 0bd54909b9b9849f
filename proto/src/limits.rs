//! Sizes shared by the gateway, the workflows, the activities and the store. A limit of a single part is in the
//! configuration of that part.

use std::time::Duration;

/// The time between two heartbeats of a long call, while leases tell of dead workers and the stream tells of cancels.
/// A heartbeat costs the engine up to 3 ms, so 10,000 calls with a heartbeat every minute cost half a core.
pub const RARE_HEARTBEAT: Duration = Duration::from_mins(1);

/// After a silence of this length, the engine counts the worker of a call as dead. A worker may stall for half a minute
/// beside [`RARE_HEARTBEAT`].
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(90);

/// [`HEARTBEAT_TIMEOUT`] of a hook after a turn. The leases tell of no dead worker here, because the turn has ended.
pub const HOOK_HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest message, in bytes of UTF-8, unless the configuration lowers the limit. Every payload of a turn must fit
/// the engine's 2 MB payload limit, also for a message typed into the CLI, with room for JSON escapes.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// The longest id that a client may choose (conversation, message), in bytes. The id becomes part of a workflow id, and
/// the engine limits a workflow id to 1000 bytes, suffixes of sub-agents included.
pub const MAX_ID_BYTES: usize = 100;

/// The most messages that may wait for their turn in a conversation. Continue-as-new carries all waiting messages in a
/// single payload.
pub const MAX_QUEUED_MESSAGES: usize = 100;

/// The largest part of a tool's result in the model's context, in bytes. `tool_execution_records` keeps the whole
/// result (invariant 4, linear history).
pub const TOOL_RESULT_INLINE_BYTES: usize = 16 * 1024;

/// The largest tool result, in bytes; a larger result is an error (invariant 10, nothing grows without a bound).
pub const TOOL_RESULT_MAX_BYTES: usize = 1024 * 1024;

/// The most files that the record of a model call names. A request to a provider has fewer files.
pub const MAX_SENT_FILES: usize = 100;

/// The most events that one tool call adds to its turn, because people read the events.
pub const TOOL_EVENTS_MAX: usize = 100;

/// The largest slice of a tool's whole result that a read returns, in bytes. A page of this size still reaches a client
/// or a model quickly.
pub const TOOL_RESULT_SLICE_MAX_BYTES: usize = 256 * 1024;

/// The largest input of a remote tool, in bytes of JSON. The input travels by value, through the history.
pub const REMOTE_INPUT_MAX_BYTES: usize = 256 * 1024;

/// The largest input of a remote tool that counts as small, in bytes. A call with a larger input takes at least two of
/// the slots of [`REMOTE_SLOTS`].
pub const SMALL_REMOTE_INPUT_BYTES: usize = 64 * 1024;

/// The largest result of a remote tool, in bytes, unless configured otherwise. The result travels by value, through the
/// history.
pub const REMOTE_RESULT_BYTES: u32 = 128 * 1024;

/// The slots for parallel remote tools of a step. A call takes one slot for each 128 KiB of its largest possible
/// result, at least two slots with a large input, and never more than the 12 slots. The engine keeps at most 2 MB
/// of results for a run during a workflow task, and accepts 4 MB in a request, in which each input travels twice.
pub const REMOTE_SLOTS: u32 = 12;

/// How many results of remote tools the workflow records in parallel. Each result may travel through the engine once
/// more, and the engine accepts 4 MB in a request.
pub const REMOTE_RECORDS_AT_ONCE: u32 = 2;

/// The largest input that a person may give with an approval, in bytes of JSON. Several inputs may travel through the
/// engine in a single request.
pub const MAX_APPROVED_INPUT_BYTES: usize = 64 * 1024;

/// The longest reason that a person may give with an approval or a denial, in bytes. The model reads the reason.
pub const MAX_APPROVAL_REASON_BYTES: usize = 4 * 1024;

/// How often the engine runs a tool when the tool's worker dies or the tool is not available. Each run passes the
/// claim, which counts the run and decides whether the tool may run again. The last run records why the tool failed.
pub const TOOL_ATTEMPTS: u32 = 5;

/// How long an inline tool may take, in milliseconds. An inline tool runs inside an open workflow task, and no signal
/// reaches the turn until the tool ends.
pub const INLINE_LIMIT_MS: u32 = 2_000;

/// How long the hooks after a turn may take together, in seconds, with all retries and the time without any worker.
/// After an hour, a hook's notes about the turn are of little use.
pub const AFTER_TURN_LIMIT_S: u32 = 60 * 60;

/// How many hooks after turns may run in a conversation. Hooks delay no turn, so without the limit a conversation with
/// short turns and slow hooks could have any number of running hooks.
pub const MAX_HOOKS_AFTER_TURNS: usize = 64;

/// The shortest time, in seconds, that a worker may set as its longest wait for the configured limits of a provider. Every
/// attempt of an LLM call that only waits takes this time at the least, so the time limits the number of attempts.
pub const MIN_PROVIDER_WAIT_S: u32 = 1;

/// The longest time, in seconds, that a worker may set as its longest wait for the configured limits of a provider. The
/// engine gives each attempt of an LLM call this time beside the time of the call.
pub const MAX_PROVIDER_WAIT_S: u32 = 10 * 60;

/// How long an LLM call waits for the configured limits of its provider in all attempts together, in seconds: 4000
/// minutes, which are longer than a weekend. A call that waits for longer would wait for ever.
pub const PROVIDER_QUEUE_LIMIT_S: u32 = 4000 * 60;

/// The engine's pause after the first failed attempt of an LLM call, in seconds. The pause doubles with each attempt.
pub const LLM_FIRST_PAUSE_S: u32 = 1;

/// The longest pause of the engine between two attempts of an LLM call, in seconds, unless the failure asks for another
/// pause.
pub const LLM_LONGEST_PAUSE_S: u32 = 60;

/// The most tool calls of a step. A reply with more tool calls is an invalid response of the model.
pub const MAX_TOOL_CALLS: usize = 64;

/// The most bytes of a conversation that a model call reads: as many as the largest context windows hold, which have a
/// million tokens. When the conversation has more bytes, the context is compacted.
pub const MAX_CONTEXT_BYTES: u32 = 4 * 1024 * 1024;

/// The most messages of a conversation that a model call reads. When the conversation has more messages, the context is
/// compacted. The largest context windows have room for 10,000 short messages.
pub const MAX_CONTEXT_MESSAGES: u32 = 10_000;

/// The longest summary of older messages, in bytes: some 20,000 tokens. A longer summary of a model is cut at the
/// limit.
pub const MAX_SUMMARY_BYTES: usize = 64 * 1024;

/// The longest text of a model (an answer or a thought), in bytes. With a longer text the call ends as an invalid
/// response.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The most sources that a reply may cite. Further sources are left out: nobody reads a longer list.
pub const MAX_CITATIONS: usize = 64;

/// The longest address, title or passage of a cited source, in bytes. A longer title or passage is cut, and a longer
/// address is left out.
pub const MAX_CITED_BYTES: usize = 1000;

/// The most levels of nested arrays and objects in a JSON value. Readers in many languages fail at 128 levels or more,
/// the engine's SDK among them, and the message around a value adds a few levels. A workflow would stand still if its
/// worker could not read a payload.
pub const MAX_JSON_LEVELS: usize = 100;

/// The longest template of a title, in characters. The row of each call has the template.
pub const MAX_TITLE_TEMPLATE_CHARS: usize = 200;

/// The longest title of a call, in characters. A title stands in one line.
pub const MAX_TITLE_CHARS: usize = 200;

/// The longest value of an input in a title, in characters, so that a long value leaves room for the words of the title.
pub const MAX_TITLE_VALUE_CHARS: usize = 80;
