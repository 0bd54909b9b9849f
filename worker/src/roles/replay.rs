//! `everturn replay`: checks whether this version can continue turns of other versions (invariant 1, pure workflow).
//!
//! The command runs the workflow on Temporal's histories, without side effects, because it calls no activities.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, bail};
use everturn_codec::Codec;
use everturn_config::Config;
use everturn_supervisor::shutdown;
use everturn_workflows::{AfterTurn, AgentExecution, SendMessage};
use futures::StreamExt;
use temporalio_client::{
    Client, WorkflowExecutionInfo, WorkflowFetchHistoryOptions, WorkflowHistory,
    WorkflowListOptions,
};
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{Common, ReplayOptions},
    connections, telemetry,
};

/// The number of replayed histories between two progress lines.
const PROGRESS: u32 = 100;

/// Replays the histories of the options. Fails when a history does not replay.
pub async fn run(common: &Common, options: ReplayOptions) -> anyhow::Result<ExitCode> {
    let codec = Config::load_for_gateway(common.config.as_deref())?
        .codec
        .codec()?;
    let mut replay = Replay::new(codec)?;
    if options.files.is_empty() {
        let shutdown = shutdown::token()?;
        let client = connections::temporal(common, &shutdown).await?;
        replay
            .all_of(&client, &query(common, &options), options.limit, &shutdown)
            .await?;
    }
    for file in &options.files {
        let history = read(file)?;
        replay.one(&file.display().to_string(), history).await;
    }
    Ok(replay.told())
}

/// Returns the query for Temporal. Runs of foreign task queues have separate workers.
fn query(common: &Common, options: &ReplayOptions) -> String {
    let queue = common.task_queue.replace('\'', "''");
    let types = "WorkflowType IN ('agent-execution', 'after-turn', 'send-message')";
    let own = format!("{types} AND TaskQueue = '{queue}'");
    let running = (!options.closed).then(|| "ExecutionStatus = 'Running'".to_owned());
    let more = options.query.as_ref().map(|more| format!("({more})"));
    let conditions: Vec<_> = [Some(own), running, more].into_iter().flatten().collect();
    conditions.join(" AND ")
}

fn read(file: &Path) -> anyhow::Result<WorkflowHistory> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    WorkflowHistory::from_json(&text).with_context(|| {
        format!(
            "{} is not a history: write a history with `temporal workflow show --workflow-id ID --output json`",
            file.display()
        )
    })
}

struct Replay {
    replayer: WorkflowReplayer,
    replayed: u32,
    failed: u32,
}

impl Replay {
    /// Returns a replayer. With a codec, the histories are encrypted.
    fn new(codec: Option<Codec>) -> anyhow::Result<Self> {
        let converter = codec.map(|codec| codec.of_worker().converter());
        let converter = converter.unwrap_or_default();
        let options = WorkflowReplayerOptions::new()
            .register_workflow::<AgentExecution>()?
            .register_workflow::<AfterTurn>()?
            .register_workflow::<SendMessage>()?
            .workflow_interceptor(telemetry::tells_remote_tools())
            .data_converter(converter)
            .build();
        Ok(Self {
            replayer: WorkflowReplayer::new(options)?,
            replayed: 0,
            failed: 0,
        })
    }

    /// Replays the runs that Temporal lists, the newest first, until `shutdown`.
    async fn all_of(
        &mut self,
        client: &Client,
        query: &str,
        limit: usize,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<()> {
        let options = WorkflowListOptions::builder().limit(limit).build();
        let mut runs = client.list_workflows(query, options);
        loop {
            let run = tokio::select! {
                run = runs.next() => run,
                () = shutdown.cancelled() => bail!("stopped after {} runs", self.replayed),
            };
            let Some(run) = run else { return Ok(()) };
            let run = run.context("cannot list the workflows of Temporal")?;
            let name = format!("{} (run {})", run.id(), run.run_id());
            let handle = WorkflowExecutionInfo::builder()
                .namespace(client.options().namespace.clone())
                .workflow_id(run.id().to_owned())
                .run_id(run.run_id().to_owned())
                .build()
                .bind_untyped(client.clone());
            let history = handle.fetch_history(WorkflowFetchHistoryOptions::default());
            self.one(&name, history).await;
            if self.replayed.is_multiple_of(PROGRESS) {
                println!("replayed {} so far", self.replayed);
            }
        }
    }

    async fn one(&mut self, name: &str, history: WorkflowHistory) {
        self.replayed += 1;
        if let Err(error) = self.replayer.replay_workflow(history).await {
            self.failed += 1;
            println!("{name} does not replay: {:#}", anyhow::Error::from(error));
        }
    }

    /// Prints the result and returns the exit code.
    fn told(&self) -> ExitCode {
        let Self {
            replayed, failed, ..
        } = self;
        match (replayed, failed) {
            (0, _) => println!("there was nothing to replay"),
            (_, 0) => println!("replayed {replayed}; this version can continue every workflow"),
            _ => println!(
                "replayed {replayed}; {failed} of the workflows cannot continue with this version. Let these workflows end on workers of the \
                 old version (docs/operate/versions.md)"
            ),
        }
        if *failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
