//! The subscriber connection for the followers of this process.
//!
//! An actor owns the connection and the followers. The actor never waits for Redis: messages are handled while a
//! subscription request runs. One request at a time covers many waiting conversations. When the connection is lost,
//! the actor cuts every follower and connects again. The readers then follow again from the store's cursor with a new
//! snapshot, so the actor never re-subscribes. Must not be here: commands, scripts.

mod followers;
pub(super) mod link;

use std::{collections::HashMap, sync::Arc, time::Duration};

use everturn_proto::LogId;
use redis::Msg;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Interval, MissedTickBehavior, interval},
};

use self::{
    followers::{Asker, Followed, Subscription},
    link::{Link, News, Request},
};
use super::{
    address::Address,
    error::Error,
    known::Known,
    names::Names,
    options::RedisStreamOptions,
    outage::Outage,
    wire::{self, Position},
};
use crate::api::Item;

/// The most requests that may wait for the actor.
const ASKS: usize = 1024;

/// A handle on the actor. Dropping the handle ends the actor and its followers.
#[derive(Debug)]
pub(super) struct Hub {
    asks: mpsc::Sender<Ask>,
    /// True while the connection is lost or cannot be made.
    is_away: watch::Receiver<bool>,
}

/// A subscribed follower. The follower keeps messages until the position of the snapshot is known.
#[derive(Debug)]
pub(super) struct Joined {
    pub id: u64,
    pub items: mpsc::Receiver<Item>,
}

#[derive(Debug)]
enum Ask {
    Join {
        log: LogId,
        asker: Asker,
    },
    Start {
        log: LogId,
        id: u64,
        position: Position,
        started: oneshot::Sender<bool>,
    },
}

impl Hub {
    /// Starts the actor. It connects for the first follower.
    pub(super) fn new(
        address: Address,
        names: Names,
        options: RedisStreamOptions,
        known: Arc<Known>,
        outage: Arc<Outage>,
    ) -> Self {
        let (asks, receiver) = mpsc::channel(ASKS);
        let (away, is_away) = watch::channel(false);
        let mut sweep = interval(options.sweep_interval.max(Duration::from_millis(1)));
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let actor = Actor {
            asks: receiver,
            link: Link::new(address, &options),
            names,
            options,
            known,
            outage,
            away,
            conversations: HashMap::new(),
            wanted: Vec::new(),
            unwanted: Vec::new(),
            next_id: 0,
            sweep,
        };
        tokio::spawn(actor.run());
        Self { asks, is_away }
    }

    /// Waits while the subscriber's connection is lost or cannot be made. Cancel safe.
    pub(super) async fn is_reachable(&self) {
        // An error means that the runtime is shutting down.
        let _ = self.is_away.clone().wait_for(|is_away| !is_away).await;
    }

    /// Adds a follower of a conversation, and waits until the channel is subscribed.
    pub(super) async fn join(&self, log: &LogId) -> Result<Joined, Error> {
        let (asker, answer) = oneshot::channel();
        let ask = Ask::Join {
            log: log.clone(),
            asker,
        };
        self.asks.send(ask).await.map_err(|_| Error::Lost)?;
        answer.await.map_err(|_| Error::Lost)?
    }

    /// Gives a follower the messages after `position`. Returns false when a message is missing; the follower must join
    /// again.
    pub(super) async fn start(&self, log: &LogId, id: u64, position: Position) -> bool {
        let (started, answer) = oneshot::channel();
        let ask = Ask::Start {
            log: log.clone(),
            id,
            position,
            started,
        };
        self.asks.send(ask).await.is_ok() && answer.await.unwrap_or(false)
    }
}

struct Actor {
    asks: mpsc::Receiver<Ask>,
    link: Link,
    names: Names,
    options: RedisStreamOptions,
    known: Arc<Known>,
    /// The outage tracker shared with the commands.
    outage: Arc<Outage>,
    away: watch::Sender<bool>,
    conversations: HashMap<LogId, Followed>,
    /// Conversations to subscribe and to unsubscribe with the next requests.
    wanted: Vec<LogId>,
    unwanted: Vec<LogId>,
    next_id: u64,
    sweep: Interval,
}

