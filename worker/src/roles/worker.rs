//! A worker: polls the task queue and runs turns.

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use everturn_activities::{
    AgentActivities, Cancels, KnownAgents, Ports, ProbeLimits, QuestionLimits, Retries, Settings,
    Stopping, ThisWorker, TurnQueues,
};
use everturn_config::{CodecConfig, Config, WorkerLimits};
use everturn_models::{Models, Providers};
use everturn_proto::words::{model_queue, tool_queue};
use everturn_store::{AuditTrail, Consents, LeftOut, Observed, Store, ToolResults};
use everturn_supervisor::shutdown;
use everturn_tools::{Tool, ToolRegistry};
use everturn_workflows::{AfterTurn, AgentExecution, SendMessage};
use temporalio_client::Client;
use temporalio_common::worker::WorkerDeploymentOptions;
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions as SdkOptions,
    runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
};
use tokio_util::sync::CancellationToken;

use super::{
    for_tenants::ForTenants,
    lease::LeaseKeeper,
    left_out,
    sdk_workers::{self, ActivityCount},
    versions,
};
use crate::{
    audit::tell_configuration,
    cli::{Common, Work, WorkerOptions},
    connections::{self, Connected, Stream},
    consents, environment, own_ports,
    reload::{self, Configured, Running, StoredTools, with_stored},
    telemetry::{self, Telemetry},
};

/// The time for which a dead worker's workflow tasks wait on its sticky queue.
const STICKY_TIMEOUT: Duration = Duration::from_secs(1);
/// The SDK sends a requested heartbeat within this time, whatever the heartbeat time-out is. A cancel arrives with the
/// response to a heartbeat.
const HEARTBEAT_THROTTLE: Duration = Duration::from_secs(1);

/// The parts of a worker.
pub struct Parts {
    /// The connection to Temporal.
    pub client: Client,
    /// The store of turns.
    pub store: Store,
    /// The stream of live texts.
    pub stream: Stream,
    /// Agents and limits.
    pub config: Config,
    /// Providers of models, the demo model included.
    pub providers: Providers,
    /// Tools.
    pub tools: ToolRegistry,
    /// Task queue to poll.
    pub task_queue: String,
    /// The worker's part of the tasks; `None` means all tasks.
    pub only: Option<Work>,
    /// The worker's version; `None` means the binary's version, which does not assign turns to versions.
    pub deployment: Option<WorkerDeploymentOptions>,
    /// Health and metrics.
    pub telemetry: Telemetry,
    /// The roles of the process, which get changed agents.
    pub running: Arc<Running>,
}

