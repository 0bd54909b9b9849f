//! Live delivery: the broadcasts of the running tails, and the queues of their readers.

#[path = "../../../../gateway/src/live/broadcast.rs"]
#[allow(dead_code)]
mod broadcast;
mod broadcast_checks;
#[path = "../../../../gateway/src/live/broadcasts.rs"]
#[allow(dead_code)]
mod broadcasts;
#[path = "../../../../gateway/src/live/cursor.rs"]
#[allow(dead_code, unreachable_pub)]
mod cursor;
#[path = "../../../../gateway/src/live/end.rs"]
#[allow(dead_code, unreachable_pub)]
mod end;
#[path = "../../../../gateway/src/live/frame.rs"]
#[allow(dead_code, unreachable_pub)]
mod frame;
#[path = "../../../../gateway/src/live/generations.rs"]
mod generations;
mod lists;
#[path = "../../../../gateway/src/live/newest.rs"]
mod newest;
#[path = "../../../../gateway/src/live/open_texts.rs"]
mod open_texts;
#[path = "../../../../gateway/src/live/queue.rs"]
mod queue;
mod queue_checks;
#[path = "../../../../gateway/src/live/seals.rs"]
mod seals;
mod sse;

pub use self::{broadcast_checks::*, lists::*, queue_checks::*};
