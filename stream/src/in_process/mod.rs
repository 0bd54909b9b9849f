//! The stream of a single process: a map under a lock.
//!
//! The stream has no background task: expired entries are swept out by later publications and follows. Must not be
//! here: the rules of one conversation, which are in [`conversation`].

mod conversation;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use everturn_proto::LogId;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use self::conversation::Conversation;
use crate::api::{
    Announcement, CancelNews, FollowedCancels, Following, Hearing, Notice, Piece, Published,
    StreamError, StreamReader, StreamWriter, UNREAD_CANCELS,
};

/// Limits of a stream (invariant 10, nothing grows without a bound). `limits::MAX_TEXT_BYTES` limits the bytes of one
/// text, because the writer and the stream must agree on that limit.
#[derive(Debug, Clone)]
pub struct StreamOptions {
    /// The most open texts of one conversation. Beyond the limit the text with the oldest write is forgotten, and its
    /// writer publishes it again. Default 64: more sub-agents than a person can watch.
    pub max_open_texts: usize,
    /// The most steps and agent executions remembered per conversation, to refuse late pieces. Default 64: a piece
    /// comes late by one step or two, never by 64.
    pub max_remembered: usize,
    /// The most unread items of a follower before it is cut. Default 1024: 20 s of one text at a piece every 20 ms.
    pub follower_buffer: usize,
    /// The most followers of one conversation. Default 1024: a guard against a client that opens streams in a loop.
    pub max_followers: usize,
    /// The most conversations. Default 10 000. Beyond the limit the least recently used conversations are forgotten.
    pub max_conversations: usize,
    /// The lifetime of an untouched text, or of a conversation without followers. Default 10 min: more than the time
    /// limit of one LLM call and its save.
    pub ttl: Duration,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            max_open_texts: 64,
            max_remembered: 64,
            follower_buffer: 1024,
            max_followers: 1024,
            max_conversations: 10_000,
            ttl: Duration::from_mins(10),
        }
    }
}

/// The back end of a single process. Clones share one stream.
#[derive(Debug, Clone)]
pub struct InProcessStream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: StreamOptions,
    conversations: Mutex<Conversations>,
    /// The followers of cancels.
    cancels: Mutex<Vec<mpsc::Sender<String>>>,
}

#[derive(Debug)]
struct Conversations {
    by_log: HashMap<LogId, Conversation>,
    swept: Instant,
}

/// A reached limit of the stream.
#[derive(Debug, thiserror::Error)]
enum Full {
    #[error("the stream already has followers for {0} conversations, which is the limit")]
    Conversations(usize),
    #[error("the conversation already has {0} followers")]
    Followers(usize),
}

impl Default for InProcessStream {
    fn default() -> Self {
        Self::new(StreamOptions::default())
    }
}

impl InProcessStream {
    /// Creates an empty stream.
    pub fn new(options: StreamOptions) -> Self {
        let conversations = Conversations {
            by_log: HashMap::new(),
            swept: Instant::now(),
        };
        Self {
            inner: Arc::new(Inner {
                options,
                conversations: Mutex::new(conversations),
                cancels: Mutex::default(),
            }),
        }
    }

    /// Returns the current number of conversations, for metrics and tests.
    pub fn conversations(&self) -> usize {
        self.lock(Instant::now()).by_log.len()
    }

    fn cancel_followers(&self) -> MutexGuard<'_, Vec<mpsc::Sender<String>>> {
        let followers = self.inner.cancels.lock();
        followers.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the map, swept when a sweep is due. A panic elsewhere leaves the map usable, because every change is
    /// complete.
    fn lock(&self, now: Instant) -> MutexGuard<'_, Conversations> {
        let options = &self.inner.options;
        let mut conversations = self
            .inner
            .conversations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // This interval keeps expired entries little longer than the TTL, and costs almost nothing.
        if now.duration_since(conversations.swept) >= options.ttl / 4 {
            conversations.swept = now;
            conversations
                .by_log
                .retain(|_, conversation| conversation.expire(options.ttl, now));
        }
        conversations
    }
}

