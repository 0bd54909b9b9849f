//! The gateway and the two workers of the case with their servers, and what the processes use.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use everturn_client::GatewayClient;
use everturn_tests::{
    backends::Backends,
    crowd::resident_bytes,
    model::Model,
    proxy::Proxy,
    round_trips::RoundTrips,
    stack::{Process, Stack},
};
use sqlx::{Connection, PgConnection, Row};

use super::calls::Calls;
use crate::{
    measure::{CpuTimes, Role, float},
    world::measured_stack,
};

/// Number of workers.
const WORKERS: u32 = 2;

/// The log of a gateway has these words when a worker counts as dead.
const BURIED: &str = "workers are dead";

/// A gateway, two workers and their servers.
pub(super) struct Fleet {
    stack: Stack,
    client: GatewayClient,
    workers: Vec<Process>,
    gateway: Process,
    /// The database of the stack, without the proxy of the gateway.
    database: String,
    /// Round trips of the gateway to PostgreSQL.
    round_trips: Arc<RoundTrips>,
    _proxy: Proxy,
}

/// What the processes used while the models only spoke.
pub(super) struct Usage {
    /// Processor cores by role.
    pub(super) cores: [(Role, f64); 6],
    /// Memory of the larger worker, in bytes.
    pub(super) worker_bytes: u64,
    /// Memory of the gateway, in bytes.
    pub(super) gateway_bytes: u64,
    /// Round trips of the gateway to PostgreSQL, a second. Without readers, only background tasks of the gateway ask.
    pub(super) gateway_queries: f64,
    /// Heartbeats of activities, a second.
    pub(super) heartbeats: f64,
}

impl Fleet {
    /// Starts the servers and processes, with slots for `turns` on the workers.
    pub(super) async fn start(calls: &Calls, turns: u32) -> anyhow::Result<Self> {
        let calls = calls.clone();
        let model = Model::start(move |request| calls.reply(request)).await;
        model.keep_no_bodies();
        let backends = Backends::measured(false).await;
        let database = backends.database().context("PostgreSQL")?.to_owned();
        let postgres = backends.postgres().context("PostgreSQL")?.port();
        let round_trips = Arc::<RoundTrips>::default();
        let proxy = Proxy::inspected(postgres, round_trips.clone()).await;
        let stack = measured_stack(backends, model, "llm_timeout = \"1h\"").await;
        // The engine does not share the turns out evenly, and the turns of one dead worker need slots, too. The workers keep
        // the default number of workflows in memory: a workflow only waits during a call, and costs a replay after the call.
        let slots = turns.max(100);
        stack.configure(&format!("[worker]\nmax_concurrent_activities = {slots}\n"));
        let through = database.replace(&format!(":{postgres}/"), &format!(":{}/", proxy.port()));
        let environment = [("EVERTURN_DATABASE", through.as_str())];
        let gateway = stack.gateway_on(0, &environment).await;
        let mut workers = Vec::new();
        for number in 1..=WORKERS {
            let name = format!("worker-{number}");
            workers.push(stack.spawn(&["worker"], &name, &[]));
            stack.logged(&name, "worker is running").await;
        }
        Ok(Self {
            client: stack.client(),
            stack,
            workers,
            gateway,
            database,
            round_trips,
            _proxy: proxy,
        })
    }

    /// Starts a turn in a new conversation, and returns the conversation.
    pub(super) async fn post(&self, message: &str) -> anyhow::Result<String> {
        let conversation = self.client.create_conversation(None).await?;
        self.client.submit(&conversation, message, None).await?;
        Ok(conversation)
    }

    /// Returns the number of calls in which the model speaks now.
    pub(super) fn speaking(&self) -> usize {
        self.stack.model.speaking()
    }

    /// Measures the processes for a time.
    pub(super) async fn measure(&self, window: Duration) -> Usage {
        let before = self.heartbeats().await;
        self.round_trips.take();
        let (cpu, begun) = (CpuTimes::now(), Instant::now());
        tokio::time::sleep(window).await;
        let (now, seconds) = (CpuTimes::now(), begun.elapsed().as_secs_f64());
        let gateway_queries = float(self.round_trips.take()) / seconds;
        let cores = |role| (role, now.since(&cpu, role) / 1000.0 / seconds);
        let heartbeats = float(self.heartbeats().await - before) / begun.elapsed().as_secs_f64();
        Usage {
            cores: [
                Role::Worker,
                Role::Gateway,
                Role::Engine,
                Role::Database,
                Role::Redis,
                Role::Load,
            ]
            .map(cores),
            worker_bytes: self.workers.iter().map(resident).max().unwrap_or_default(),
            gateway_bytes: resident(&self.gateway),
            gateway_queries,
            heartbeats,
        }
    }

    async fn heartbeats(&self) -> u64 {
        let temporal = self.stack.temporal;
        temporal.calls(&["RecordActivityTaskHeartbeat"]).await
    }

    /// Locks the table of conversations against every reader and writer.
    pub(super) async fn lock(&self, time: Duration) -> anyhow::Result<()> {
        let mut connection = PgConnection::connect(&self.database).await?;
        let mut locked = connection.begin().await?;
        sqlx::query("LOCK TABLE conversations IN ACCESS EXCLUSIVE MODE")
            .execute(&mut *locked)
            .await?;
        tokio::time::sleep(time).await;
        locked.rollback().await?;
        Ok(())
    }

    /// Returns true when a gateway has taken a worker for dead.
    pub(super) fn buried(&self) -> bool {
        let log = fs::read_to_string(self.stack.path("gateway.log"));
        log.is_ok_and(|log| log.contains(BURIED))
    }

    /// Terminates the workflow of a conversation.
    pub(super) async fn terminate(&self, conversation: &str) {
        self.stack.terminate(conversation).await;
    }

    /// Returns the number of turns that have not ended; `None` while the database does not answer.
    pub(super) async fn running(&self) -> Option<u64> {
        self.turns("running").await.ok()
    }

    /// Returns the number of turns with an answer.
    pub(super) async fn completed(&self) -> anyhow::Result<u64> {
        self.turns("completed").await
    }

    async fn turns(&self, status: &str) -> anyhow::Result<u64> {
        let mut connection = PgConnection::connect(&self.database).await?;
        let text = "SELECT COUNT(*) FROM agent_executions WHERE status = $1";
        let row = sqlx::query(text)
            .bind(status)
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        Ok(u64::try_from(row.get::<i64, _>(0))?)
    }

    /// Returns the most memory that a worker has held, in bytes.
    pub(super) fn peak_worker_bytes(&self) -> u64 {
        let peaks = self.workers.iter().map(Process::peak_memory_bytes);
        peaks.max().unwrap_or_default()
    }
}

fn resident(process: &Process) -> u64 {
    let bytes = process.ids().into_iter().map(resident_bytes);
    bytes.map(|bytes| bytes as u64).sum()
}
