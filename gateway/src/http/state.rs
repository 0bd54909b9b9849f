//! The shared state of handlers, passed in and never global.

use std::sync::Arc;

use everturn_proto::{Thread, limits::MAX_QUEUED_MESSAGES};
use everturn_store::{Conversation, OutsideTool, ResumePoint};
use everturn_telemetry::gateway as telemetry;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{GatewayConfig, OfferedAgents},
    http::{
        audit::Audit,
        auth::Authenticator,
        extract::{Caller, ExecutionPath, Name},
        problem::{Code, Problem},
    },
    limits::{Limiter, StreamPermit},
    live::{
        Cursor, Feed, LiveHub, LiveReader,
        lists::{ListFeed, ListHub},
        sse,
    },
    ports::Ports,
};

/// The state of the router. Clones share the state.
#[derive(Clone)]
pub struct GatewayState {
    /// The gateway's connections.
    pub ports: Ports,
    /// The settings.
    pub config: Arc<GatewayConfig>,
    /// The agents that conversations may have now.
    pub agents: OfferedAgents,
    /// Finds the caller of a request.
    pub(crate) auth: Arc<Authenticator>,
    /// Writes audit entries.
    pub(crate) audit: Audit,
    /// Cancelled when the gateway must stop. The gateway then reports "not ready" and takes no new streams.
    pub(crate) shutdown: CancellationToken,
    /// Cancelled some time after `shutdown`. Open streams then end.
    pub(crate) closing: CancellationToken,
    pub(crate) limits: Limiter,
    hub: LiveHub,
    /// The lists that readers follow. Handlers that change a row of a list must tell the hub.
    pub(crate) lists: ListHub,
}

impl GatewayState {
    /// Makes the state of a gateway that does not shut down until [`serve`](crate::serve) gives it a token.
    pub fn new(ports: Ports, config: GatewayConfig) -> Self {
        let limits = Limiter::new(&config, ports.counts.clone());
        let hub = LiveHub::telling(
            Arc::clone(&ports.events),
            Arc::clone(&ports.stream),
            ports.deliveries.clone(),
            Arc::clone(limits.memory()),
            &config,
        );
        let lists = ListHub::new(Arc::clone(&ports.conversations), config.poll_interval);
        let audit = Audit::new(Arc::clone(&ports.audit), config.audit.keep_days);
        let auth = Arc::new(Authenticator::new(&config, &ports, audit.clone()));
        let (shutdown, closing) = (CancellationToken::new(), CancellationToken::new());
        Self {
            ports,
            agents: OfferedAgents::new(config.agents.clone()),
            config: Arc::new(config),
            auth,
            audit,
            shutdown,
            closing,
            limits,
            hub,
            lists,
        }
    }

    /// Makes the gateway stop when `shutdown` is cancelled.
    #[must_use]
    pub fn with_shutdown(self, shutdown: CancellationToken) -> Self {
        Self { shutdown, ..self }
    }

    /// Returns the caller's conversation. A conversation of another tenant or owner is reported as missing. Only here a
    /// name becomes an id.
    pub async fn conversation(
        &self,
        caller: &Caller,
        name: &Name,
    ) -> Result<Conversation, Problem> {
        let found = self
            .ports
            .conversations
            .conversation(&caller.access, name.as_str())
            .await?;
        found.ok_or_else(|| Problem::conversation_not_found(name.as_str()))
    }

    /// Returns the position where the caller's conversation can resume. Returns `None` for a conversation that the
    /// caller may not see.
    pub async fn resume_point(
        &self,
        caller: &Caller,
        conversation: &Conversation,
    ) -> Result<Option<ResumePoint>, Problem> {
        let max_waiting = u32::try_from(MAX_QUEUED_MESSAGES).unwrap_or(u32::MAX);
        let conversations = &self.ports.conversations;
        Ok(conversations
            .resume_point(&caller.access, &conversation.id, max_waiting)
            .await?)
    }

