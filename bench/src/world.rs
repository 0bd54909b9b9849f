//! The systems under the cases: Everturn's processes, the servers and the scripted model.

use std::{pin::pin, sync::Arc, time::Duration};

use clap::Args;
use everturn_client::GatewayClient;
use everturn_tests::{
    FollowedTurn,
    backends::Backends,
    model::{Model, Reply, Request},
    proxy::Proxy,
    round_trips::RoundTrips,
    stack::{Process, Stack},
    temporal::Temporal,
};
use futures::StreamExt;
use serde_json::json;

/// Maximum duration of a turn; a longer turn has stalled.
pub(crate) const TURN_LIMIT: Duration = Duration::from_mins(15);

/// Number of tokens in an answer.
const TOKENS: usize = 1000;

/// Keys of `[agents.default]`.
const AGENT: &str = "tools = [\"calculate\", \"test_read\"]\n";

/// Variant of turn W.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnKind {
    /// The tools are activities, and the model answers at full speed.
    Ordinary,
    /// The tools run as local activities.
    Inline,
    /// The ordinary turn, with an answer spread over [`SPREAD_OVER`].
    Spread,
}

impl TurnKind {
    /// Returns the user's message, by which the model recognizes the kind.
    fn message(self) -> &'static str {
        match self {
            Self::Ordinary => "With ordinary tools.",
            Self::Inline => "With inline tools.",
            Self::Spread => "With ordinary tools, and slowly.",
        }
    }
}

/// Duration of a spread answer.
pub(crate) const SPREAD_OVER: Duration = Duration::from_secs(2);

/// Turns the limits of tenants off, because the benchmark's conversations belong to one tenant.
const UNLIMITED: &str =
    "[limits]\nconcurrent_turns = 1000000\nopen_streams = 0\nrequests_per_second = 0\n";

/// Choice of the backends.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct BackendChoice {
    /// Uses SQLite and memory instead of PostgreSQL and Redis.
    #[arg(long)]
    pub(crate) embedded: bool,
}

/// A worker and a gateway, with their own Temporal server, PostgreSQL and Redis.
pub(crate) struct World {
    pub(crate) stack: Stack,
    pub(crate) client: GatewayClient,
    worker: Process,
    _gateway: Process,
}

/// The model of turn W: an LLM call that asks for two tools, then an LLM call that streams the answer.
pub(crate) fn turn_w(request: &Request) -> Reply {
    let says = |kind: TurnKind| request.last("user") == kind.message();
    if request.results_since_user() > 0 {
        let tokens = (0..TOKENS).map(|number| format!("token{number} "));
        return if says(TurnKind::Spread) {
            Reply::spread(tokens.collect(), SPREAD_OVER)
        } else {
            Reply::pieces(tokens.collect(), Duration::ZERO)
        };
    }
    // The peers have only the tool `calculate`.
    let (tool, input) = if says(TurnKind::Ordinary) || says(TurnKind::Spread) {
        ("test_read", json!({}))
    } else {
        ("calculate", json!({"expression": "21 * 2"}))
    };
    Reply::text("I need two tools.")
        .call(tool, &input)
        .call(tool, &input)
}

/// Makes a stack with one gateway, a dedicated Temporal server and no limits of tenants. `keys` are added to
/// `[agents.default]`.
pub(crate) async fn measured_stack(backends: Backends, model: Model, keys: &str) -> Stack {
    let temporal = Temporal::measured().await.lasting();
    stack_on(temporal, backends, model, keys)
}

/// Makes a stack like [`measured_stack`], on the given Temporal server.
pub(crate) fn stack_on(
    temporal: &'static Temporal,
    backends: Backends,
    model: Model,
    keys: &str,
) -> Stack {
    let agent = format!("{AGENT}{keys}\n");
    let stack = Stack::of(temporal, backends, model, &agent).with_gateways(1);
    stack.configure(UNLIMITED);
    stack
}

impl World {
    /// Starts the servers and processes.
    pub(crate) async fn start(choice: BackendChoice, model: Model) -> Self {
        Self::with_agent(choice, model, "").await
    }

    /// Starts the servers and processes, with the given keys in `[agents.default]`.
    pub(crate) async fn with_agent(choice: BackendChoice, model: Model, keys: &str) -> Self {
        Self::on(Backends::measured(choice.embedded).await, model, keys).await
    }

    /// Starts the servers and processes, with a proxy that counts round trips to PostgreSQL. The proxy costs time.
    pub(crate) async fn counting(choice: BackendChoice, model: Model) -> (Self, Arc<RoundTrips>) {
        let round_trips = Arc::<RoundTrips>::default();
        let mut backends = Backends::measured(choice.embedded).await;
        if let Some(postgres) = backends.postgres() {
            let proxy = Proxy::inspected(postgres.port(), round_trips.clone()).await;
            backends = backends.through(proxy.port());
        }
        (Self::on(backends, model, "").await, round_trips)
    }

    async fn on(backends: Backends, model: Model, keys: &str) -> Self {
        let stack = measured_stack(backends, model, keys).await;
        let gateway = stack.gateway_on(0, &[]).await;
        let worker = worker_of(&stack);
        Self {
            client: stack.client(),
            stack,
            worker,
            _gateway: gateway,
        }
    }

    /// Returns the address of the gateway's API.
    pub(crate) fn api(&self) -> String {
        format!("{}/api/v1/agent", self.stack.url())
    }

    /// Kills the worker with -9, and starts a new worker.
    pub(crate) async fn replace_worker(&mut self) {
        let next = worker_of(&self.stack);
        std::mem::replace(&mut self.worker, next).kill().await;
    }

    /// Runs a turn in a new conversation, and returns the conversation.
    pub(crate) async fn turn(&self, kind: TurnKind) -> String {
        self.ask(kind.message()).await
    }

    /// Sends a message to a new conversation, and follows the stream until the turn ends. Returns the conversation.
    pub(crate) async fn ask(&self, content: &str) -> String {
        let conversation = self.client.create_conversation(None).await.unwrap();
        let message = self
            .client
            .submit(&conversation, content, None)
            .await
            .unwrap();
        followed(&self.client, &conversation, &message).await;
        self.stack.model.forget_requests();
        conversation
    }
}

fn worker_of(stack: &Stack) -> Process {
    stack.spawn(&["worker"], "worker", &[])
}

/// Creates an API key of a tenant.
pub(crate) async fn key(stack: &Stack, tenant: &str) -> String {
    let command = ["keys", "create", "--tenant", tenant];
    let output = stack.command(&command, &[]).output().await.unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Follows the stream until the message's turn ends, and checks that the turn succeeded.
pub(crate) async fn followed(client: &GatewayClient, conversation: &str, message: &str) {
    let ended = async {
        let mut turn = FollowedTurn::of(message);
        let mut frames = pin!(client.follow(conversation, 0));
        while let Some(frame) = frames.next().await {
            if turn.ends_with(&frame) {
                return frame.event;
            }
        }
        panic!("the stream of {conversation} has ended");
    };
    let ended = tokio::time::timeout(TURN_LIMIT, ended).await;
    let ended = ended.unwrap_or_else(|_| panic!("the turn of {conversation} has stalled"));
    assert_eq!(ended, "complete");
}
