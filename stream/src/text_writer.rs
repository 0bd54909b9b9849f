//! Publishes the text of a model. The model never waits for a publication.
//!
//! `push` only appends to a buffer. A task publishes the buffer: at once for the first piece, then at most every 20
//! ms. Must not be here: models, events.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_proto::{LogId, limits::MAX_TEXT_BYTES};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};

use crate::api::{Part, Piece, Published, StreamError, StreamWriter, TextKey};

/// The time between two publications. 50 publications a second read as fluent, and a thousand tokens cost some tens
/// of publications.
pub const PUBLISH_INTERVAL: Duration = Duration::from_millis(20);

/// The longest pause after repeated errors. The pause is short because it adds to the outage of the stream. In a
/// known outage, [`StreamWriter::may_publish`] makes all writers of a process wait and releases them together.
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// The time limit for the last publication in `finish`. The next event has the whole text, so a stream that is down
/// must not delay the turn.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest shown call, in bytes. The saved call has every byte; readers see enough of a long one to follow.
const MAX_CALL_BYTES: usize = 256 * 1024;

/// Publishes the texts of one LLM call. Dropping the writer stops publishing.
///
/// Errors of the stream are only logged: the store has the whole text (invariant 8, a cursor never expires).
#[derive(Debug)]
pub struct TextWriter {
    shared: Arc<Shared>,
    task: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    buffers: Mutex<Buffers>,
    pushed: Notify,
    finishing: Notify,
    is_finishing: AtomicBool,
    /// Whether the texts continue the texts of the older generation ([`Piece::continues`]).
    continues: AtomicBool,
    is_superseded: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Buffers {
    /// The texts in the order of their beginnings.
    parts: Vec<(Part, Buffer)>,
    /// The index of the last published part. The parts take turns, so no part starves.
    last: usize,
}

#[derive(Debug, Default)]
struct Buffer {
    text: String,
    /// Bytes of `text` that the stream has.
    sent: usize,
    is_end_sent: bool,
    is_full: bool,
    /// The length of `text` at the last answer [`Published::Behind`]; 0 without such an answer.
    behind: usize,
}

/// The address of the texts in the stream.
struct Address {
    log_id: LogId,
    message_id: String,
    agent_execution_id: String,
    step: u32,
    generation: u32,
}

impl TextWriter {
    /// Starts a writer for a try of a step. `generation` comes from the store's claim. Must be called within a
    /// tokio runtime.
    pub fn new(
        stream: Arc<dyn StreamWriter>,
        log_id: LogId,
        message_id: impl Into<String>,
        agent_execution_id: impl Into<String>,
        step: u32,
        generation: u32,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let address = Address {
            log_id,
            message_id: message_id.into(),
            agent_execution_id: agent_execution_id.into(),
            step,
            generation,
        };
        let task = tokio::spawn(run(Arc::clone(&shared), stream, address));
        Self {
            shared,
            task: Some(task),
        }
    }

    /// Sets whether the texts repeat the texts of the older generation from the beginning and then continue them, so
    /// that readers see no restart. The default is false. The value applies to later publications.
    pub fn set_continues(&self, continues: bool) {
        self.shared.continues.store(continues, Ordering::Release);
        self.shared.pushed.notify_one();
    }

    /// Appends to a text. Never blocks. Text beyond `MAX_TEXT_BYTES`, and the rest of a long call, are not shown live.
    pub fn push(&self, part: Part, text: &str) {
        if self.shared.lock().push(part, text) {
            self.shared.pushed.notify_one();
        }
    }

    /// Returns the text pushed so far.
    pub fn text_so_far(&self, part: Part) -> String {
        let buffers = self.shared.lock();
        let mut parts = buffers.parts.iter();
        let found = parts.find(|(known, _)| *known == part);
        found.map_or_else(String::new, |(_, buffer)| buffer.text.clone())
    }

    /// Waits until the stream refuses a piece: a newer generation runs, or the step's event is saved. The LLM call of
    /// this writer is then most likely useless, but only the store knows for certain.
    pub async fn superseded(&self) {
        let mut is_superseded = self.shared.is_superseded.subscribe();
        // The sender is in `self`, so the wait cannot fail.
        let _ = is_superseded.wait_for(|is_superseded| *is_superseded).await;
    }

    /// Publishes the rest and the ends of the texts, for at most a second.
    pub async fn finish(mut self) {
        self.shared.is_finishing.store(true, Ordering::Release);
        self.shared.finishing.notify_one();
        self.shared.pushed.notify_one();
        // The task stays in `self` during the wait, so that dropping the future also stops the task.
        if let Some(task) = self.task.as_mut()
            && timeout(FINISH_TIMEOUT, task).await.is_err()
        {
            tracing::debug!("the stream did not take the end of a text in time");
        }
    }
}

impl Drop for TextWriter {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_finishing(&self) -> bool {
        self.is_finishing.load(Ordering::Acquire)
    }

    fn continues(&self) -> bool {
        self.continues.load(Ordering::Acquire)
    }
}

impl Buffer {
    /// Appends to the text. Returns false when the buffer has no new text to publish.
    fn push(&mut self, text: &str, limit: usize) -> bool {
        if self.is_full || text.is_empty() {
            return false;
        }
        let cut = text.floor_char_boundary(limit - self.text.len());
        self.is_full = cut < text.len();
        self.text.push_str(&text[..cut]);
        cut > 0
    }

