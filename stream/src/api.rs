//! The traits of a stream back end: publish and follow texts, and announce cancels.

use async_trait::async_trait;
use everturn_proto::{LogId, SealedStep};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use tokio::sync::{mpsc, watch};

pub use crate::part::Part;

/// The key of a step's text. A text grows while the model writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TextKey {
    /// The agent execution of the text.
    pub agent_execution_id: String,
    /// The number of the step.
    pub step: u32,
    /// The kind of the text.
    pub part: Part,
}

/// A piece of an open text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The user message of the turn.
    pub message_id: String,
    /// The key of the text.
    pub key: TextKey,
    /// The generation of the piece: the number of the step's try, given by the store (invariant 7, fenced deltas).
    pub generation: u32,
    /// Bytes of the text before this piece.
    pub offset: usize,
    /// The content of the piece.
    pub text: String,
    /// True for the last piece.
    pub is_end: bool,
    /// True when this generation repeats the text of the older generation from the beginning and then continues it.
    /// The text shown to readers stays until the new text is longer ([`Published::Behind`]). Readers do not receive
    /// the flag.
    pub continues: bool,
}

/// The stream's answer to a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// Readers will see the piece.
    Accepted,
    /// The step has a newer generation, or its event is saved: the writer should stop.
    Refused,
    /// The stream lacks the text up to `offset`, because it lost the text or a piece: publish the text again from
    /// offset 0.
    Gap,
    /// Readers already see more of the continued text, and nothing has changed: publish again from offset 0 when the
    /// text has grown.
    Behind,
}

/// The news of a saved batch of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The conversation's largest sequence number.
    pub last_sequence: u32,
    /// Steps whose texts are replaced by saved events. The stream forgets their texts and refuses late pieces.
    pub sealed: Vec<SealedStep>,
}

/// The news of a model call that the provider has refused, and that is made again later. The stream does not keep the
/// news.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelWait {
    /// The user message of the turn.
    pub message_id: String,
    /// The agent execution of the call.
    pub agent_execution_id: String,
    /// The step of the call.
    pub step: u32,
    /// The code of the refusal.
    pub code: String,
    /// The refusal in a sentence.
    pub message: String,
    /// The number of the step's next call, refused calls included.
    pub attempt: u32,
    /// The time until the next call, in milliseconds.
    pub retry_after_ms: u64,
}

/// The progress of a running tool, or a line of its log. The stream does not keep the news.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolProgress {
    /// The user message of the turn.
    pub message_id: String,
    /// The agent execution of the call.
    pub agent_execution_id: String,
    /// The tool execution.
    pub execution_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The amount of work that is done, in the tool's own unit; `None` when the tool names no amount.
    pub progress: Option<Number>,
    /// The whole amount of work, in the same unit, if known.
    pub total: Option<Number>,
    /// The tool's words; empty without words.
    pub message: String,
    /// The level of a line of the tool's log, like `info`; `None` for progress.
    pub level: Option<String>,
}

/// News for the present readers. The stream does not keep a notice: a later reader learns of the state from the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub enum Notice {
    /// A call waits for its provider.
    ModelWaits(ModelWait),
    /// A tool works on.
    ToolWorks(ToolProgress),
}

impl Notice {
    /// Returns the user message of the turn.
    pub fn message_id(&self) -> &str {
        match self {
            Self::ModelWaits(wait) => &wait.message_id,
            Self::ToolWorks(progress) => &progress.message_id,
        }
    }
}