/// Runs a worker until SIGTERM or Ctrl-C, with `own` tools besides the built-in ones.
pub async fn run(
    common: &Common,
    options: WorkerOptions,
    own: Vec<Arc<dyn Tool>>,
) -> anyhow::Result<ExitCode> {
    let shutdown = shutdown::token()?;
    let telemetry = Telemetry::start(&options.telemetry, "worker")?;
    let configured = Configured::for_worker(
        common,
        own_ports::of(common),
        options.test_tools.effects_file,
        own,
    )?;
    let (config, tools) = (configured.config.clone(), configured.tools.clone());
    check_agents(&config)?;
    let connected = connections::everything(
        common,
        config.store(config.worker_pool()),
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
    let providers = config.providers.clone();
    let task_queue = common.task_queue.clone();
    let running = Running::worker(telemetry.clone());
    reload::start(configured, Box::new(check_agents), &running, &shutdown);
    let parts = Parts {
        client,
        store,
        stream,
        config,
        providers,
        tools,
        task_queue,
        only: options.only,
        deployment: versions::deployment(&options.version),
        telemetry: telemetry.clone(),
        running,
    };
    let served = serve(parts, shutdown).await;
    telemetry.end().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a configuration without an agent of its own, and a configuration in which only the demo model could answer.
pub fn check_agents(config: &Config) -> anyhow::Result<()> {
    if config.has_implied_agent {
        anyhow::bail!(
            "no agent is configured. Write a table [agents.default] with `provider` and `model` into everturn.toml or \
             into a file of the folder agents.d; `everturn dev` has an agent without one"
        );
    }
    if config.needs_demo_model() {
        anyhow::bail!(
            "no model provider is configured. Add [providers.<name>] to everturn.toml or set OPENAI_API_KEY, \
             ANTHROPIC_API_KEY or GEMINI_API_KEY; `everturn dev` runs a demo model without one"
        );
    }
    Ok(())
}

/// Runs a worker until `shutdown`. After `shutdown`, running activities have the configured time to end.
pub async fn serve(parts: Parts, shutdown: CancellationToken) -> anyhow::Result<()> {
    let (telemetry, trail) = (parts.telemetry, parts.store.audit.clone());
    tell(&parts.config, &telemetry, Arc::clone(&trail));
    telemetry.keep_traces_in(parts.store.traces);
    telemetry.sample_connections(parts.store.connections);
    let runtime = Runtime::from_current_tokio(telemetry.engine_options())?;
    let (limits, running) = (parts.config.worker.clone(), parts.running);
    let stored = stored(&parts.config, parts.store.results, parts.store.consents)?;
    let tools = with_stored(parts.tools, &stored)?;
    let lease = LeaseKeeper::begin(telemetry.leases(parts.store.leases), limits.lease).await;
    let cancels = Cancels::default();
    let observers = &telemetry.turn_observers();
    let model = Models::new(parts.providers).context("cannot set up the model client")?;
    let ports = Ports {
        turns: Arc::new(Observed::new(parts.store.turns, observers)),
        inputs: parts.store.inputs,
        steps: Arc::new(Observed::new(parts.store.steps, observers)),
        model_calls: parts.store.model_calls,
        tool_claims: Arc::new(Observed::new(parts.store.tool_claims, observers)),
        writer: Arc::new(Observed::new(parts.store.writer, observers)),
        blobs: parts.config.blobs.files(parts.store.blobs)?,
        stream: telemetry.stream(parts.stream.writer),
        cancel_news: Arc::clone(&parts.stream.cancels),
        model: telemetry.model(Arc::new(model)),
        tools,
    };
    let settings = settings(&parts.config, queues(&parts.task_queue, parts.only))?;
    let stopping = Stopping::new(shutdown.clone(), limits.graceful_shutdown);
    let this_worker = this_worker(&lease, &cancels, stopping, parts.store.left_out, &shutdown);
    let activities = AgentActivities::new(&ports, settings, this_worker);
    running.enter_worker(activities.clone(), stored, trail);
    let (tuner, task_queue) = (tuner(&limits), task_queue(&parts.task_queue, parts.only));
    let (client, for_tenants) = encrypting(parts.client, &parts.config.codec)?;
    // A replaced worker of the SDK has no grace period, because it waits until its activities end. When the process
    // stops, the activities themselves end in time (`Stopping`).
    let make = |count: ActivityCount| {
        let options =
            SdkOptions::new(task_queue.clone()).maybe_deployment_options(parts.deployment.clone());
        let options = match parts.only {
            Some(Work::Models | Work::Tools) => options,
            Some(Work::Workflows) | None => options
                .register_workflow::<AgentExecution>()?
                .register_workflow::<AfterTurn>()?
                .register_workflow::<SendMessage>()?,
        };
        let options = options
            .register_activities(activities.clone())
            .activity_inbound_interceptor(count)
            .activity_inbound_interceptor(telemetry.activities())
            .activity_inbound_interceptor(for_tenants)
            .workflow_interceptor(telemetry::tells_remote_tools())
            .workflow_interceptor(telemetry::counts_refused_payloads())
            .max_cached_workflows(limits.max_cached_workflows)
            .tuner(tuner.clone())
            .sticky_queue_schedule_to_start_timeout(STICKY_TIMEOUT)
            .max_heartbeat_throttle_interval(HEARTBEAT_THROTTLE)
            .client_identity_override(lease.identity().to_owned())
            .build();
        anyhow::Ok(Worker::new(&runtime, client.clone(), options)?)
    };
    telemetry.worker_runs(&shutdown);
    tracing::info!(task_queue, "worker is running");
    let ended = tokio::select! {
        ended = sdk_workers::run(make, limits.renew_after_activities, shutdown) => ended,
        never = cancels.follow(parts.stream.cancels.follow_cancels()) => match never {},
    };
    activities.close_tools().await;
    lease.end().await;
    ended
}

/// Tells the audit trail and the metrics about the configuration of the start.
fn tell(config: &Config, telemetry: &Telemetry, trail: Arc<dyn AuditTrail>) {
    tell_configuration(trail, "worker", config);
    telemetry.worker_agents(config);
}

/// Returns the parts of the store that tools use.
fn stored(
    config: &Config,
    results: Arc<dyn ToolResults>,
    rows: Arc<dyn Consents>,
) -> anyhow::Result<StoredTools> {
    Ok(StoredTools {
        results,
        consents: consents::of_store(config, rows)?,
    })
}

fn this_worker(
    lease: &LeaseKeeper,
    cancels: &Cancels,
    stopping: Stopping,
    store: Arc<dyn LeftOut>,
    shutdown: &CancellationToken,
) -> ThisWorker {
    ThisWorker {
        id: lease.worker().clone(),
        cancels: cancels.clone(),
        stopping,
        left_out: left_out::told(store, lease.worker(), shutdown),
    }
}

/// Returns the settings of the activities.
fn settings(config: &Config, queues: TurnQueues) -> anyhow::Result<Settings> {
    let limits = &config.worker;
    Ok(Settings {
        agents: KnownAgents::of(config.agents.clone())?.with_responsible(config.responsible()),
        tenant_budgets: config.tenant_budgets.clone(),
        approval_answers: config.approval_answers.clone(),
        queues,
        wait_for_peer: limits.wait_for_peer,
        circuit: limits.circuit,
        provider_waits: limits.provider_waits(),
        retries: Retries {
            kept_tries: limits.kept_tries,
            refusal_pause: limits.refusal_pause,
        },
        probes: ProbeLimits {
            tries: limits.probe_tries,
            timeout: limits.probe_timeout,
        },
        questions: QuestionLimits {
            most: limits.max_questions,
            timeout: limits.question_timeout,
        },
        max_tools: limits.max_concurrent_activities,
    })
}

/// Returns the workers' client, whose codec leaves the decision about refused payloads to the workflows, and the
/// interceptor that records the activities' tenants.
fn encrypting(client: Client, codec: &CodecConfig) -> anyhow::Result<(Client, ForTenants)> {
    let for_tenants = ForTenants::new(codec.codec()?.is_some());
    let client = connections::with_codec(client, codec.of_worker()?.as_ref());
    Ok((client, for_tenants))
}

/// Returns the slots of a worker for each kind of task.
fn tuner(limits: &WorkerLimits) -> TunerHolder {
    TunerHolder::builder()
        .workflow_task_slot_supplier(FixedSizeSlotSupplier::new(
            limits.max_concurrent_workflow_tasks,
        ))
        .activity_task_slot_supplier(FixedSizeSlotSupplier::new(limits.max_concurrent_activities))
        .local_activity_task_slot_supplier(FixedSizeSlotSupplier::new(
            limits.max_concurrent_activities,
        ))
        .nexus_task_slot_supplier(FixedSizeSlotSupplier::new(1))
        .build()
}

/// Returns the task queue of a worker that does a part of the work for the workflows of a queue.
fn task_queue(of_workflows: &str, only: Option<Work>) -> String {
    match only {
        Some(Work::Models) => model_queue(of_workflows),
        Some(Work::Tools) => tool_queue(of_workflows),
        Some(Work::Workflows) | None => of_workflows.to_owned(),
    }
}

/// Returns the queues for the activities of a worker's turns.
fn queues(of_workflows: &str, only: Option<Work>) -> TurnQueues {
    match only {
        Some(Work::Workflows) => TurnQueues {
            models: Some(model_queue(of_workflows)),
            tools: Some(tool_queue(of_workflows)),
        },
        Some(Work::Models | Work::Tools) | None => TurnQueues::default(),
    }
}
