//! A worker's subscriber connection for cancels. A lost connection is made again automatically. Announcements in the
//! meantime are lost, and the engine reports those cancels. The connection tells its follower of every such loss.

use std::time::Duration;

use tokio::{
    sync::{mpsc, watch},
    time::{MissedTickBehavior, interval},
};

use super::{
    address::Address,
    hub::link::{Link, News, Request},
    names::Names,
    options::RedisStreamOptions,
};
use crate::api::{FollowedCancels, Hearing, UNREAD_CANCELS};

/// Follows announcements from now on, in a task that ends when the receiver is dropped.
pub(super) fn follow(
    address: Address,
    names: &Names,
    options: &RedisStreamOptions,
) -> FollowedCancels {
    let (cancels, announced) = mpsc::channel(UNREAD_CANCELS);
    let (heard, hearing) = watch::channel(Hearing::default());
    let link = Link::new(address, options);
    let check = options.sweep_interval.max(Duration::from_millis(1));
    let follower = Follower { cancels, heard };
    tokio::spawn(run(link, names.cancels.clone(), follower, check));
    FollowedCancels { announced, hearing }
}

/// The receiving end of the announcements.
struct Follower {
    cancels: mpsc::Sender<String>,
    heard: watch::Sender<Hearing>,
}

impl Follower {
    /// Hands an announcement over. If the receiver is full, the worker hears of the cancel from the engine.
    fn announce(&self, agent_execution_id: String) {
        if self.cancels.try_send(agent_execution_id).is_err() {
            self.heard.send_modify(|hearing| hearing.losses += 1);
        }
    }

    /// Notes that announcements arrive from now on.
    fn begin(&self) {
        self.heard.send_modify(|hearing| hearing.arrives = true);
    }

    /// Notes that announcements are lost from now on.
    fn end(&self) {
        self.heard.send_modify(|hearing| {
            hearing.arrives = false;
            hearing.losses += 1;
        });
    }
}

async fn run(mut link: Link, channel: String, follower: Follower, check: Duration) {
    let mut checks = interval(check);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A new link is idle, so connecting does not fail.
    let _ = link.connect();
    // One warning per outage. A server with a rejected certificate counts as away for this process, too.
    let mut is_told = false;
    loop {
        tokio::select! {
            () = follower.cancels.closed() => return,
            news = link.next() => match news {
                News::Connected => {
                    is_told = false;
                    link.send(Request::Subscribe(Vec::new()), vec![channel.clone()]);
                }
                News::Message(message) => {
                    if let Ok(id) = message.get_payload() {
                        follower.announce(id);
                    }
                }
                News::Done(Request::Subscribe(_)) => follower.begin(),
                News::Done(_) => {}
                News::Lost(error) => {
                    follower.end();
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
