//! PostgreSQL goes back to a point ten seconds ago, under load, as docs/operate/backup.md says: its commands are run here.
//! `tests/tests/e2e/verify/backups.rs` has two more disasters.
//!
//! - `load`: the clients

mod load;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use everturn_tests::{
    blocks,
    events::{contents, count, data, types},
    model::{Model, Reply, Request},
    stack::Stack,
    temporal, wait,
};
use serde_json::json;
use sqlx::Row;
use tokio::time::{Instant, timeout};

use self::load::{Accepted, Load, Reader};
use crate::production::faults::persisted;

pub(crate) const PAGE: &str = "docs/operate/backup.md";

/// What is lost at the end.
const LOST: Duration = Duration::from_secs(10);

/// What has stalled for two seconds is looked at.
pub(crate) const QUICK: &str = "[reconciler]\nevery = \"500ms\"\ngrace = \"2s\"\nagain = \"2s\"\n\
                     [worker]\ngraceful_shutdown = \"2s\"\n";

/// How long processes may take to stop while the database is away, on a busy machine.
const STOPPED_WITHIN: Duration = Duration::from_mins(1);

/// A conversation with this word in its name has long turns: they run at the point, and still when the server is lost.
const LONG: &str = "long";

/// Number of steps of a long turn, some 0.8 s each.
const LONG_STEPS: usize = 16;

const SHORT_STEPS: usize = 2;

/// Asks for two tools in each step, of which one must not run twice, and then answers.
pub(crate) fn busy(request: &Request) -> Reply {
    let (steps, sleep_ms) = if request.last("user").contains(LONG) {
        (LONG_STEPS, 700)
    } else {
        (SHORT_STEPS, 300)
    };
    if request.results_since_user() < 2 * steps {
        let input = json!({"effect": true, "sleep_ms": sleep_ms});
        return Reply::text("I change something.")
            .call("test_once", &input)
            .call("test_read", &json!({"sleep_ms": 100}));
    }
    let answer = (0..20).map(|number| format!("token{number} "));
    Reply::spread(answer.collect(), Duration::from_millis(300))
}

/// A stack with its backup, and the commands of the page.
pub(crate) struct Backup {
    pub(crate) stack: Stack,
    folder: String,
}

impl Backup {
    pub(crate) async fn prepare(stack: Stack) -> Self {
        stack.configure(QUICK);
        let folder = stack.postgres().directory().join("backups");
        let folder = folder.display().to_string();
        let backup = Self { stack, folder };
        backup.run("Archive the log", "").await;
        backup.stack.postgres().restart_fast().await;
        backup
    }

    /// Runs the commands of the page under a heading.
    async fn run(&self, heading: &str, point: &str) -> String {
        let stack = &self.stack;
        let queue = format!("'{}'", stack.task_queue);
        let commands = blocks::commands(PAGE, heading).replace("'everturn'", &queue);
        let programs = temporal::binary();
        let programs = programs.parent().unwrap().display();
        let commands = format!("PATH=\"{programs}:$PATH\"\n{commands}");
        let (address, redis) = (stack.temporal.address(), stack.redis().url());
        let environment = [
            ("BACKUP", self.folder.as_str()),
            ("POINT", point),
            ("TEMPORAL_ADDRESS", &address),
            ("EVERTURN_REDIS", &redis),
            (
                "EVERTURN_DATABASE",
                stack.backends().database().unwrap_or_default(),
            ),
        ];
        stack.postgres().administer(&commands, &environment).await
    }

    /// Returns the time now, by the clock of the database.
    async fn now(&self) -> String {
        let time = "SELECT clock_timestamp()";
        let time = format!("psql --no-align --tuples-only --command '{time}'");
        let printed = self.stack.postgres().administer(&time, &[]).await;
        printed.trim().to_owned()
    }
}

