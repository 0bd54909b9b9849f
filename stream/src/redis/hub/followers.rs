//! The followers of one conversation in this process, and the position of every follower.

use tokio::sync::{mpsc, oneshot};

use super::Joined;
use crate::{
    api::Item,
    redis::{
        error::Error,
        wire::{Message, Order, Position},
    },
};

/// The caller that waits for a follower.
pub(super) type Asker = oneshot::Sender<Result<Joined, Error>>;

/// The state of the subscription to the conversation's channel.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subscription {
    /// The subscription is requested.
    #[default]
    Wanted,
    Made,
    /// The channel is being unsubscribed.
    Unwanted,
}

/// A conversation and its followers.
#[derive(Debug, Default)]
pub(super) struct Followed {
    pub(super) subscription: Subscription,
    followers: Vec<Follower>,
}

#[derive(Debug)]
struct Follower {
    id: u64,
    items: mpsc::Sender<Item>,
    state: State,
    /// The caller to answer when the channel is subscribed, with the answer.
    asker: Option<(Asker, Joined)>,
}

#[derive(Debug)]
enum State {
    /// The follower waits for its snapshot. Messages are kept until then, with a flag whether each may be shown.
    Joining(Vec<(Message, bool)>),
    Live(Position),
}

impl Followed {
    pub(super) fn len(&self) -> usize {
        self.followers.len()
    }

    /// Forgets followers without a reader.
    pub(super) fn forget_gone(&mut self) {
        self.followers.retain(|follower| match &follower.asker {
            Some((asker, _)) => !asker.is_closed(),
            None => !follower.items.is_closed(),
        });
    }

    /// Adds a follower. The caller gets its answer now, or when the channel is subscribed.
    pub(super) fn add(&mut self, id: u64, buffer: usize, asker: Asker) {
        let (sender, items) = mpsc::channel(buffer);
        let mut follower = Follower {
            id,
            items: sender,
            state: State::Joining(Vec::new()),
            asker: None,
        };
        let joined = Joined { id, items };
        if self.subscription == Subscription::Made {
            // `forget_gone` finds a caller that has gone.
            let _ = asker.send(Ok(joined));
        } else {
            follower.asker = Some((asker, joined));
        }
        self.followers.push(follower);
    }

    /// Records the subscription of the channel, and answers the callers.
    pub(super) fn subscribed(&mut self) {
        self.subscription = Subscription::Made;
        for follower in &mut self.followers {
            if let Some((asker, joined)) = follower.asker.take() {
                let _ = asker.send(Ok(joined));
            }
        }
    }

    /// Gives a follower the messages after its snapshot. Returns false when a message is missing.
    pub(super) fn start(&mut self, id: u64, position: Position) -> bool {
        let Some(at) = self.followers.iter().position(|follower| follower.id == id) else {
            return false;
        };
        let is_whole = self.followers[at].start(position);
        if !is_whole {
            self.followers.swap_remove(at);
        }
        is_whole
    }

    /// Gives a message to every follower. A follower is cut when its buffer is full, or when it misses an earlier
    /// message. The delivery waits for no follower.
    pub(super) fn deliver(&mut self, message: &Message, is_shown: bool) {
        self.followers
            .retain_mut(|follower| follower.take(message, is_shown));
    }

    /// Cuts every follower; the readers then follow again.
    pub(super) fn cut(&mut self) {
        self.followers.clear();
    }
}

impl Follower {
    fn start(&mut self, position: Position) -> bool {
        let State::Joining(kept) = std::mem::replace(&mut self.state, State::Live(position)) else {
            return false;
        };
        // A message of an older epoch was sent before the snapshot.
        let mut kept = kept
            .into_iter()
            .filter(|(message, _)| message.position.epoch >= position.epoch);
        kept.all(|(message, is_shown)| self.take(&message, is_shown))
    }

    /// Gives the follower a message. Returns false when the follower must be cut.
    fn take(&mut self, message: &Message, is_shown: bool) -> bool {
        match &mut self.state {
            State::Joining(kept) => {
                let has_room = kept.len() < self.items.max_capacity();
                if has_room {
                    kept.push((message.clone(), is_shown));
                }
                has_room
            }
            State::Live(position) => match position.order(message.position) {
                Order::Known => true,
                Order::Gap => false,
                Order::Next => {
                    *position = message.position;
                    !is_shown || self.items.try_send(message.item.clone()).is_ok()
                }
            },
        }
    }
}