/// An error of the stream. An error never fails a turn: readers get every event and the whole text from the store
/// (invariant 8, a cursor never expires).
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The stream cannot be reached now. [`StreamWriter::may_publish`] and [`StreamReader::may_follow`] return when a
    /// new try makes sense.
    #[error("the stream is away: {0}")]
    Away(#[source] Cause),
    /// Any other failure: a limit is reached, or the stream is too slow.
    #[error("the stream is not available: {0}")]
    Failed(#[source] Cause),
}

/// The cause of a stream error.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Publishes pieces and announcements of a conversation, addressed by its log. Used by activities.
#[async_trait]
pub trait StreamWriter: Send + Sync {
    /// Adds a piece to an open text. A newer generation starts the text anew on every reader, and an older generation
    /// is refused (invariant 7, fenced deltas). Offset 0 of the current generation also starts the text anew. A
    /// generation that continues the older one empties no text, and its first piece must be as long as the text shown
    /// to readers.
    async fn publish(&self, log: &LogId, piece: Piece) -> Result<Published, StreamError>;

    /// Announces saved events to the readers.
    async fn announce(&self, log: &LogId, announcement: Announcement) -> Result<(), StreamError>;

    /// Sends a notice to the present readers.
    async fn notify(&self, log: &LogId, notice: Notice) -> Result<(), StreamError>;

    /// Waits while the stream is known to be away, and returns at once otherwise. Every waiting caller goes on when
    /// the stream is back. Until then one caller after each pause goes on, to find out with a publication whether the
    /// stream is back. Cancel safe.
    async fn may_publish(&self) {}
}

/// Follows a conversation, addressed by its log. Used by gateways.
#[async_trait]
pub trait StreamReader: Send + Sync {
    /// Returns the texts that are open now and every later item. No item is lost between the texts and the items.
    async fn follow(&self, log: &LogId) -> Result<Following, StreamError>;

    /// Forgets the texts of a removed conversation. A worker that does not know of the removal may publish another
    /// piece, which expires unread.
    async fn forget(&self, log: &LogId) -> Result<(), StreamError>;

    /// Waits while the stream is known to be away, like [`StreamWriter::may_publish`]. A caller must follow when the
    /// wait ends. Cancel safe.
    async fn may_follow(&self) {}
}

/// Announces cancelled agent executions to workers. An announcement is a hint: it may be lost, repeated or wrong.
/// Therefore a worker asks the engine after an announcement, and a worker without the announcement learns of the
/// cancel from the engine a little later.
#[async_trait]
pub trait CancelNews: Send + Sync {
    /// Announces the cancel of an agent execution to every follower.
    async fn announce_cancel(&self, agent_execution_id: &str) -> Result<(), StreamError>;

    /// Follows the cancels that are announced from now on, for any conversation. A process calls this
    /// function once, within a tokio runtime. Announcements are lost while the back end is away, and arrive again
    /// when it is back.
    fn follow_cancels(&self) -> FollowedCancels;
}

/// The announced cancels, for one process.
#[derive(Debug)]
pub struct FollowedCancels {
    /// The agent executions with an announced cancel. A receiver with [`UNREAD_CANCELS`] unread announcements loses
    /// later announcements.
    pub announced: mpsc::Receiver<String>,
    /// Whether announcements arrive now.
    pub hearing: watch::Receiver<Hearing>,
}

/// Whether announced cancels arrive at a process. A process with lost announcements asks the engine more often.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hearing {
    /// True while the announcements of every process of the installation arrive. Never true without a shared back end.
    pub arrives: bool,
    /// The number of times at which announcements may have been lost, since the process began to follow.
    pub losses: u64,
}

/// The most unread announcements of a receiver: five times as many as a worker has activities by default.
pub const UNREAD_CANCELS: usize = 1024;

/// A followed conversation.
#[derive(Debug)]
pub struct Following {
    /// The texts open at the moment of following, with their content so far.
    pub open: Vec<OpenText>,
    /// Later items. The channel ends ([`mpsc::Receiver::recv`] returns `None`) when the follower was too slow or the
    /// stream has lost messages. Follow again then, from the store's cursor.
    pub items: mpsc::Receiver<Item>,
}

/// An open text and the content so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenText {
    /// The user message of the turn.
    pub message_id: String,
    /// The key of the text.
    pub key: TextKey,
    /// The generation: the number of the step's try.
    pub generation: u32,
    /// The content so far.
    pub text: String,
    /// True when the model has finished the text but the step's event is not saved yet.
    pub is_ended: bool,
}

/// An item for a follower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A text begins, or begins anew. The new text replaces the reader's text of the key.
    Start(OpenText),
    /// More of an open text.
    Delta(Piece),
    /// Events were saved.
    Announced(Announcement),
    /// News that the stream does not keep.
    Notice(Notice),
}
