//! The stream on Redis 7, for workers and gateways in separate processes.
//!
//! - [`scripts`]: fence, append and publish in one round trip; the rules are in `scripts/*.lua`
//! - [`commands`]: runs the scripts within a time limit
//! - [`address`]: the address of Redis, and the certificates for TLS
//! - [`outage`]: tracks whether Redis is away, and which caller probes it
//! - [`hub`]: one subscriber connection, which serves all followers of this process
//! - [`cancels`]: a worker's subscriber connection for cancels
//! - [`counts`]: requests and streams of each tenant, summed over all gateways
//! - [`known`]: generations and seals seen by this process, and **what the fence holds after Redis has lost
//!   everything**
//! - [`wire`] and [`names`]: messages, keys and channels
//!
//! A seal also covers the earlier steps of its agent execution, because steps run one after the other.
//!
//! The back end uses Redis pub/sub instead of Redis Streams. A follower needs the current texts and later pieces, but
//! no history. A Redis Stream would store each piece a second time beside the text, and would need one blocked read
//! per conversation. A position number in each message reveals messages that pub/sub has lost (`wire::Position`).

mod address;
mod cancels;
mod commands;
mod counts;
mod error;
mod hub;
mod known;
mod names;
mod options;
mod outage;
mod scripts;
mod wire;

use std::sync::Arc;

use async_trait::async_trait;
use everturn_proto::LogId;
use tokio::{sync::Semaphore, time::timeout};

use self::{
    address::Address,
    commands::Commands,
    error::Error,
    hub::Hub,
    known::Known,
    names::Names,
    outage::Outage,
    scripts::{RawSnapshot, Snapshot},
};
pub use self::{address::RedisPeer, options::RedisStreamOptions};
use crate::api::{
    Announcement, CancelNews, FollowedCancels, Following, Notice, Piece, Published, StreamError,
    StreamReader, StreamWriter,
};

/// The most snapshots taken at once. The limit bounds memory and requests when thousands of readers come back
/// together.
const MAX_SNAPSHOTS: usize = 32;

/// The most tries to join a conversation when messages are lost in between.
const JOINS: usize = 3;

/// The back end on Redis. Clones share two connections and the followers. The followers end with the last clone.
/// Following cancels takes one more connection.
#[derive(Debug, Clone)]
pub struct RedisStream {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    address: Address,
    options: RedisStreamOptions,
    names: Names,
    commands: Commands,
    outage: Arc<Outage>,
    hub: Hub,
    known: Arc<Known>,
    snapshots: Semaphore,
}

impl RedisStream {
    /// Creates a stream on the Redis at `url` (`redis://[user:password@]host:port[/db]`, or `rediss://` for TLS, for
    /// which the process installs rustls' provider). With `rediss://`, `?sslrootcert=` names a file with the
    /// authority of the server's certificate; `sslcert` and `sslkey` name the client's certificate and key. Returns
    /// an error for an invalid URL or an unusable file. The connection is made at first use, so a process can start
    /// while Redis is away. Must be called within a tokio runtime.
    pub fn connect(url: &str, options: RedisStreamOptions) -> Result<Self, StreamError> {
        let address = Address::parse(url)?;
        // An unusable certificate is reported at the start, not when a reader first waits for a text.
        address.client()?;
        let names = Names::new(&options.prefix, &options.installation);
        let known = Arc::new(Known::new(options.max_known_agent_executions));
        let outage = Arc::new(Outage::new(&options));
        let hub = Hub::new(
            address.clone(),
            names.clone(),
            options.clone(),
            Arc::clone(&known),
            Arc::clone(&outage),
        );
        let commands = Commands::new(
            address.clone(),
            options.command_timeout,
            Arc::clone(&outage),
        );
        let snapshots = Semaphore::new(MAX_SNAPSHOTS);
        Ok(Self {
            inner: Arc::new(Inner {
                address,
                options,
                names,
                commands,
                outage,
                hub,
                known,
                snapshots,
            }),
        })
    }
}

/// Returns the server that a URL names, without connecting.
pub fn redis_peer(url: &str) -> Result<RedisPeer, StreamError> {
    Ok(Address::parse(url)?.peer())
}

