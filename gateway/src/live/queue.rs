//! The frames that one reader has not taken yet, bounded in bytes, so that a slow reader does not harm the others
//! (invariant 10, nothing grows without a bound).

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::{end::ReaderEnd, sse::RenderedFrame};

/// The most frames for which an empty queue keeps its memory.
const KEPT_CAPACITY: usize = 16;

/// The queue of one reader. The tail adds frames, and the reader takes them.
#[derive(Debug)]
pub(super) struct ReaderQueue {
    waiting: Mutex<WaitingFrames>,
    changed: Notify,
}

#[derive(Debug)]
struct WaitingFrames {
    frames: VecDeque<Arc<RenderedFrame>>,
    bytes: usize,
    /// The most bytes that may wait. A single frame may be larger.
    limit: usize,
    end: Option<ReaderEnd>,
}

impl ReaderQueue {
    /// Makes a queue in which `limit` bytes may wait.
    pub(super) fn new(limit: usize) -> Self {
        let waiting = WaitingFrames {
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
    pub(super) fn begin(&self, texts: impl IntoIterator<Item = Arc<RenderedFrame>>) {
        let mut waiting = self.lock();
        for text in texts {
            waiting.limit += text.bytes.len();
            waiting.add(text);
        }
        self.changed.notify_one();
    }

    /// Adds a frame. If its reader is too slow, returns false and ends the queue.
    pub(super) fn push(&self, frame: Arc<RenderedFrame>) -> bool {
        let mut waiting = self.lock();
        let fits = waiting.frames.is_empty() || waiting.bytes + frame.bytes.len() <= waiting.limit;
        if fits && waiting.end.is_none() {
            waiting.add(frame);
        } else {
            waiting.end(ReaderEnd::TooSlow);
        }
        self.changed.notify_one();
        waiting.end.is_none()
    }

    /// Ends the queue after the frames that wait in it. Only the first end counts.
    pub(super) fn end(&self, end: ReaderEnd) {
        self.lock().end.get_or_insert(end);
        self.changed.notify_one();
    }

    /// Waits for the next frame, or tells why there are no more. For one reader only. Cancel safe.
    pub(super) async fn next(&self) -> Result<Arc<RenderedFrame>, ReaderEnd> {
        loop {
            if let Some(next) = self.lock().take() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingFrames> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingFrames {
    fn add(&mut self, frame: Arc<RenderedFrame>) {
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
    }

    /// Ends the queue and frees its frames at once, because perhaps nobody takes them.
    fn end(&mut self, end: ReaderEnd) {
        self.end.get_or_insert(end);
        self.frames = VecDeque::new();
        self.bytes = 0;
    }

    fn take(&mut self) -> Option<Result<Arc<RenderedFrame>, ReaderEnd>> {
        let Some(frame) = self.frames.pop_front() else {
            return self.end.map(Err);
        };
        self.bytes -= frame.bytes.len();
        // Most readers are idle most of the time, and there are many, so empty queues keep little memory.
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
    use crate::live::frame::LiveFrame;

    fn frame() -> Arc<RenderedFrame> {
        let key = TextKey {
            agent_execution_id: "run".to_owned(),
            step: 0,
            part: Part::Text,
        };
        Arc::new(RenderedFrame::new(
            "c",
            LiveFrame::TextEnd {
                message_id: "m".to_owned(),
                key,
                generation: 1,
            },
        ))
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_cut() {
        let size = frame().bytes.len();
        let queue = ReaderQueue::new(3 * size);
        assert!((0..3).all(|_| queue.push(frame())));
        assert!(queue.next().await.is_ok());
        assert!(queue.push(frame()), "there is room again");
        assert!(!queue.push(frame()));
        assert_eq!(queue.next().await.unwrap_err(), ReaderEnd::TooSlow);
        assert!(!queue.push(frame()), "it stays cut");
        queue.end(ReaderEnd::Deleted);
        assert_eq!(queue.next().await.unwrap_err(), ReaderEnd::TooSlow);
    }

    #[tokio::test]
    async fn a_frame_that_is_larger_than_the_limit_passes() {
        let queue = ReaderQueue::new(1);
        assert!(queue.push(frame()));
        assert!(queue.next().await.is_ok());
        assert!(queue.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn the_texts_a_reader_begins_with_do_not_count() {
        let size = frame().bytes.len();
        let queue = ReaderQueue::new(size);
        queue.begin([frame(), frame()]);
        assert!(queue.push(frame()));
        assert!(!queue.push(frame()));
    }

    #[tokio::test]
    async fn an_end_comes_behind_what_waits() {
        let queue = ReaderQueue::new(1000);
        queue.push(frame());
        queue.end(ReaderEnd::Deleted);
        assert!(queue.next().await.is_ok());
        assert_eq!(queue.next().await.unwrap_err(), ReaderEnd::Deleted);
    }
}
