//! The bounded queue of one reader's untaken frames. The bound is in bytes, because a slow reader must not harm other
//! readers (invariant 10, nothing grows without a bound).

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
};

use tokio::sync::Notify;

use super::{end::ReaderEnd, sse::RenderedFrame};
use crate::sync::{Mutex, MutexGuard};

/// The largest frame in a reader's queue while the reader's tenant is over its share of memory, in bytes. A text piece
/// fits. A connection buffers 16 small frames at the most.
const SMALL: usize = 1024;

/// The largest capacity of an empty queue, in frames.
const KEPT_CAPACITY: usize = 16;

/// The queue of one reader. The tail adds frames, and the reader takes frames.
#[derive(Debug)]
pub(super) struct ReaderQueue {
    waiting: Mutex<WaitingFrames>,
    changed: Notify,
}

#[derive(Debug)]
struct WaitingFrames {
    frames: VecDeque<Arc<RenderedFrame>>,
    bytes: usize,
    /// The most bytes in the queue. A single frame may be larger.
    limit: usize,
    end: Option<QueueEnd>,
}

/// The reason for a queue's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueEnd {
    /// The reader gets no more frames.
    Over(ReaderEnd),
    /// The tenant is over its share of memory, and the reader lags behind. The reader reads later frames from the
    /// store, after the tenant has memory again.
    SetBack,
}

impl ReaderQueue {
    /// Makes a queue with a limit of `limit` bytes.
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

    /// Adds the first texts of a reader. The texts come in one batch, and the limit grows by the size of the batch.
    pub(super) fn begin(&self, texts: impl IntoIterator<Item = Arc<RenderedFrame>>) {
        let mut waiting = self.lock();
        for text in texts {
            waiting.limit += text.bytes.len();
            waiting.add(text);
        }
        self.changed.notify_one();
    }

    /// Adds a frame. Returns false and ends the queue if the reader is too slow. While the tenant `is_over` its share of
    /// memory, the queue sets back a reader with untaken frames, and a reader of a large frame.
    pub(super) fn push(&self, frame: Arc<RenderedFrame>, is_over: bool) -> bool {
        let mut waiting = self.lock();
        let (is_empty, bytes) = (waiting.frames.is_empty(), frame.bytes.len());
        if is_over && (!is_empty || bytes > SMALL) {
            waiting.end(QueueEnd::SetBack);
        } else if (is_empty || waiting.bytes + bytes <= waiting.limit) && waiting.end.is_none() {
            waiting.add(frame);
        } else {
            waiting.end(QueueEnd::Over(ReaderEnd::TooSlow));
        }
        self.changed.notify_one();
        waiting.end.is_none()
    }

    /// Ends the queue after its waiting frames. Only the first end counts.
    pub(super) fn end(&self, end: ReaderEnd) {
        self.lock().end.get_or_insert(QueueEnd::Over(end));
        self.changed.notify_one();
    }

    /// Sends the reader back to the store.
    pub(super) fn set_back(&self) {
        self.lock().end(QueueEnd::SetBack);
        self.changed.notify_one();
    }

    /// Waits for the next frame, or returns the reason for the queue's end. Only one reader may call `next`. Cancel
    /// safe.
    pub(super) async fn next(&self) -> Result<Arc<RenderedFrame>, QueueEnd> {
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

    /// Ends the queue and frees its frames at once, because the reader may never take the frames.
    fn end(&mut self, end: QueueEnd) {
        self.end.get_or_insert(end);
        self.frames = VecDeque::new();
        self.bytes = 0;
    }

    fn take(&mut self) -> Option<Result<Arc<RenderedFrame>, QueueEnd>> {
        let Some(frame) = self.frames.pop_front() else {
            return self.end.map(Err);
        };
        self.bytes -= frame.bytes.len();
        // An empty queue keeps little memory, because a gateway has many readers and most readers are idle.
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
    use crate::{config::GatewayConfig, limits::memory::Memory, live::frame::LiveFrame};

    fn frame() -> Arc<RenderedFrame> {
        let key = TextKey {
            agent_execution_id: "run".to_owned(),
            step: 0,
            part: Part::Text,
        };
        let frame = LiveFrame::TextEnd {
            message_id: "m".to_owned(),
            key,
            generation: 1,
        };
        let account = Memory::new(&GatewayConfig::default()).account("t");
        Arc::new(RenderedFrame::new("c", frame, &account))
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_cut() {
        let size = frame().bytes.len();
        let queue = ReaderQueue::new(3 * size);
        assert!((0..3).all(|_| queue.push(frame(), false)));
        assert!(queue.next().await.is_ok());
        assert!(queue.push(frame(), false), "there is room again");
        assert!(!queue.push(frame(), false));
        assert_eq!(
            queue.next().await.unwrap_err(),
            QueueEnd::Over(ReaderEnd::TooSlow)
        );
        assert!(!queue.push(frame(), false), "it stays cut");
        queue.end(ReaderEnd::Deleted);
        assert_eq!(
            queue.next().await.unwrap_err(),
            QueueEnd::Over(ReaderEnd::TooSlow)
        );
    }

    #[tokio::test]
    async fn a_frame_that_is_larger_than_the_limit_passes() {
        let queue = ReaderQueue::new(1);
        assert!(queue.push(frame(), false));
        assert!(queue.next().await.is_ok());
        assert!(queue.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn the_texts_a_reader_begins_with_do_not_count() {
        let size = frame().bytes.len();
        let queue = ReaderQueue::new(size);
        queue.begin([frame(), frame()]);
        assert!(queue.push(frame(), false));
        assert!(!queue.push(frame(), false));
    }

    #[tokio::test]
    async fn an_end_comes_behind_what_waits() {
        let queue = ReaderQueue::new(1000);
        queue.push(frame(), false);
        queue.end(ReaderEnd::Deleted);
        assert!(queue.next().await.is_ok());
        assert_eq!(
            queue.next().await.unwrap_err(),
            QueueEnd::Over(ReaderEnd::Deleted)
        );
    }

    #[tokio::test]
    async fn over_its_tenants_share_a_reader_that_lags_is_set_back() {
        let queue = ReaderQueue::new(1000);
        assert!(queue.push(frame(), true), "it keeps up");
        assert!(queue.next().await.is_ok());
        assert!(queue.push(frame(), true) && !queue.push(frame(), true));
        assert_eq!(queue.next().await.unwrap_err(), QueueEnd::SetBack);
        queue.end(ReaderEnd::Deleted);
        assert_eq!(queue.next().await.unwrap_err(), QueueEnd::SetBack);
    }
}