    /// Returns the caller's tool call with its conversation. A tool call of another tenant or owner is reported as
    /// missing.
    pub async fn outside_tool(
        &self,
        caller: &Caller,
        path: &ExecutionPath,
    ) -> Result<(Conversation, OutsideTool), Problem> {
        let conversation = self.conversation(caller, &path.conversation).await?;
        let found = self
            .ports
            .outside
            .outside_tool(&caller.access, &conversation.id, &path.execution_id)
            .await?;
        let tool = found.ok_or_else(|| Problem::execution_not_found(&path.execution_id))?;
        Ok((conversation, tool))
    }

    /// Returns the tool execution that started the sub-agent of a call. Returns `None` for a call of the turn's own
    /// agent.
    pub async fn sub_agent_of(
        &self,
        caller: &Caller,
        conversation: &Conversation,
        call: &OutsideTool,
    ) -> Result<Option<String>, Problem> {
        let thread = Thread::of(&conversation.id, &call.message_id, &call.agent_execution_id);
        if !thread.is_sub_agents() {
            return Ok(None);
        }
        let execution = self.ports.executions.agent_execution(
            &caller.access,
            &conversation.id,
            &call.agent_execution_id,
        );
        Ok(execution
            .await?
            .and_then(|execution| execution.parent_call)
            .map(|parent| parent.execution_id))
    }

    /// Ends the streams of a removed conversation, and purges the texts that models are writing in it.
    pub(crate) async fn end_streams(&self, removed: &Conversation) {
        self.hub.forget(&removed.log_id).await;
    }

    /// Opens a stream of the conversation after `cursor`. The stream ends when the caller's credential ends. The
    /// handler must have checked the caller's right to see the conversation.
    pub async fn feed(
        &self,
        caller: &Caller,
        conversation: &Conversation,
        cursor: Cursor,
    ) -> Result<Feed, Problem> {
        let permit = self.stream_permit(caller).await?;
        telemetry::connected(conversation.last_sequence.saturating_sub(cursor.sequence));
        let reader = self.hub.open(caller.access.clone(), conversation, cursor);
        let replay = sse::replay(
            conversation.name(),
            cursor.sequence.saturating_add(1),
            conversation.last_sequence,
        );
        let feed = Feed::new(
            reader,
            &replay,
            Arc::clone(&self.config),
            self.closing.clone(),
            permit,
        );
        Ok(feed.until(self.auth.end_of(caller)))
    }

    /// Reads the frames of the conversation after `cursor`. The handler must have checked the caller's right to see the
    /// conversation, and must hold a stream permit.
    pub(crate) fn reader(
        &self,
        caller: &Caller,
        conversation: &Conversation,
        cursor: Cursor,
    ) -> LiveReader {
        self.hub.open(caller.access.clone(), conversation, cursor)
    }

    /// Opens a stream of the caller's list. The stream ends when the caller's credential ends.
    pub async fn list_feed(&self, caller: &Caller) -> Result<ListFeed, Problem> {
        let permit = self.stream_permit(caller).await?;
        Ok(ListFeed::new(
            self.lists.open(&caller.access),
            self.limits.memory().account(&caller.access.tenant_id),
            Arc::clone(&self.config),
            self.closing.clone(),
            self.auth.end_of(caller),
            permit,
        ))
    }

    /// Takes a stream permit for the caller. Refuses when a stream limit is reached or the gateway is stopping.
    pub(crate) async fn stream_permit(&self, caller: &Caller) -> Result<StreamPermit, Problem> {
        if self.shutdown.is_cancelled() {
            return Err(Problem::new(
                Code::ShuttingDown,
                "Connect again; another gateway will answer.",
            )
            .retry_after_s(1));
        }
        Ok(self.limits.open_stream(&caller.access).await?)
    }

    /// Records metrics: open streams, conversations with a live tail, and held memory.
    pub fn record(&self) {
        telemetry::open_streams(self.limits.open_streams());
        telemetry::tails(self.hub.tails());
        telemetry::memory_held(self.limits.memory().held());
    }

    /// Waits until every stream is closed. The gateway must not open streams meanwhile.
    pub(crate) async fn streams_closed(&self) {
        self.limits.streams_closed().await;
    }
}
