//! The queue of one reader: the tail adds frames while the reader waits, and while the reader gives up waiting.

use std::{pin::pin, sync::Arc};

use everturn_proto::event::Event;
use futures::poll;
use shuttle::{future::block_on, thread};

use super::{
    end::ReaderEnd,
    frame::LiveFrame,
    queue::{QueueEnd, ReaderQueue},
    sse::RenderedFrame,
};
use crate::{config::GatewayConfig, limits::memory::Memory, orders::in_many_orders};

/// The event with this sequence number.
pub(super) fn event(sequence_number: u32) -> Event {
    Event {
        sequence_number,
        ..Event::default()
    }
}

/// The sequence number of a frame's event.
pub(super) fn sequence(frame: &RenderedFrame) -> u32 {
    match &frame.frame {
        LiveFrame::Event(event) => event.sequence_number,
        other => panic!("no event: {other:?}"),
    }
}

/// A reader gets every frame and the end, although the reader often drops its wait.
pub fn a_reader_that_drops_its_wait_loses_no_frame() {
    in_many_orders(|| {
        let account = Memory::new(&GatewayConfig::default()).account("a");
        let queue = Arc::new(ReaderQueue::new(1000));
        let tail = Arc::clone(&queue);
        let tail = thread::spawn(move || {
            for number in 1..=2 {
                let frame = LiveFrame::Event(event(number));
                let frame = Arc::new(RenderedFrame::new("c", frame, &account));
                assert!(tail.push(frame, false), "the reader is cut");
            }
            tail.end(ReaderEnd::Deleted);
        });
        let reader = async {
            let mut taken = Vec::new();
            loop {
                // The first wait is dropped without a frame, as after a time-out of the reader.
                let first = poll!(pin!(queue.next()));
                let next = match first {
                    std::task::Poll::Ready(next) => next,
                    std::task::Poll::Pending => queue.next().await,
                };
                match next {
                    Ok(frame) => taken.push(sequence(&frame)),
                    Err(end) => return (taken, end),
                }
            }
        };
        let (taken, end) = block_on(reader);
        assert_eq!(taken, [1, 2]);
        assert_eq!(end, QueueEnd::Over(ReaderEnd::Deleted));
        tail.join().unwrap();
    });
}