impl Inner {
    async fn publish(&self, log: &LogId, piece: &Piece) -> Result<Published, Error> {
        let known = self.known.mark(log, &piece.key.agent_execution_id);
        let script = scripts::publish(&self.names.of(log), piece, known, &self.options);
        let published = match self.commands.run::<String>(&script).await {
            Ok(answer) => scripts::published(&answer),
            Err(error) => Err(error),
        };
        // A piece that is behind changes no mark: the older generation may still be shown.
        if !matches!(published, Ok(Published::Refused | Published::Behind)) {
            // A failed call also updates the mark, because the generation comes from the store.
            self.known.note_text(log, &piece.key, piece.generation);
        }
        published
    }

    async fn announce(&self, log: &LogId, news: &Announcement) -> Result<(), Error> {
        for sealed in &news.sealed {
            self.known.note_seal(log, sealed);
        }
        let script = scripts::announce(&self.names.of(log), news, &self.options);
        self.commands.run::<()>(&script).await
    }

    async fn follow(&self, log: &LogId) -> Result<Following, Error> {
        for _ in 0..JOINS {
            let joined = self.hub.join(log).await?;
            let snapshot = self.snapshot(log).await?;
            if self.hub.start(log, joined.id, snapshot.position).await {
                return Ok(Following {
                    open: snapshot.open,
                    items: joined.items,
                });
            }
        }
        Err(Error::Missed)
    }

    async fn snapshot(&self, log: &LogId) -> Result<Snapshot, Error> {
        // The semaphore is never closed.
        let _permit = self.snapshots.acquire().await.map_err(|_| Error::Lost)?;
        let script = scripts::snapshot(&self.names.of(log));
        let mut snapshot = Snapshot::try_from(self.commands.run::<RawSnapshot>(&script).await?)?;
        snapshot
            .open
            .retain(|text| self.known.admit_text(log, &text.key, text.generation));
        Ok(snapshot)
    }
}

#[async_trait]
impl StreamWriter for RedisStream {
    async fn publish(&self, log: &LogId, piece: Piece) -> Result<Published, StreamError> {
        Ok(self.inner.publish(log, &piece).await?)
    }

    async fn announce(&self, log: &LogId, announcement: Announcement) -> Result<(), StreamError> {
        Ok(self.inner.announce(log, &announcement).await?)
    }

    async fn notify(&self, log: &LogId, notice: Notice) -> Result<(), StreamError> {
        let (names, options) = (self.inner.names.of(log), &self.inner.options);
        let script = scripts::notify(&names, notice, options);
        Ok(self.inner.commands.run::<()>(&script).await?)
    }

    async fn may_publish(&self) {
        self.inner.outage.may_try().await;
    }
}

#[async_trait]
impl StreamReader for RedisStream {
    async fn follow(&self, log: &LogId) -> Result<Following, StreamError> {
        let limit = self.inner.options.follow_timeout;
        match timeout(limit, self.inner.follow(log)).await {
            Ok(followed) => Ok(followed?),
            // A time-out does not mean that Redis is away: thousands of readers may follow at once and slow Redis
            // down.
            Err(_) => Err(StreamError::Failed(Box::new(Error::Timeout(limit)))),
        }
    }

    async fn forget(&self, log: &LogId) -> Result<(), StreamError> {
        let script = scripts::forget(&self.inner.names.of(log));
        Ok(self.inner.commands.run::<()>(&script).await?)
    }

    async fn may_follow(&self) {
        // The subscriber's connection recovers by itself. Afterwards a single caller tries a snapshot.
        self.inner.hub.is_reachable().await;
        self.inner.outage.may_try().await;
    }
}

#[async_trait]
impl CancelNews for RedisStream {
    async fn announce_cancel(&self, agent_execution_id: &str) -> Result<(), StreamError> {
        let script = scripts::announce_cancel(&self.inner.names, agent_execution_id);
        Ok(self.inner.commands.run::<()>(&script).await?)
    }

    fn follow_cancels(&self) -> FollowedCancels {
        let inner = &self.inner;
        cancels::follow(inner.address.clone(), &inner.names, &inner.options)
    }
}
