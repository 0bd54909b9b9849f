//! A worker's subscriber connection, over which it hears of cancels. It is made again by itself. What is announced
//! meanwhile is lost, and the engine tells of it.

use std::time::Duration;

use redis::Client;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use super::{
    hub::link::{Link, News, Request},
    names::Names,
    options::RedisStreamOptions,
};
use crate::api::UNREAD_CANCELS;

/// Follows the announcements from now on, on a task that ends when the receiver is dropped.
pub(super) fn follow(
    client: Client,
    names: &Names,
    options: &RedisStreamOptions,
) -> mpsc::Receiver<String> {
    let (cancels, receiver) = mpsc::channel(UNREAD_CANCELS);
    let link = Link::new(client, options);
    let check = options.sweep_interval.max(Duration::from_millis(1));
    tokio::spawn(run(link, names.cancels.clone(), cancels, check));
    receiver
}

async fn run(mut link: Link, channel: String, cancels: mpsc::Sender<String>, check: Duration) {
    let mut checks = interval(check);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A new link is idle, and connecting it does not fail.
    let _ = link.connect();
    loop {
        tokio::select! {
            () = cancels.closed() => return,
            news = link.next() => match news {
                News::Connected => link.send(Request::Subscribe(Vec::new()), vec![channel.clone()]),
                News::Message(message) => {
                    if let Ok(id) = message.get_payload() {
                        // A receiver that is full hears of the cancel from the engine.
                        let _ = cancels.try_send(id);
                    }
                }
                News::Done(_) => {}
                News::Lost(error) => {
                    tracing::debug!(%error, "the connection that hears of cancels was lost");
                }
            },
            _ = checks.tick() => if link.is_free() {
                link.send(Request::Ping, Vec::new());
            },
        }
    }
}