impl Conversations {
    /// Returns the conversation, and creates a missing one.
    fn entry(
        &mut self,
        log: &LogId,
        options: &StreamOptions,
        now: Instant,
    ) -> Result<&mut Conversation, StreamError> {
        if !self.by_log.contains_key(log) && self.by_log.len() >= options.max_conversations {
            self.make_room();
            if self.by_log.len() >= options.max_conversations {
                return Err(StreamError::Failed(Box::new(Full::Conversations(
                    options.max_conversations,
                ))));
            }
        }
        let conversation = self
            .by_log
            .entry(log.clone())
            .or_insert_with(|| Conversation::new(options, now));
        conversation.touch(options.ttl, now);
        Ok(conversation)
    }

    /// Forgets the older half of the conversations without followers. Forgetting only the oldest conversation would
    /// search a full map at every publication.
    fn make_room(&mut self) {
        let mut touched: Vec<Instant> = self
            .by_log
            .values()
            .filter(|held| !held.is_followed())
            .map(Conversation::touched)
            .collect();
        let half = touched.len() / 2;
        if let Some((_, median, _)) =
            (!touched.is_empty()).then(|| touched.select_nth_unstable(half))
        {
            let median = *median;
            self.by_log
                .retain(|_, held| held.is_followed() || held.touched() > median);
        }
    }
}

#[async_trait]
impl StreamWriter for InProcessStream {
    async fn publish(&self, log: &LogId, piece: Piece) -> Result<Published, StreamError> {
        let now = Instant::now();
        let mut conversations = self.lock(now);
        let conversation = conversations.entry(log, &self.inner.options, now)?;
        Ok(conversation.publish(piece, &self.inner.options, now))
    }

    async fn announce(&self, log: &LogId, announcement: Announcement) -> Result<(), StreamError> {
        let now = Instant::now();
        let mut conversations = self.lock(now);
        let conversation = conversations.entry(log, &self.inner.options, now)?;
        conversation.announce(announcement);
        Ok(())
    }

    async fn notify(&self, log: &LogId, notice: Notice) -> Result<(), StreamError> {
        let now = Instant::now();
        let mut conversations = self.lock(now);
        let conversation = conversations.entry(log, &self.inner.options, now)?;
        conversation.notify(notice);
        Ok(())
    }
}

#[async_trait]
impl StreamReader for InProcessStream {
    async fn follow(&self, log: &LogId) -> Result<Following, StreamError> {
        let now = Instant::now();
        let options = &self.inner.options;
        let mut conversations = self.lock(now);
        let conversation = conversations.entry(log, options, now)?;
        conversation
            .follow(options)
            .ok_or_else(|| StreamError::Failed(Box::new(Full::Followers(options.max_followers))))
    }

    async fn forget(&self, log: &LogId) -> Result<(), StreamError> {
        self.lock(Instant::now()).by_log.remove(log);
        Ok(())
    }
}

#[async_trait]
impl CancelNews for InProcessStream {
    async fn announce_cancel(&self, agent_execution_id: &str) -> Result<(), StreamError> {
        for follower in self.cancel_followers().iter() {
            // A follower with a full buffer hears of the cancel from the engine.
            let _ = follower.try_send(agent_execution_id.to_owned());
        }
        Ok(())
    }

    fn follow_cancels(&self) -> FollowedCancels {
        let (sender, announced) = mpsc::channel(UNREAD_CANCELS);
        let mut followers = self.cancel_followers();
        followers.retain(|follower| !follower.is_closed());
        followers.push(sender);
        // Other processes may have workers of the same installation, and their announcements never arrive here.
        let (_, hearing) = watch::channel(Hearing::default());
        FollowedCancels { announced, hearing }
    }
}