/// What clients have seen until the database was gone, and the point to which it goes back.
pub(crate) struct Disaster {
    point: String,
    accepted: Vec<Accepted>,
    readers: Vec<Reader>,
}

impl Disaster {
    /// Copies the files under load, and loses the server ten seconds after the point.
    pub(crate) async fn strike(backup: &Backup) -> Self {
        let load = Load::start(&backup.stack);
        let more = async |count: usize| {
            let enough = load.conversations() + count;
            wait::until("there are more conversations", || async {
                (load.conversations() >= enough).then_some(())
            })
            .await;
        };
        more(8).await;
        backup.run("Copy the files", "").await;
        more(4).await;
        let (point, begun) = (backup.now().await, Instant::now());
        more(4).await;
        tokio::time::sleep_until(begun + LOST).await;
        backup.stack.postgres().crash().await;
        let (accepted, readers) = load.end().await;
        Self {
            point,
            accepted,
            readers,
        }
    }
}

/// What the database had at the point. Where nobody has stopped the workers, they go on before this is read.
pub(crate) struct Restored {
    conversations: BTreeSet<String>,
    messages: BTreeSet<String>,
    /// The tool executions of `test_once` that had begun, and how they are.
    once: BTreeMap<String, String>,
    running_turns: usize,
}

impl Restored {
    async fn read(stack: &Stack, point: &str) -> Self {
        let database = stack.backends().database().unwrap();
        let pool = sqlx::PgPool::connect(database).await.unwrap();
        let rows = async |sql: &'static str| sqlx::query(sql).fetch_all(&pool).await.unwrap();
        let ids = async |sql| {
            let rows = rows(sql).await;
            rows.iter().map(|row| row.get(0)).collect::<BTreeSet<_>>()
        };
        let once = "SELECT execution_id, status FROM tool_execution_records \
                    WHERE effect = 'once' AND status <> 'pending' AND started_at <= $1::timestamptz";
        let once = sqlx::query(once)
            .bind(point)
            .fetch_all(&pool)
            .await
            .unwrap();
        Self {
            conversations: ids("SELECT id FROM conversations").await,
            messages: ids("SELECT id FROM messages WHERE role = 'user'").await,
            once: once.iter().map(|row| (row.get(0), row.get(1))).collect(),
            running_turns: ids("SELECT id FROM agent_executions WHERE status = 'running'")
                .await
                .len(),
        }
    }

    fn has(&self, accepted: &Accepted) -> bool {
        self.messages.contains(&accepted.message_id)
    }

    /// Something of each kind was lost, and something of each kind was not.
    fn is_of_use(&self, accepted: &[Accepted]) {
        let kept = accepted.iter().filter(|message| self.has(message));
        let lost = accepted.iter().filter(|message| !self.has(message));
        let is_lost = |message: &&Accepted| !self.conversations.contains(&message.conversation);
        let gone = lost.clone().filter(is_lost).count();
        println!(
            "{} messages kept, {} lost, {gone} with their conversations; {} turns run, {} tools have begun",
            kept.clone().count(),
            lost.clone().count(),
            self.running_turns,
            self.once.len()
        );
        assert!(kept.count() > 0 && gone > 0 && lost.count() > gone);
        assert!(self.running_turns > 0 && !self.once.is_empty());
    }
}

/// Nothing of what the restored database knows is left to do.
async fn is_quiet(stack: &Stack, restored: &Restored) {
    for conversation in &restored.conversations {
        wait::until(&format!("{conversation} is quiet"), || async {
            let path = format!("/conversations/{conversation}/execution-status");
            (stack.get(&path).await["is_running"] == false).then_some(())
        })
        .await;
    }
}

