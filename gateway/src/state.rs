//! What handlers need, passed in and never global.

use std::sync::Arc;

use everturn_store::{Conversation, Conversations, EventReader, Executions};
use everturn_stream::StreamReader;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    config::GatewayConfig, extract::Caller, feed::Feed, problem::Code, problem::Problem, tail::Tail,
    turns::TurnStarter, watcher::Watcher,
};

/// The gateway's connections to the rest. It reads events and never writes them.
#[derive(Clone)]
pub struct Ports {
    /// The event log.
    pub events: Arc<dyn EventReader>,
    /// Conversations and the messages they accept.
    pub conversations: Arc<dyn Conversations>,
    /// The tree of executions.
    pub executions: Arc<dyn Executions>,
    /// Texts in the making.
    pub stream: Arc<dyn StreamReader>,
    /// The engine.
    pub turns: Arc<dyn TurnStarter>,
}

/// State of the router. Clones share it.
#[derive(Clone)]
pub struct GatewayState {
    /// The connections.
    pub ports: Ports,
    /// The limits.
    pub config: Arc<GatewayConfig>,
    /// Ends every open stream when cancelled.
    pub(crate) shutdown: CancellationToken,
    streams: Arc<Semaphore>,
    watcher: Watcher,
}

impl GatewayState {
    /// A gateway that does not shut down until [`serve`](crate::serve) gives it a token.
    pub fn new(ports: Ports, config: GatewayConfig) -> Self {
        let streams = Arc::new(Semaphore::new(config.max_streams.min(Semaphore::MAX_PERMITS)));
        let watcher = Watcher::new(Arc::clone(&ports.events), config.poll_interval);
        Self { ports, config: Arc::new(config), shutdown: CancellationToken::new(), streams, watcher }
    }

    /// The same gateway; its streams end when `shutdown` is cancelled.
    #[must_use]
    pub fn with_shutdown(self, shutdown: CancellationToken) -> Self {
        Self { shutdown, ..self }
    }

    /// The caller's conversation; one that they may not see does not exist.
    pub async fn conversation(&self, caller: &Caller, id: &str) -> Result<Conversation, Problem> {
        let found = self.ports.conversations.conversation(&caller.access, id).await?;
        found.ok_or_else(|| Problem::conversation_not_found(id))
    }

    /// A stream of the conversation from after `cursor`.
    pub fn feed(&self, caller: &Caller, conversation_id: &str, cursor: u32) -> Result<Feed, Problem> {
        if self.shutdown.is_cancelled() {
            return Err(
                Problem::new(Code::ShuttingDown, "Connect again; another gateway will answer.").retry_after_s(1)
            );
        }
        let Ok(permit) = Arc::clone(&self.streams).try_acquire_owned() else {
            return Err(Problem::new(Code::TooManyStreams, "Connect again in a moment.").retry_after_s(5));
        };
        let (events, stream) = (Arc::clone(&self.ports.events), Arc::clone(&self.ports.stream));
        let tail = Tail::new(events, stream, caller.access.clone(), conversation_id, cursor, &self.watcher);
        Ok(Feed::new(tail, &self.config, self.shutdown.clone(), permit))
    }
}
