//! The frames that one reader has not taken yet, bounded in bytes, so that a slow reader does not harm the others
//! (invariant 10, nothing grows without a bound).

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use super::{end::ReaderEnd, sse::RenderedFrame};

/// The largest frame that a reader may have to hold while its tenant is over its share of memory, in bytes: a piece of a
/// text. A connection buffers 16 of them at the most.
const SMALL: usize = 1024;

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
    end: Option<QueueEnd>,
}

/// Why there are no more frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueEnd {
    /// The reader gets nothing more.
    Over(ReaderEnd),
    /// Its tenant is over its share of memory, and the reader has frames to take. It reads what follows from the store,
    /// when there is memory.
    SetBack,
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

    /// Adds a frame. If its reader is too slow, returns false and ends the queue. While the tenant `is_over` its share of
    /// memory, a reader is so that has not taken what there was before, or would have to hold a large frame.
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

    /// Ends the queue after the frames that wait in it. Only the first end counts.
    pub(super) fn end(&self, end: ReaderEnd) {
        self.lock().end.get_or_insert(QueueEnd::Over(end));
        self.changed.notify_one();
    }

    /// Sends the reader back to the store.
    pub(super) fn set_back(&self) {
        self.lock().end(QueueEnd::SetBack);
        self.changed.notify_one();
    }

    /// Waits for the next frame, or tells why there are no more. For one reader only. Cancel safe.
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

    /// Ends the queue and frees its frames at once, because perhaps nobody takes them.
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
