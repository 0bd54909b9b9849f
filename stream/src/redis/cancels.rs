//! A worker's subscriber connection for cancels. A lost connection is made again automatically. Announcements in the
//! meantime are lost, and the engine reports those cancels.

use std::time::Duration;

use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use super::{
    address::Address,
    hub::link::{Link, News, Request},
    names::Names,
    options::RedisStreamOptions,
};
use crate::api::UNREAD_CANCELS;

/// Follows announcements from now on, in a task that ends when the receiver is dropped.
pub(super) fn follow(
    address: Address,
    names: &Names,
    options: &RedisStreamOptions,
) -> mpsc::Receiver<String> {
    let (cancels, receiver) = mpsc::channel(UNREAD_CANCELS);
    let link = Link::new(address, options);
    let check = options.sweep_interval.max(Duration::from_millis(1));
    tokio::spawn(run(link, names.cancels.clone(), cancels, check));
    receiver
}

async fn run(mut link: Link, channel: String, cancels: mpsc::Sender<String>, check: Duration) {
    let mut checks = interval(check);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A new link is idle, so connecting does not fail.
    let _ = link.connect();
    // One warning per outage. A server with a rejected certificate counts as away for this process, too.
    let mut is_told = false;
    loop {
        tokio::select! {
            () = cancels.closed() => return,
            news = link.next() => match news {
                News::Connected => {
                    is_told = false;
                    link.send(Request::Subscribe(Vec::new()), vec![channel.clone()]);
                }
                News::Message(message) => {
                    if let Ok(id) = message.get_payload() {
                        // If the receiver is full, the worker hears of the cancel from the engine.
                        let _ = cancels.try_send(id);
                    }
                }
                News::Done(_) => {}
                News::Lost(error) => {
                    if !is_told {
                        tracing::warn!(%error, "Redis is away; cancels are heard of a little later");
                    }
                    is_told = true;
                }
            },
            _ = checks.tick() => if link.is_free() {
                link.send(Request::Ping, Vec::new());
            },
        }
    }
}
