//! What handlers need, passed in and never global.

use std::sync::Arc;

use everturn_store::{Conversation, Conversations, EventReader};
use everturn_stream::StreamReader;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    config::GatewayConfig, extract::Caller, feed::Feed, hub::Hub, problem::Code, problem::Problem, sse,
    turns::TurnStarter,
};

/// The gateway's connections to the rest. It reads events and never writes them.
#[derive(Clone)]
pub struct Ports {
    /// The event log.
    pub events: Arc<dyn EventReader>,
    /// Conversations and the messages they accept.
    pub conversations: Arc<dyn Conversations>,
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
    /// Cancelled when the gateway is to stop: it is not ready, and takes no new streams.
    pub(crate) shutdown: CancellationToken,
    /// Cancelled some time later: open streams end.
    pub(crate) closing: CancellationToken,
    streams: Arc<Semaphore>,
    hub: Hub,
}

impl GatewayState {
    /// A gateway that does not shut down until [`serve`](crate::serve) gives it a token.
    pub fn new(ports: Ports, config: GatewayConfig) -> Self {
        let streams = Arc::new(Semaphore::new(max_streams(&config)));
        let hub = Hub::new(Arc::clone(&ports.events), Arc::clone(&ports.stream), &config);
        let (shutdown, closing) = (CancellationToken::new(), CancellationToken::new());
        Self { ports, config: Arc::new(config), shutdown, closing, streams, hub }
    }

    /// The same gateway; it stops when `shutdown` is cancelled.
    #[must_use]
    pub fn with_shutdown(self, shutdown: CancellationToken) -> Self {
        Self { shutdown, ..self }
    }

    /// The caller's conversation; one that they may not see does not exist.
    pub async fn conversation(&self, caller: &Caller, id: &str) -> Result<Conversation, Problem> {
        let found = self.ports.conversations.conversation(&caller.access, id).await?;
        found.ok_or_else(|| Problem::conversation_not_found(id))
    }

    /// A stream of the conversation from after `cursor`. The caller has been shown the conversation.
    pub fn feed(&self, caller: &Caller, conversation: &Conversation, cursor: u32) -> Result<Feed, Problem> {
        if self.shutdown.is_cancelled() {
            return Err(
                Problem::new(Code::ShuttingDown, "Connect again; another gateway will answer.").retry_after_s(1)
            );
        }
        let Ok(permit) = Arc::clone(&self.streams).try_acquire_owned() else {
            return Err(Problem::new(Code::TooManyStreams, "Connect again in a moment.").retry_after_s(5));
        };
        let reader = self.hub.open(caller.access.clone(), conversation, cursor);
        let replay = sse::replay(&conversation.id, cursor.saturating_add(1), conversation.last_sequence);
        Ok(Feed::new(reader, &replay, Arc::clone(&self.config), self.closing.clone(), permit))
    }

    /// Waits until no stream is open. None may be opened meanwhile.
    pub(crate) async fn streams_closed(&self) {
        let all = u32::try_from(max_streams(&self.config)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let _all = self.streams.acquire_many(all).await;
    }
}

fn max_streams(config: &GatewayConfig) -> usize {
    // What `acquire_many` can count.
    config.max_streams.min(Semaphore::MAX_PERMITS).min(u32::MAX as usize)
}