/// Every client sends again all that was accepted, as the page says.
async fn send_again(stack: &Stack, accepted: &[Accepted], restored: &Restored) {
    let mut made_anew = BTreeSet::new();
    for message in accepted {
        let conversation = &message.conversation;
        let is_lost =
            !restored.conversations.contains(conversation) && made_anew.insert(conversation);
        if is_lost {
            let (status, problem) = stack.send(conversation, &message.body()).await;
            assert_eq!(
                (status, &problem["code"]),
                (404, &json!("conversation_not_found"))
            );
            let body = json!({"id": conversation});
            assert_eq!(stack.post("/conversations", &body).await.0, 201);
        }
        let (status, answer) = stack.send(conversation, &message.body()).await;
        assert_eq!(status, 202, "{answer}");
        assert_eq!(
            answer["message_id"] == message.message_id.as_str(),
            restored.has(message),
            "a message that was not lost is not stored again"
        );
    }
}

/// Each message has one turn, which ends. Returns how often turns ended in which way.
async fn every_turn_ends(stack: &Stack, accepted: &[Accepted]) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    for (conversation, sent) in by_conversation(accepted) {
        let events = stack.ended(conversation, sent.len()).await;
        let begun: BTreeSet<_> = contents(&events, "user_message").into_iter().collect();
        assert_eq!(begun, sent.iter().map(String::as_str).collect());
        let codes = data(&events, "error").into_iter();
        let codes: Vec<_> = codes
            .map(|error| error["code"].as_str().unwrap().to_owned())
            .collect();
        let complete = count(&events, "complete");
        assert_eq!(complete + codes.len(), sent.len(), "{events:#?}");
        *ends.entry("complete".to_owned()).or_default() += complete;
        for code in codes {
            *ends.entry(code).or_default() += 1;
        }
    }
    println!("{ends:?}");
    ends
}

/// What was sent to each conversation, in order.
fn by_conversation(accepted: &[Accepted]) -> BTreeMap<&str, Vec<String>> {
    let mut sent: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for message in accepted {
        let to = sent.entry(&message.conversation).or_default();
        to.push(message.content());
    }
    sent
}

/// The turns are in the order of their messages.
async fn all_is_in_order(stack: &Stack, accepted: &[Accepted]) {
    for (conversation, sent) in by_conversation(accepted) {
        let events = stack.events(conversation).await;
        assert_eq!(contents(&events, "user_message"), sent);
    }
}

/// A turn that was answered has all of its steps, also when it began before the point.
async fn answers_are_whole(stack: &Stack, accepted: &[Accepted]) {
    for conversation in by_conversation(accepted).into_keys() {
        let story = types(&stack.events(conversation).await);
        let is_long = conversation.contains(LONG);
        let steps = if is_long { LONG_STEPS } else { SHORT_STEPS };
        let turns = story.split("user_message").map(str::trim);
        for turn in turns.filter(|turn| turn.ends_with("complete")) {
            let of = |kind: &str| turn.split_whitespace().filter(|word| *word == kind).count();
            let found = (of("thought"), of("act"), of("observe"));
            assert_eq!(found, (steps, 2 * steps, 2 * steps), "{turn}");
        }
    }
}

/// A tool that had begun when the database was copied to is not run again. If it was cut off, its observe says so.
async fn nothing_is_done_twice(stack: &Stack, restored: &Restored) {
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    for execution in stack.effects() {
        *runs.entry(execution).or_default() += 1;
    }
    let again = runs.values().filter(|runs| **runs > 1).count();
    println!("{} tools have run, {again} of them again", runs.len());
    let mut unknown = 0;
    for conversation in &restored.conversations {
        let events = stack.events(conversation).await;
        for observe in data(&events, "observe") {
            let execution = observe["execution_id"].as_str().unwrap();
            let Some(status) = restored.once.get(execution) else {
                continue;
            };
            assert!(
                runs.get(execution).copied().unwrap_or_default() <= 1,
                "{execution} was {status} and has run again: {events:#?}"
            );
            if status == "running" {
                unknown += 1;
                assert_eq!(observe["is_error"], true, "{observe:#?}");
            }
        }
    }
    println!("{unknown} of these had begun and not ended");
}

