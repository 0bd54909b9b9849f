//! Two builds side by side under load, as in a rollout and its way back: this one, and that of the commit before
//! (`make previous`). On SQLite the older build makes the tables, and on PostgreSQL this one does.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use everturn_tests::{
    count::Count,
    events::types,
    model::{Model, Reply, Request},
    stack::{Process, Stack},
};
use futures::future::join_all;
use serde_json::json;

/// Conversations that are always in a turn.
const BUSY: usize = 3;
/// Number of turns that end in each phase of the rollout.
const TURNS: usize = 4;

const EACH_TURN: &str =
    "user_message thought act act act observe observe observe assistant_message complete";

fn previous() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/previous/everturn");
    let found = file.canonicalize();
    let found =
        found.unwrap_or_else(|_| panic!("{} is missing: run `make previous`", file.display()));
    found.to_str().unwrap().to_owned()
}

fn three_tools(request: &Request) -> Reply {
    match request.results_since_user() {
        0 => Reply::text("Both.")
            .call("test_once", &json!({"effect": true, "sleep_ms": 50}))
            .call("test_read", &json!({"sleep_ms": 20}))
            .call("calculate", &json!({"expression": "21 * 2"})),
        _ => Reply::tokens(20),
    }
}

/// Turns that follow one another in some conversations, through both gateways.
struct Load<'a> {
    stack: &'a Stack,
    is_over: AtomicBool,
    ended: Count,
}

impl Load<'_> {
    /// Sends one message after the other to a conversation, each when the turn before has ended. Returns their number.
    async fn converse(&self) -> (String, usize) {
        let conversation = self.stack.client().create_conversation(None).await.unwrap();
        let mut turns = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let client = self.stack.client();
            client.submit(&conversation, "both", None).await.unwrap();
            turns += 1;
            self.stack.ended(&conversation, turns).await;
            self.ended.rise();
        }
        (conversation, turns)
    }

    /// Waits until some more turns have ended.
    async fn goes_on(&self) {
        self.ended.risen_by(TURNS, "turns have ended").await;
    }
}

/// Replaces the workers of the older build by those of this one, and goes back. Returns what still runs.
async fn roll_out_and_back(stack: &Stack, load: &Load<'_>, old: Process) -> Process {
    load.goes_on().await;
    let new = stack.worker();
    load.goes_on().await;
    assert_eq!(old.terminate().await, Some(0));
    load.goes_on().await;
    let old = stack.worker_of(&previous());
    load.goes_on().await;
    assert_eq!(new.terminate().await, Some(0));
    load.goes_on().await;
    old
}

#[tokio::test]
async fn no_turn_fails_while_one_build_replaces_the_other() {
    let model = Model::start(three_tools).await;
    let stack = Stack::new(model).await.with_gateways(2);
    let _old_gateway = stack.gateway_of(&previous(), 0).await;
    let old_worker = stack.worker_of(&previous());
    let _new_gateway = stack.gateway_on(1, &[]).await;
    let load = Load {
        stack: &stack,
        is_over: AtomicBool::new(false),
        ended: Count::default(),
    };
    let conversations = join_all((0..BUSY).map(|_| load.converse()));
    let rollout = async {
        let left = roll_out_and_back(&stack, &load, old_worker).await;
        load.is_over.store(true, Ordering::Relaxed);
        left
    };
    let (conversations, _left) = tokio::join!(conversations, rollout);
    let mut turns = 0;
    for (conversation, count) in conversations {
        let story = types(&stack.events(&conversation).await);
        assert_eq!(story, vec![EACH_TURN; count].join(" "));
        turns += count;
    }
    assert_eq!(stack.effects().len(), turns, "every tool ran once");
    assert_eq!(
        stack.model.requests().len(),
        2 * turns,
        "no call is paid twice"
    );
}