impl Actor {
    async fn run(mut self) {
        loop {
            tokio::select! {
                ask = self.asks.recv() => match ask {
                    Some(Ask::Join { log, asker }) => self.join(log, asker),
                    Some(Ask::Start { log, id, position, started }) => {
                        let followed = self.conversations.get_mut(&log);
                        let is_started = followed.is_some_and(|followed| followed.start(id, position));
                        // The caller may have gone.
                        let _ = started.send(is_started);
                    }
                    None => return,
                },
                news = self.link.next() => match news {
                    News::Connected => {
                        self.outage.try_now();
                        self.away.send_replace(false);
                    }
                    News::Message(message) => self.deliver(&message),
                    News::Done(request) => self.done(request),
                    News::Lost(error) => self.lose(&error),
                },
                _ = self.sweep.tick() => self.sweep(),
            }
            self.request();
        }
    }

    fn join(&mut self, log: LogId, asker: Asker) {
        if let Err(error) = self.make_room(&log) {
            let _ = asker.send(Err(error));
            return;
        }
        self.next_id += 1;
        let followed = self.conversations.entry(log).or_default();
        followed.add(self.next_id, self.options.follower_buffer.max(1), asker);
    }

    /// Checks the limits for one more follower, and has the conversation's channel subscribed.
    fn make_room(&mut self, log: &LogId) -> Result<(), Error> {
        self.link.connect()?;
        let limits = &self.options;
        if let Some(followed) = self.conversations.get_mut(log) {
            followed.forget_gone();
            if followed.len() >= limits.max_followers {
                return Err(Error::Followers(limits.max_followers));
            }
        } else if self.conversations.len() >= limits.max_conversations {
            return Err(Error::Conversations(limits.max_conversations));
        } else {
            self.wanted.push(log.clone());
        }
        Ok(())
    }

    /// Gives a message to the followers of its conversation.
    fn deliver(&mut self, message: &Msg) {
        let channel = message.get_channel_name();
        let Some(log) = self.names.log(channel) else {
            return;
        };
        let Some(followed) = self.conversations.get_mut(&log) else {
            return;
        };
        let Some(message) = wire::parse(message.get_payload_bytes()) else {
            tracing::warn!(
                channel,
                "a message on the channel is not the stream's; its followers begin again"
            );
            return followed.cut();
        };
        let is_admitted = self.known.admit(&log, &message.item);
        followed.deliver(&message, is_admitted);
    }

    /// Sends waiting subscriptions, one request at a time.
    fn request(&mut self) {
        if !self.link.is_free() {
            return;
        }
        if let Some(wanted) = take_batch(&mut self.wanted) {
            let channels = self.channels(&wanted);
            self.link.send(Request::Subscribe(wanted), channels);
        } else if let Some(unwanted) = take_batch(&mut self.unwanted) {
            let channels = self.channels(&unwanted);
            self.link.send(Request::Unsubscribe(unwanted), channels);
        }
    }

    fn channels(&self, logs: &[LogId]) -> Vec<String> {
        logs.iter().map(|id| self.names.of(id).channel).collect()
    }

    fn done(&mut self, request: Request) {
        match request {
            Request::Ping => {}
            Request::Subscribe(ids) => {
                for id in ids {
                    if let Some(followed) = self.conversations.get_mut(&id) {
                        followed.subscribed();
                    }
                }
            }
            Request::Unsubscribe(ids) => {
                for id in ids {
                    let Some(followed) = self.conversations.get_mut(&id) else {
                        continue;
                    };
                    followed.forget_gone();
                    if followed.len() == 0 {
                        self.conversations.remove(&id);
                    } else {
                        // A follower came in the meantime.
                        followed.subscription = Subscription::Wanted;
                        self.wanted.push(id);
                    }
                }
            }
        }
    }

    fn lose(&mut self, error: &Error) {
        tracing::debug!(%error, conversations = self.conversations.len(), "the subscriber's connection was lost");
        self.conversations.clear();
        self.wanted.clear();
        self.unwanted.clear();
        self.away
            .send_if_modified(|is_away| !std::mem::replace(is_away, true));
    }

    /// Finds conversations without followers, and checks the connection with a ping.
    fn sweep(&mut self) {
        for (id, followed) in &mut self.conversations {
            followed.forget_gone();
            if followed.len() == 0 && followed.subscription == Subscription::Made {
                followed.subscription = Subscription::Unwanted;
                self.unwanted.push(id.clone());
            }
        }
        if self.link.is_free() {
            self.link.send(Request::Ping, Vec::new());
        }
    }
}

/// The most conversations of one request: a command of some 20 KB.
const BATCH: usize = 256;

fn take_batch(waiting: &mut Vec<LogId>) -> Option<Vec<LogId>> {
    let from = waiting.len().saturating_sub(BATCH);
    (!waiting.is_empty()).then(|| waiting.split_off(from))
}