    fn is_pending(&self, is_finishing: bool, continues: bool) -> bool {
        let has_more = self.sent < self.text.len();
        // The stream would repeat its answer until the text is longer or complete.
        let waits = continues && !is_finishing && self.behind == self.text.len();
        (has_more && !waits) || (is_finishing && !self.text.is_empty() && !self.is_end_sent)
    }
}

impl Buffers {
    /// Appends to a text. Returns false when the text has nothing new to publish.
    fn push(&mut self, part: Part, text: &str) -> bool {
        let limit = match part {
            Part::Text | Part::Reasoning => MAX_TEXT_BYTES,
            Part::Call(_) => MAX_CALL_BYTES,
        };
        let found = self.parts.iter().position(|(known, _)| *known == part);
        let index = found.unwrap_or_else(|| {
            self.parts.push((part, Buffer::default()));
            self.parts.len() - 1
        });
        self.parts[index].1.push(text, limit)
    }

    /// The next piece to publish and the index of its part.
    fn next(
        &mut self,
        address: &Address,
        is_finishing: bool,
        continues: bool,
    ) -> Option<(usize, Piece)> {
        let count = self.parts.len();
        let mut order = (1..=count).map(|after| (self.last + after) % count);
        let index = order.find(|index| self.parts[*index].1.is_pending(is_finishing, continues))?;
        self.last = index;
        let (part, buffer) = &self.parts[index];
        let key = TextKey {
            agent_execution_id: address.agent_execution_id.clone(),
            step: address.step,
            part: *part,
        };
        let piece = Piece {
            message_id: address.message_id.clone(),
            key,
            generation: address.generation,
            offset: buffer.sent,
            text: buffer.text[buffer.sent..].to_owned(),
            is_end: is_finishing,
            continues,
        };
        Some((index, piece))
    }

    /// Records the answer to a piece. After an error the piece may have arrived. If it has, the stream answers the
    /// next try with a gap.
    fn book(&mut self, sent: &Sent, published: &Result<Published, StreamError>) {
        let (_, buffer) = &mut self.parts[sent.index];
        match published {
            Ok(Published::Accepted) => {
                buffer.sent = sent.end;
                buffer.is_end_sent |= sent.is_end;
            }
            Ok(Published::Gap) => buffer.sent = 0,
            Ok(Published::Behind) => (buffer.sent, buffer.behind) = (0, sent.end),
            Ok(Published::Refused) | Err(_) => {}
        }
    }
}

/// Publishes until the texts are finished or refused.
async fn run(shared: Arc<Shared>, stream: Arc<dyn StreamWriter>, address: Address) {
    let mut failures = Failures::default();
    loop {
        let is_finishing = shared.is_finishing();
        let continues = shared.continues();
        let next = shared.lock().next(&address, is_finishing, continues);
        let Some((index, piece)) = next else {
            if is_finishing {
                return;
            }
            shared.pushed.notified().await;
            continue;
        };
        let started = Instant::now();
        let sent = Sent {
            index,
            offset: piece.offset,
            end: piece.offset + piece.text.len(),
            is_end: piece.is_end,
        };
        let published = stream.publish(&address.log_id, piece).await;
        if matches!(published, Ok(Published::Refused)) {
            shared.is_superseded.send_replace(true);
            return;
        }
        if sent.is_end && matches!(published, Ok(Published::Behind)) {
            // The text is complete and still differs from the text shown to readers.
            shared.continues.store(false, Ordering::Release);
        }
        failures.count(&sent, &published);
        shared.lock().book(&sent, &published);
        let next_at = started + failures.pause();
        if failures.in_a_row > 0 {
            sleep_until(next_at).await;
            stream.may_publish().await;
        } else if !shared.is_finishing() {
            tokio::select! {
                () = sleep_until(next_at) => {}
                () = shared.finishing.notified() => {}
            }
        }
    }
}

/// A piece that was handed to the stream.
struct Sent {
    index: usize,
    offset: usize,
    end: usize,
    is_end: bool,
}

/// The count of failed publications in a row.
#[derive(Default)]
struct Failures {
    in_a_row: u32,
    is_warned: bool,
}

impl Failures {
    fn count(&mut self, sent: &Sent, published: &Result<Published, StreamError>) {
        match published {
            // A gap at offset 0 counts as a failure, because without a pause this writer would repeat the piece
            // endlessly.
            Ok(Published::Gap) if sent.offset == 0 => {
                self.in_a_row = self.in_a_row.saturating_add(1);
            }
            Ok(_) => self.in_a_row = 0,
            Err(error) => {
                self.in_a_row = self.in_a_row.saturating_add(1);
                if self.is_warned {
                    tracing::debug!(%error, in_a_row = self.in_a_row, "a text is still not shown live");
                } else {
                    self.is_warned = true;
                    tracing::warn!(%error, "a text is not shown live for now");
                }
            }
        }
    }

    fn pause(&self) -> Duration {
        PUBLISH_INTERVAL
            .saturating_mul(1 << self.in_a_row.min(6))
            .min(MAX_PAUSE)
    }
}
