//! What one reader has not taken yet: bounded in bytes, so that a reader that falls behind costs nobody else anything
//! (invariant 10).

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::end::End;
use crate::live::sse::Rendered;

/// Frames for which an empty queue keeps its memory.
const KEPT_CAPACITY: usize = 16;

/// Filled by the tail, emptied by one reader.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug)]
struct Waiting {
    frames: VecDeque<Arc<Rendered>>,
    bytes: usize,
    /// Bytes at the most. A single frame may be larger.
    limit: usize,
    end: Option<End>,
}

impl Queue {
    /// A queue in which `limit` bytes may wait.
    pub(super) fn new(limit: usize) -> Self {
        let waiting = Waiting {
            frames: VecDeque::new(),
            bytes: 0,
            limit,
            end: None,
        };
        Self {
            waiting: Mutex::new(waiting),
            changed: Notify::new(),
        }
    }

    /// Adds the texts a reader begins with. They come all at once, so the limit does not count them.
    pub(super) fn begin(&self, texts: impl IntoIterator<Item = Arc<Rendered>>) {
        let mut waiting = self.lock();
        for text in texts {
            waiting.limit += text.bytes.len();
            waiting.add(text);
        }
        self.changed.notify_one();
    }

    /// Adds a frame; false, and the end of the queue, when its reader has fallen too far behind.
    pub(super) fn push(&self, frame: Arc<Rendered>) -> bool {
        let mut waiting = self.lock();
        let fits = waiting.frames.is_empty() || waiting.bytes + frame.bytes.len() <= waiting.limit;
        if fits && waiting.end.is_none() {
            waiting.add(frame);
        } else {
            waiting.end(End::TooSlow);
        }
        self.changed.notify_one();
        waiting.end.is_none()
    }

    /// Ends the queue behind what waits in it. The first end stands.
    pub(super) fn end(&self, end: End) {
        self.lock().end.get_or_insert(end);
        self.changed.notify_one();
    }

    /// The next frame, or why there is none any more. For one reader only. Cancel safe.
    pub(super) async fn next(&self) -> Result<Arc<Rendered>, End> {
        loop {
            if let Some(next) = self.lock().take() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn add(&mut self, frame: Arc<Rendered>) {
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
    }

    /// Ends it, and lets go at once of what nobody may come to take.
    fn end(&mut self, end: End) {
        self.end.get_or_insert(end);
        self.frames = VecDeque::new();
        self.bytes = 0;
    }

    fn take(&mut self) -> Option<Result<Arc<Rendered>, End>> {
        let Some(frame) = self.frames.pop_front() else {
            return self.end.map(Err);
        };
        self.bytes -= frame.bytes.len();
        // Most readers are idle most of the time, and there are many of them.
        if self.frames.is_empty() && self.frames.capacity() > KEPT_CAPACITY {
            self.frames = VecDeque::new();
        }
        Some(Ok(frame))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use everturn_stream::{Part, TextKey};
    use futures::FutureExt;

    use super::*;
    use crate::live::tail::Frame;

    fn frame() -> Arc<Rendered> {
        let key = TextKey {
            agent_execution_id: "run".to_owned(),
            step: 0,
            part: Part::Text,
        };
        Arc::new(Rendered::new(
            "c",
            Frame::TextEnd {
                message_id: "m".to_owned(),
                key,
                generation: 1,
            },
        ))
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_cut() {
        let size = frame().bytes.len();
        let queue = Queue::new(3 * size);
        assert!((0..3).all(|_| queue.push(frame())));
        assert!(queue.next().await.is_ok());
        assert!(queue.push(frame()), "there is room again");
        assert!(!queue.push(frame()));
        assert_eq!(queue.next().await.unwrap_err(), End::TooSlow);
        assert!(!queue.push(frame()), "it stays cut");
        queue.end(End::Deleted);
        assert_eq!(queue.next().await.unwrap_err(), End::TooSlow);
    }

    #[tokio::test]
    async fn a_frame_that_is_larger_than_the_limit_passes() {
        let queue = Queue::new(1);
        assert!(queue.push(frame()));
        assert!(queue.next().await.is_ok());
        assert!(queue.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn the_texts_a_reader_begins_with_do_not_count() {
        let size = frame().bytes.len();
        let queue = Queue::new(size);
        queue.begin([frame(), frame()]);
        assert!(queue.push(frame()));
        assert!(!queue.push(frame()));
    }

    #[tokio::test]
    async fn an_end_comes_behind_what_waits() {
        let queue = Queue::new(1000);
        queue.push(frame());
        queue.end(End::Deleted);
        assert!(queue.next().await.is_ok());
        assert_eq!(queue.next().await.unwrap_err(), End::Deleted);
    }
}
