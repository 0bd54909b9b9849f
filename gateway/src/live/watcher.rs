//! Finds events after a lost announcement: one query asks the store about every conversation of the gateway's tails.
//!
//! After an announcement, a tail reads the store at once. The stream may lose announcements, and a worker in another
//! process may be unable to announce. Therefore one query per interval asks for the last sequence numbers of all
//! watched conversations, and a tail without the newest events reads the store. Without an open tail, no task runs and
//! no query is sent.
//!
//! A store may lose its last commits in an outage, and other events may take their sequence numbers before the next
//! query. Therefore a tail reads its log once after an outage, even with an unchanged last number.
//!
//! Must not be here: reading events, which the tails do.

use std::{
    collections::HashMap,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_store::{EventLog, EventReader};
use tokio::{
    sync::watch,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};

/// The most conversations of one query: some 40 KB of ids.
const MAX_IDS: usize = 1000;

/// Asks the store about the conversations of a gateway's tails. Clones share the queries.
#[derive(Clone)]
pub struct Watcher {
    shared: Arc<SharedWatcher>,
}

struct SharedWatcher {
    events: Arc<dyn EventReader>,
    interval: Duration,
    watched: Mutex<WatchedConversations>,
}

#[derive(Default)]
struct WatchedConversations {
    /// The results of the last query.
    found: HashMap<EventLog, watch::Sender<Found>>,
    /// The number of outages of the store.
    outages: u64,
    /// True after a failed query.
    is_away: bool,
    is_running: bool,
}

/// The result of a query for one log.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// The last sequence number; `None` when the log is gone.
    last_sequence: Option<u32>,
    /// The number of outages before the query.
    outages: u64,
}

/// A watched conversation. Dropping the value ends the watch.
#[derive(Debug)]
pub struct WatchedConversation {
    found: watch::Receiver<Found>,
    /// The outages already reported to the tail.
    outages: u64,
}

/// The result of a query for one tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The store has events that the tail has not read.
    Behind,
    /// The log ends at the tail's position, after an outage of the store. The store may have come back with another
    /// log.
    Returned,
    /// The log is gone, or has fewer events than the tail has read. A late replica looks alike.
    Doubtful,
}

impl Watcher {
    /// Makes a watcher that queries the store once per `interval`, while a conversation is watched.
    pub fn new(events: Arc<dyn EventReader>, interval: Duration) -> Self {
        let interval = interval.max(Duration::from_millis(1));
        Self {
            shared: Arc::new(SharedWatcher {
                events,
                interval,
                watched: Mutex::default(),
            }),
        }
    }

    /// Watches a conversation. Must be called within a tokio runtime.
    pub fn watch(&self, log: &EventLog) -> WatchedConversation {
        let mut watched = self.shared.lock();
        if !watched.is_running {
            watched.is_running = true;
            tokio::spawn(Arc::clone(&self.shared).run(self.ticks()));
        }
        let outages = watched.outages;
        let nothing = Found {
            last_sequence: Some(0),
            outages,
        };
        let sender = watched.found.entry(log.clone());
        let sender = sender.or_insert_with(|| watch::Sender::new(nothing));
        WatchedConversation {
            found: sender.subscribe(),
            outages,
        }
    }

    /// Returns the time between two queries.
    pub(crate) fn interval(&self) -> Duration {
        self.shared.interval
    }

    /// Makes the timer of the queries.
    fn ticks(&self) -> Interval {
        let mut ticks = interval_at(Instant::now() + self.shared.interval, self.shared.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    }
}

impl WatchedConversation {
    /// Waits for a query with a last sequence number other than `cursor`, or for the first query after an outage of the
    /// store. Repeats the report after every such query, for a tail that read a late replica. Cancel safe.
    pub async fn news(&mut self, cursor: u32) -> News {
        loop {
            if self.found.changed().await.is_err() {
                // The runtime is shutting down.
                pending::<()>().await;
            }
            let found = *self.found.borrow_and_update();
            let has_returned = found.outages > self.outages;
            self.outages = found.outages;
            match found.last_sequence {
                Some(last_sequence) if last_sequence > cursor => return News::Behind,
                Some(last_sequence) if last_sequence == cursor && has_returned => {
                    return News::Returned;
                }
                Some(last_sequence) if last_sequence == cursor => {}
                Some(_) | None => return News::Doubtful,
            }
        }
    }
}

impl SharedWatcher {
    async fn run(self: Arc<Self>, mut ticks: Interval) {
        loop {
            ticks.tick().await;
            let Some(logs) = self.logs() else {
                return;
            };
            for chunk in logs.chunks(MAX_IDS) {
                let ids = chunk.iter().map(|log| log.conversation_id.clone());
                match self.events.last_sequences(&ids.collect::<Vec<_>>()).await {
                    Ok(last_sequences) => self.tell(chunk, &last_sequences.into_iter().collect()),
                    Err(error) => {
                        self.note_outage();
                        tracing::debug!(%error, "the query for missed events failed; the next query follows");
                    }
                }
            }
        }
    }

    /// Returns the watched logs. Without a watched log, returns `None`, and the queries end.
    fn logs(&self) -> Option<Vec<EventLog>> {
        let mut watched = self.lock();
        watched
            .found
            .retain(|_, sender| sender.receiver_count() > 0);
        watched.is_running = !watched.found.is_empty();
        watched
            .is_running
            .then(|| watched.found.keys().cloned().collect())
    }

    fn note_outage(&self) {
        let mut watched = self.lock();
        watched.outages += u64::from(!watched.is_away);
        watched.is_away = true;
    }

    fn tell(&self, asked: &[EventLog], last_sequences: &HashMap<EventLog, u32>) {
        let mut watched = self.lock();
        watched.is_away = false;
        let outages = watched.outages;
        for log in asked {
            if let Some(sender) = watched.found.get(log) {
                let last_sequence = last_sequences.get(log).copied();
                sender.send_replace(Found {
                    last_sequence,
                    outages,
                });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchedConversations> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
