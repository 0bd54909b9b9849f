//! A gateway: REST and SSE.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context;
use everturn_gateway::{
    GatewayConfig, GatewayState, Ports, TemporalTurns, config::ANNOUNCED_POLL_INTERVAL, turns::TemporalTurnsOptions,
};
use everturn_store::Store;
use temporalio_client::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Common, GatewayOptions},
    config::Config,
    connections::{self, Stream},
    roles::worker,
    shutdown,
};

/// What a gateway works with.
pub struct Parts {
    /// The connection to Temporal.
    pub client: Client,
    /// What it reads events from and queues messages in.
    pub store: Store,
    /// Texts while they are written.
    pub stream: Stream,
    /// Agents and limits.
    pub config: Config,
    /// Task queue of the workers.
    pub task_queue: String,
}

/// Runs a gateway until SIGTERM or Ctrl-C.
pub async fn run(common: &Common, options: GatewayOptions) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    // Agents may name test tools; whether they run is the worker's matter.
    let tools = worker::tools(Some(std::path::PathBuf::new()))?;
    let config = Config::load_without_keys(common.config.as_deref(), &tools.names())?;
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("cannot listen on {}; choose another address with --listen", options.listen))?;
    let store = connections::store(common, &shutdown).await?;
    let client = connections::temporal(&shutdown).await?;
    connections::register_search_attributes(&client).await?;
    let stream = connections::stream(common)?;
    tracing::info!(address = %listener.local_addr()?, "gateway is running");
    let parts = Parts { client, store, stream, config, task_queue: common.task_queue.clone() };
    serve(parts, listener, shutdown).await?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a gateway until `shutdown`.
pub async fn serve(parts: Parts, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    let options = TemporalTurnsOptions { task_queue: parts.task_queue, ..TemporalTurnsOptions::default() };
    let is_announced = parts.stream.is_shared;
    let ports = Ports {
        events: parts.store.events,
        conversations: parts.store.conversations,
        executions: parts.store.executions,
        stream: parts.stream.reader,
        turns: Arc::new(TemporalTurns::new(parts.client, options)),
    };
    let default = GatewayConfig::default();
    let config = GatewayConfig {
        poll_interval: if is_announced { ANNOUNCED_POLL_INTERVAL } else { default.poll_interval },
        agents: parts.config.agents.iter().map(|agent| agent.name.clone()).collect(),
        max_message_bytes: parts.config.limits.message_bytes,
        max_queued_messages: parts.config.limits.queued_messages,
        ..default
    };
    everturn_gateway::serve(listener, GatewayState::new(ports, config), shutdown).await.context("the gateway ended")
}
