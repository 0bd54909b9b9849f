//! Sizes that all parts must agree on. Limits of one part live in that part's configuration.

/// A message, in bytes of UTF-8, unless configured lower. Everything of a turn must fit the engine's 2 MB
/// payload limit even when typed into the CLI, with room for JSON escapes.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// Length of an id chosen by a client (conversation, message): it becomes part of a workflow id, which the
/// engine caps at 1000 bytes together with suffixes of sub-agents.
pub const MAX_ID_BYTES: usize = 100;

/// Messages that may wait for their turn in one conversation: they travel in one payload at continue-as-new.
pub const MAX_QUEUED_MESSAGES: usize = 100;

/// What a model sees of one tool result, in bytes; the whole is kept in `tool_execution_records` (invariant 4).
pub const TOOL_RESULT_INLINE_BYTES: usize = 16 * 1024;

/// A tool result past this is an error (invariant 10).
pub const TOOL_RESULT_MAX_BYTES: usize = 1024 * 1024;

/// What is read of a tool's whole result at once, in bytes: a page that a client or a model still gets quickly.
pub const TOOL_RESULT_SLICE_MAX_BYTES: usize = 256 * 1024;

/// Input of a remote tool: it travels by value, through the history.
pub const REMOTE_INPUT_MAX_BYTES: usize = 256 * 1024;

/// The input that a person gives with an approval, in bytes of JSON: it travels through the engine, several at once.
pub const MAX_APPROVED_INPUT_BYTES: usize = 64 * 1024;

/// Why a person approved or denied a call, in bytes: the model reads it.
pub const MAX_APPROVAL_REASON_BYTES: usize = 4 * 1024;

/// Tries of a tool whose worker died or that is not available: each passes the claim, which decides whether it may run
/// again. The last one records why it failed; the server does not tell an activity which one that is.
pub const TOOL_ATTEMPTS: u32 = 5;

/// Tool calls of one step; more is an invalid response of the model.
pub const MAX_TOOL_CALLS: usize = 64;

/// One text of a model (an answer, a thought), in bytes; past it the call ends as an invalid response.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;
