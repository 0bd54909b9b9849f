//! Sizes that all parts must agree on. Limits of one part live in that part's configuration.

/// The largest message, in bytes of UTF-8, unless configured lower. Everything of a turn must fit the engine's 2 MB
/// payload limit even when typed into the CLI, with room for JSON escapes.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// The longest id that a client may choose (conversation, message), in bytes. It becomes part of a workflow id, which
/// the engine limits to 1000 bytes together with the suffixes of sub-agents.
pub const MAX_ID_BYTES: usize = 100;

/// Messages that may wait for their turn in one conversation. They travel in one payload at continue-as-new.
pub const MAX_QUEUED_MESSAGES: usize = 100;

/// The part of a tool's result that a model sees, in bytes. The whole result is kept in `tool_execution_records`
/// (invariant 4, linear history).
pub const TOOL_RESULT_INLINE_BYTES: usize = 16 * 1024;

/// The largest tool result, in bytes; a larger one is an error (invariant 10, nothing grows without a bound).
pub const TOOL_RESULT_MAX_BYTES: usize = 1024 * 1024;

/// The most that is read of a tool's whole result at once, in bytes. It is a page that still reaches a client or a
/// model quickly.
pub const TOOL_RESULT_SLICE_MAX_BYTES: usize = 256 * 1024;

/// The largest input of a remote tool, in bytes of JSON. The input travels by value, through the history.
pub const REMOTE_INPUT_MAX_BYTES: usize = 256 * 1024;

/// An input of a remote tool up to this size is small, in bytes. Calls with larger ones take two of the places below.
pub const SMALL_REMOTE_INPUT_BYTES: usize = 64 * 1024;

/// The largest result of a remote tool, in bytes, unless configured otherwise. The result travels by value, through the
/// history.
pub const REMOTE_RESULT_BYTES: u32 = 128 * 1024;

/// How many remote tools of one step run at the same time, if their inputs and results are small. A call with larger ones
/// takes more of these places: one for each 128 KiB that its result may have. The engine keeps no more than 2 MB of
/// results for a run while a workflow task of it runs, and takes 4 MB at once, where each input travels twice.
pub const REMOTE_PLACES: u32 = 12;

/// How many results of remote tools are recorded at the same time. Each may travel through the engine once more, which
/// takes 4 MB at once.
pub const REMOTE_RECORDS_AT_ONCE: u32 = 2;

/// The largest input that a person may give with an approval, in bytes of JSON. Several may travel through the engine
/// at once.
pub const MAX_APPROVED_INPUT_BYTES: usize = 64 * 1024;

/// The longest reason that a person may give with an approval or a denial, in bytes. The model reads it.
pub const MAX_APPROVAL_REASON_BYTES: usize = 4 * 1024;

/// How often a tool is run when its worker dies or it is not available. Each run passes the claim, which decides whether
/// the tool may run again, and counts. The last one records why the tool failed.
pub const TOOL_ATTEMPTS: u32 = 5;

/// How long an inline tool may take, in milliseconds. It runs while a workflow task is open, and no signal reaches the turn
/// meanwhile.
pub const INLINE_LIMIT_MS: u32 = 2_000;

/// How long the hooks after a turn may take together, in seconds, with all their tries and the time in which no worker
/// is there. What a hook keeps of a turn is of little use later.
pub const AFTER_TURN_LIMIT_S: u32 = 60 * 60;

/// How many hooks after turns may run in one conversation. They hold up no turn, so a conversation with short turns and slow
/// hooks would otherwise have any number of them.
pub const MAX_HOOKS_AFTER_TURNS: usize = 64;

/// The most tool calls of one step. A reply with more is an invalid response of the model.
pub const MAX_TOOL_CALLS: usize = 64;

/// The most that is read of a conversation for one call of a model, in bytes: as much as the largest windows hold, which
/// have a million tokens. With more, the context is compacted.
pub const MAX_CONTEXT_BYTES: u32 = 4 * 1024 * 1024;

/// The most messages that are read of a conversation for one call of a model. With more, the context is compacted. The
/// largest windows have room for so many short ones.
pub const MAX_CONTEXT_MESSAGES: u32 = 10_000;

/// The longest summary of older messages, in bytes: some 20,000 tokens. What a model writes beyond it is cut off.
pub const MAX_SUMMARY_BYTES: usize = 64 * 1024;

/// The longest text of a model (an answer or a thought), in bytes. With a longer one the call ends as an invalid
/// response.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// How many arrays and objects of a JSON value may lie in one another. Readers in many languages give up at 128 or more, the
/// SDK of the engine among them, and values travel inside of messages that have a few levels of their own. A workflow whose
/// payload its worker cannot read would stand still.
pub const MAX_JSON_LEVELS: usize = 100;