/// Who has stayed all the time sees what a new reader sees.
async fn readers_agree(stack: &Stack, readers: Vec<Reader>, restored: &Restored) {
    for mut reader in readers {
        let conversation = &reader.conversation;
        let last = stack.events(conversation).await.len();
        let anew = stack.frames_until(conversation, 0, |frame| {
            frame.id.is_some_and(|id| id as usize == last)
        });
        let anew = persisted(&anew.await);
        let has_all = reader.screen.wait_for(|screen| screen.events == anew);
        let has_all = timeout(Duration::from_mins(1), has_all)
            .await
            .map(|has| has.map(drop));
        match has_all {
            Ok(Ok(())) => {}
            // The gateway said 404, so the stream has ended.
            Ok(Err(_)) if !restored.conversations.contains(conversation) => {
                reader.task.await.unwrap();
            }
            _ => {
                let has = &reader.screen.borrow().events;
                panic!("a reader of {conversation} has {has:#?} instead of {anew:#?}")
            }
        }
    }
}

/// Restores PostgreSQL as the page says.
pub(crate) async fn restore(backup: &Backup, disaster: &Disaster) -> Restored {
    backup.run("Restore the files", &disaster.point).await;
    backup.stack.postgres().start_again().await;
    backup.run("Wait for the point", "").await;
    let restored = Restored::read(&backup.stack, &disaster.point).await;
    restored.is_of_use(&disaster.accepted);
    restored
}

#[tokio::test]
async fn with_the_engine_kept_every_turn_goes_on() {
    let stack = Stack::breakable(Model::start(busy).await).await;
    let end_workflows = async |backup: &Backup| {
        backup.run("End the workflows of before", "").await;
        backup.run("Wait until none runs", "").await;
    };
    Box::pin(as_the_page_says(stack, end_workflows)).await;
}

/// Restores PostgreSQL as the page says. `engine` is what is done to the engine meanwhile.
pub(crate) async fn as_the_page_says(stack: Stack, engine: impl AsyncFnOnce(&Backup)) {
    let backup = Backup::prepare(stack).await;
    let (worker, gateway) = backup.stack.start().await;
    let disaster = Disaster::strike(&backup).await;
    let stopped = async { tokio::join!(worker.terminate(), gateway.terminate()) };
    let stopped = timeout(STOPPED_WITHIN, stopped).await;
    assert_eq!(
        stopped.expect("a process does not stop"),
        (Some(0), Some(0))
    );
    let restored = restore(&backup, &disaster).await;
    engine(&backup).await;
    backup.run("Empty Redis", "").await;
    let _running = backup.stack.start().await;
    let accepted = disaster.accepted.clone();
    let ends = all_is_well(&backup, &restored, disaster).await;
    assert_eq!(ends.keys().collect::<Vec<_>>(), ["complete"]);
    all_is_in_order(&backup.stack, &accepted).await;
}

/// All that was accepted ends, after the clients have sent again what was lost. Returns how.
pub(crate) async fn all_is_well(
    backup: &Backup,
    restored: &Restored,
    disaster: Disaster,
) -> BTreeMap<String, usize> {
    let (stack, accepted) = (&backup.stack, &disaster.accepted);
    is_quiet(stack, restored).await;
    send_again(stack, accepted, restored).await;
    let ends = every_turn_ends(stack, accepted).await;
    answers_are_whole(stack, accepted).await;
    nothing_is_done_twice(stack, restored).await;
    readers_agree(stack, disaster.readers, restored).await;
    let no_workflow = backup.run("Wait until none runs", "");
    let no_workflow = timeout(Duration::from_mins(1), no_workflow).await;
    no_workflow.expect("a workflow goes on");
    let agents = backup.run("Check", "").await;
    assert!(
        agents.contains("completed") && !agents.contains("running"),
        "{agents}"
    );
    ends
}
