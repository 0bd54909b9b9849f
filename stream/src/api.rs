//! What a stream back end can do: publish and follow, and announce cancels.

use async_trait::async_trait;
use everturn_proto::{LogId, SealedStep};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// One text of one step: what a model says while it says it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TextKey {
    /// The agent execution that speaks.
    pub agent_execution_id: String,
    /// Its step.
    pub step: u32,
    /// Answer or reasoning.
    pub part: Part,
}

/// Which of a step's texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// What becomes the thought or the answer.
    Text,
    /// What a reasoning model thinks before it speaks.
    Reasoning,
}

/// A piece of an open text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The message whose turn it is.
    pub message_id: String,
    /// Which text.
    pub key: TextKey,
    /// Which try of the step the piece belongs to; given by the store (invariant 7, fenced deltas).
    pub generation: u32,
    /// Bytes of the text before this piece.
    pub offset: usize,
    /// The piece itself.
    pub text: String,
    /// True for the last piece.
    pub is_end: bool,
    /// True when this generation writes the text of the older one again, from its beginning, and goes on with it. What
    /// readers have been shown then stays until there is more ([`Published::Behind`]). Readers are not told.
    pub continues: bool,
}

/// Answer to a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// Readers will see it.
    Accepted,
    /// A newer generation of the step has begun, or its event is saved: the writer should stop.
    Refused,
    /// The stream does not hold the text up to `offset` (it lost it, or a piece went missing): publish it again
    /// from offset 0.
    Gap,
    /// Readers have been shown more of the text that this one continues, and nothing has changed: publish it again from
    /// offset 0 once there is more of it.
    Behind,
}

/// News that a batch was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The conversation's largest sequence number.
    pub last_sequence: u32,
    /// Steps whose texts saved events replace. The stream forgets these texts, and refuses later pieces of them.
    pub sealed: Vec<SealedStep>,
}

/// An error of the stream. Never a reason to fail a turn: readers get every event and the whole text from the
/// store (invariant 8, a cursor never expires).
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The stream cannot be reached now. [`StreamWriter::may_publish`] and [`StreamReader::may_follow`] return when it
    /// makes sense to try again.
    #[error("the stream is away: {0}")]
    Away(#[source] Cause),
    /// Anything else: a limit is reached, or the stream is too slow.
    #[error("the stream is not available: {0}")]
    Failed(#[source] Cause),
}

/// What an error of the stream comes from.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Publishes pieces and announcements of a conversation, which its log names. Used by activities.
#[async_trait]
pub trait StreamWriter: Send + Sync {
    /// Adds a piece to an open text. A newer generation starts the text anew, on every reader; an older one is
    /// refused (invariant 7, fenced deltas). Offset 0 of the same generation starts the text anew as well. A generation
    /// that continues the older one empties nothing, and begins with at least as much text as readers have been shown.
    async fn publish(&self, log: &LogId, piece: Piece) -> Result<Published, StreamError>;

    /// Tells readers that events were saved.
    async fn announce(&self, log: &LogId, announcement: Announcement) -> Result<(), StreamError>;

    /// Waits while the stream is known to be away, and returns at once when it is not. As soon as it is back, everybody
    /// who waits here goes on. Until then, one caller at a time goes on after a pause, and is to find out with a
    /// publication whether it is back. Cancel safe.
    async fn may_publish(&self) {}
}

/// Follows a conversation, which its log names. Used by gateways.
#[async_trait]
pub trait StreamReader: Send + Sync {
    /// Everything from now on, and the texts that are open now. Nothing falls between the two.
    async fn follow(&self, log: &LogId) -> Result<Following, StreamError>;

    /// Forgets the texts of a conversation that was removed. A worker that has not heard of it may publish another
    /// piece, which expires unread.
    async fn forget(&self, log: &LogId) -> Result<(), StreamError>;

    /// Waits while the stream is known to be away, like [`StreamWriter::may_publish`]. Whoever goes on is to follow.
    /// Cancel safe.
    async fn may_follow(&self) {}
}

/// Announces to workers that agent executions are cancelled. An announcement is a hint: it may be lost, repeated, or
/// wrong. So whoever receives one asks the engine, and who does not is told by the engine a little later.
#[async_trait]
pub trait CancelNews: Send + Sync {
    /// Announces to everybody who follows that this agent execution is cancelled.
    async fn announce_cancel(&self, agent_execution_id: &str) -> Result<(), StreamError>;

    /// Returns the agent executions whose cancel is announced from now on, of all conversations. It is called once in a
    /// process, within a tokio runtime. While the back end is away, announcements are lost; when it is back, they come
    /// again. A receiver that has [`UNREAD_CANCELS`] of them before it loses those that follow.
    fn follow_cancels(&self) -> mpsc::Receiver<String>;
}

/// Announced cancels that a receiver has not taken yet: more than a worker has activities.
pub const UNREAD_CANCELS: usize = 1024;

/// A followed conversation.
#[derive(Debug)]
pub struct Following {
    /// The texts open at the moment of following, each with its text so far.
    pub open: Vec<OpenText>,
    /// What comes after. Ends ([`mpsc::Receiver::recv`] gives `None`) when the follower was too slow or the stream has
    /// lost messages. Follow again then, from the store's cursor.
    pub items: mpsc::Receiver<Item>,
}

/// An open text and how much of it there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenText {
    /// The message whose turn it is.
    pub message_id: String,
    /// Which text.
    pub key: TextKey,
    /// Which try of the step.
    pub generation: u32,
    /// The text so far.
    pub text: String,
    /// True when the model has finished the text, and its event is not saved yet.
    pub is_ended: bool,
}

/// What a follower receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A text begins, or begins anew; it replaces what the reader had for this key.
    Start(OpenText),
    /// More of an open text.
    Delta(Piece),
    /// Events were saved.
    Announced(Announcement),
}
