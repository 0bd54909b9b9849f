//! Many short turns on one worker and one gateway, and what they leave: memory, rows and keys of Redis. The benchmark
//! runs many turns, and a test runs a few.

use std::time::Duration;

use everturn_client::GatewayClient;
use everturn_terminal::frames::FollowedTurn;
use futures::{StreamExt, stream};
use serde_json::json;

use crate::{
    crowd::resident_bytes,
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};

/// Number of turns in each conversation.
pub const TURNS_EACH: usize = 5;

/// Number of conversations at the same time.
const AT_ONCE: usize = 16;

/// A turn that takes longer has stalled.
const TURN_LIMIT: Duration = Duration::from_mins(5);

/// The most that memory may grow from an early mark to the last one, in per cent.
pub const MAX_GROWTH: u8 = 10;

/// The limits of tenants are off, because all conversations belong to one tenant here.
const UNLIMITED: &str = "[limits]\nopen_streams = 0\nrequests_per_second = 0\n";

/// The processes that the turns run on.
pub struct Soak {
    stack: Stack,
    client: GatewayClient,
    worker: Process,
    gateway: Process,
    turns: usize,
}

/// What was there after so many turns.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// Number of turns so far.
    pub turns: usize,
    /// Memory of the worker, in bytes.
    pub worker_bytes: usize,
    /// Memory of the gateway, in bytes.
    pub gateway_bytes: usize,
    /// Rows in all tables of the store but `usage_days`, `tool_usage_days` and `list_changes`.
    pub rows: i64,
    /// Keys in Redis.
    pub keys: u64,
}

impl Mark {
    /// Number of rows that each turn since an earlier mark has left.
    #[allow(clippy::cast_precision_loss)]
    pub fn rows_a_turn_since(&self, earlier: &Self) -> f64 {
        (self.rows - earlier.rows) as f64 / (self.turns - earlier.turns) as f64
    }
}

/// A turn with two tools in parallel and a short answer.
fn short_turn(request: &Request) -> Reply {
    let calculation = json!({"expression": "21 * 2"});
    match request.results_since_user() {
        0 => Reply::text("I need two tools.")
            .call("calculate", &calculation)
            .call("calculate", &calculation),
        _ => Reply::tokens(20),
    }
}

impl Soak {
    /// Starts everything, with these keys in `[worker]`.
    pub async fn start(worker_keys: &str) -> Self {
        let model = Model::start(short_turn).await;
        let stack = Stack::breakable(model).await.with_gateways(1);
        stack.configure(&format!("{UNLIMITED}[worker]\n{worker_keys}\n"));
        let gateway = stack.gateway_on(0, &[]).await;
        let worker = stack.spawn(&["worker"], "worker", &[]);
        Self {
            client: stack.client(),
            stack,
            worker,
            gateway,
            turns: 0,
        }
    }

    /// Runs turns until there were this many in all, a multiple of [`TURNS_EACH`]. Each is followed to its end by a
    /// reader of its own.
    pub async fn run_to(&mut self, turns: usize) -> Mark {
        let (client, model) = (&self.client, &self.stack.model);
        let conversations = turns.saturating_sub(self.turns) / TURNS_EACH;
        stream::iter(0..conversations)
            .map(|_| async {
                converse(client).await;
                model.forget_requests();
            })
            .buffer_unordered(AT_ONCE)
            .for_each(|()| async {})
            .await;
        self.turns += conversations * TURNS_EACH;
        self.mark().await
    }

    async fn mark(&self) -> Mark {
        let bytes = |process: &Process| process.ids().into_iter().map(resident_bytes).sum();
        let rows = self.stack.rows().await;
        // The rows of a tenant's day and of a tenant's list are a few, however many turns there are.
        let of_tenants = ["usage_days", "tool_usage_days", "list_changes"];
        let of_turns = rows
            .iter()
            .filter(|(table, _)| !of_tenants.contains(&table.as_str()));
        let keys = self.stack.redis().command("DBSIZE").await.unwrap();
        Mark {
            turns: self.turns,
            worker_bytes: bytes(&self.worker),
            gateway_bytes: bytes(&self.gateway),
            rows: of_turns.map(|(_, count)| count).sum(),
            keys: keys.trim_start_matches(':').parse().unwrap(),
        }
    }
}

/// Has a conversation from its first turn to its last.
async fn converse(client: &GatewayClient) {
    let conversation = client.create_conversation(None).await.unwrap();
    let mut cursor = 0;
    for _ in 0..TURNS_EACH {
        let message = client.submit(&conversation, "A short turn.", None);
        let message = message.await.unwrap();
        let mut turn = FollowedTurn::of(&message);
        let mut frames = std::pin::pin!(client.follow(&conversation, cursor));
        let end = async {
            while let Some(frame) = frames.next().await {
                cursor = frame.id.unwrap_or(cursor);
                if turn.ends_with(&frame) {
                    return frame;
                }
            }
            panic!("the stream of {conversation} has ended");
        };
        let end = tokio::time::timeout(TURN_LIMIT, end).await;
        let end = end.unwrap_or_else(|_| panic!("a turn of {conversation} has stalled"));
        assert_eq!(end.event, "complete", "{}", end.data);
    }
}
