//! `everturn all`: a gateway and a worker in a single process, for a single pod or machine.

use std::{process::ExitCode, sync::Arc};

use anyhow::Context;
use everturn_config::Config;
use everturn_supervisor::shutdown;
use everturn_tools::Tool;
use tokio_util::sync::CancellationToken;

use super::{gateway, versions, worker};
use crate::{
    cli::{AllOptions, Common},
    connections::{self, Connected},
    environment, own_ports,
    reload::{self, Configured, Running},
    telemetry::Telemetry,
};

/// Runs both roles, with `own` tools besides the built-in ones, until SIGTERM or Ctrl-C. If a role ends with an error,
/// the other role is stopped, too.
pub async fn run(
    common: &Common,
    options: AllOptions,
    own: Vec<Arc<dyn Tool>>,
) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let telemetry = Telemetry::start(&options.telemetry, "all")?;
    let configured = Configured::for_worker(
        common,
        own_ports::of(common),
        options.test_tools.effects_file,
        own,
    )?;
    let (config, tools) = (configured.config.clone(), configured.tools.clone());
    worker::check_agents(&config)?;
    gateway::check_exposure(&options.listen, &config)?;
    let listener = gateway::bind(&options.listen)?;
    let connected = connections::everything(
        common,
        config.store(config.postgres.clone()),
        &config.codec,
        &telemetry,
        &shutdown,
    )
    .await?;
    let Connected {
        client,
        store,
        stream,
    } = connected;
    environment::forget_secrets();
    tracing::info!(address = %listener.local_addr()?, "gateway is running");
    let running = Running::both(telemetry.clone());
    reload::start(configured, Box::new(check), &running, &shutdown);
    let of_gateway = gateway::Parts {
        client: client.clone(),
        store: store.clone(),
        stream: stream.clone(),
        config: config.clone(),
        task_queue: common.task_queue.clone(),
        telemetry: telemetry.clone(),
        running: Arc::clone(&running),
    };
    let of_worker = worker::Parts {
        client,
        store,
        stream,
        providers: config.providers.clone(),
        config,
        tools,
        task_queue: common.task_queue.clone(),
        only: None,
        deployment: versions::deployment(&options.version),
        telemetry: telemetry.clone(),
        running,
    };
    let serving = gateway::serve(of_gateway, listener, shutdown.clone());
    let serving = stopping(serving, shutdown.clone());
    let working = stopping(worker::serve(of_worker, shutdown.clone()), shutdown);
    // The gateway runs on every thread. The worker's future is not `Send` and stays on this thread.
    let (served, worked) = tokio::join!(tokio::spawn(serving), working);
    telemetry.end().await;
    served.context("the gateway panicked")??;
    worked?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a changed configuration that a role refuses.
fn check(config: &Config) -> anyhow::Result<()> {
    worker::check_agents(config)?;
    gateway::check_approvers(config)
}

/// Cancels `shutdown` when the role ends.
async fn stopping<T>(role: impl Future<Output = T>, shutdown: CancellationToken) -> T {
    let _stop = shutdown.drop_guard();
    role.await
}
