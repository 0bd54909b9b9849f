//! What handlers need, passed in and never global.

use std::sync::Arc;

use everturn_store::{Conversation, Conversations, EventReader, Keys};
use everturn_stream::StreamReader;
use tokio_util::sync::CancellationToken;

use crate::{
    auth::Authenticator, config::GatewayConfig, extract::Caller, feed::Feed, limits::Limits, problem::Code,
    problem::Problem, tail::Tail, turns::TurnStarter, watcher::Watcher,
};

/// The gateway's connections to the rest. It reads events and never writes them.
#[derive(Clone)]
pub struct Ports {
    /// The event log.
    pub events: Arc<dyn EventReader>,
    /// Conversations and the messages they accept.
    pub conversations: Arc<dyn Conversations>,
    /// API keys and sessions.
    pub keys: Arc<dyn Keys>,
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
    /// Who is asking.
    pub(crate) auth: Arc<Authenticator>,
    /// Ends every open stream when cancelled.
    pub(crate) shutdown: CancellationToken,
    pub(crate) limits: Limits,
    watcher: Watcher,
}

impl GatewayState {
    /// A gateway that does not shut down until [`serve`](crate::serve) gives it a token.
    pub fn new(ports: Ports, config: GatewayConfig) -> Self {
        let limits = Limits::new(&config);
        let watcher = Watcher::new(Arc::clone(&ports.events), config.poll_interval);
        let auth = Arc::new(Authenticator::new(&config.auth, Arc::clone(&ports.keys)));
        Self { ports, config: Arc::new(config), auth, shutdown: CancellationToken::new(), limits, watcher }
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

    /// A stream of the conversation from after `cursor`. It ends when the caller's credential does.
    pub fn feed(&self, caller: &Caller, conversation_id: &str, cursor: u32) -> Result<Feed, Problem> {
        if self.shutdown.is_cancelled() {
            return Err(
                Problem::new(Code::ShuttingDown, "Connect again; another gateway will answer.").retry_after_s(1)
            );
        }
        let permit = self.limits.open_stream(&caller.access)?;
        let (events, stream) = (Arc::clone(&self.ports.events), Arc::clone(&self.ports.stream));
        let tail = Tail::new(events, stream, caller.access.clone(), conversation_id, cursor, &self.watcher);
        Ok(Feed::new(tail, &self.config, self.shutdown.clone(), permit).until(self.auth.end_of(caller)))
    }
}
