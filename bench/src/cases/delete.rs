//! Case `delete`: a conversation of many turns is deleted. The case measures the time until the answer, the time until
//! the last row is gone, and the turns of another conversation meanwhile.

use std::time::{Duration, Instant};

use clap::Args;
use everturn_tests::model::Model;
use reqwest::StatusCode;
use sqlx::{PgConnection, Row};

use crate::{
    measure::{Latencies, Report, Samples, float},
    world::{BackendChoice, TURN_LIMIT, TurnKind, World, turn_w},
};

/// PostgreSQL is necessary, because the case copies the rows of a turn in SQL.
const CHOICE: BackendChoice = BackendChoice { embedded: false };

/// Tables with rows of each turn, and the columns with ids of the turn. A row refers to rows of earlier tables only.
const TABLES: [(&str, &[&str]); 5] = [
    (
        "messages",
        &["id", "client_message_id", "agent_execution_id"],
    ),
    (
        "agent_executions",
        &[
            "id",
            "message_id",
            "root_execution_id",
            "parent_execution_id",
        ],
    ),
    ("agent_execution_events", &["id", "message_id"]),
    (
        "execution_checkpoints",
        &["id", "message_id", "agent_execution_id", "execution_id"],
    ),
    (
        "tool_execution_records",
        &[
            "execution_id",
            "message_id",
            "agent_execution_id",
            "call_id",
        ],
    ),
];

/// Number of turns of another conversation before the removal, for the comparison.
const TURNS_BEFORE: usize = 20;

/// Longest removal of 100,000 turns, in seconds.
const MAX_SECONDS: f64 = 60.0;

/// Options of the case `delete`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of turns of the deleted conversation.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1_000..=1_000_000))]
    turns: u32,
}

/// Runs the case. Other turns go on during the removal.
pub(crate) async fn run(options: &Options) -> anyhow::Result<Report> {
    let world = World::start(CHOICE, Model::start(turn_w).await).await;
    let conversation = world.turn(TurnKind::Inline).await;
    fill(&world, &conversation, options.turns).await;
    let mut database = database(&world).await?;
    let rows = rows(&mut database, &conversation).await?;
    let before = turns_until(&world, async |turns| Ok(turns >= TURNS_BEFORE)).await?;
    let begun = Instant::now();
    let url = format!(
        "{}/api/v1/agent/conversations/{conversation}",
        world.stack.url()
    );
    let answer = reqwest::Client::new().delete(&url).send().await?;
    let answered = begun.elapsed();
    anyhow::ensure!(
        answer.status() == StatusCode::NO_CONTENT,
        "the deletion got {}",
        answer.status()
    );
    let mut removed = Duration::ZERO;
    let meanwhile = turns_until(&world, async |_| {
        removed = begun.elapsed();
        anyhow::ensure!(removed < TURN_LIMIT, "rows are left after {removed:?}");
        is_gone(&mut database, &conversation).await
    })
    .await?;
    let mut samples = Samples::default();
    samples.add("turns", f64::from(options.turns));
    samples.add("rows", float(rows));
    samples.add("answer_ms", answered.as_secs_f64() * 1000.0);
    samples.add("removal_s", removed.as_secs_f64());
    samples.add("rows_per_s", float(rows) / removed.as_secs_f64());
    samples.add("other_turn_ms_before", before.median_ms());
    samples.add("other_turn_ms", meanwhile.median_ms());
    let allowed = MAX_SECONDS * (f64::from(options.turns) / 100_000.0).max(0.5);
    Ok(Report::of("delete", samples).expect(
        removed.as_secs_f64() <= allowed,
        format!("the rows were gone after {removed:?}, and {allowed} s are allowed"),
    ))
}

/// Runs turns in other conversations until the condition holds for the number of turns.
async fn turns_until(
    world: &World,
    mut is_enough: impl AsyncFnMut(usize) -> anyhow::Result<bool>,
) -> anyhow::Result<Latencies> {
    let mut latencies = Latencies::default();
    let mut turns = 0;
    while !is_enough(turns).await? {
        let begun = Instant::now();
        world.turn(TurnKind::Inline).await;
        latencies.add(begun.elapsed());
        turns += 1;
    }
    Ok(latencies)
}

/// Copies the rows of the conversation's turn until the conversation has the given number of turns.
async fn fill(world: &World, conversation: &str, turns: u32) {
    let last = format!("(SELECT last_sequence FROM conversations WHERE id = '{conversation}')");
    let copies = TABLES.map(|(table, ids)| {
        let ids = ids
            .iter()
            .map(|id| format!("'{id}', row.{id} || '-' || copy"));
        let ids: Vec<_> = ids.collect();
        let sequence = match table {
            "messages" | "agent_execution_events" => {
                format!(", 'sequence_number', row.sequence_number + copy * {last}")
            }
            "tool_execution_records" => {
                format!(", 'observed_sequence', row.observed_sequence + copy * {last}")
            }
            _ => String::new(),
        };
        format!(
            "INSERT INTO {table} SELECT (jsonb_populate_record(row, jsonb_build_object({}{sequence}))).* \
             FROM {table} AS row, generate_series(1, {}) AS copy WHERE row.conversation_id = '{conversation}'",
            ids.join(", "),
            turns - 1,
        )
    });
    let text = format!(
        "{}; UPDATE conversations SET last_sequence = last_sequence * {turns}, message_count = message_count * {turns} \
         WHERE id = '{conversation}'; ANALYZE",
        copies.join("; "),
    );
    assert!(world.stack.backends().run_sql(&text).await, "PostgreSQL");
}

/// Connects to the database of the stack.
async fn database(world: &World) -> anyhow::Result<PgConnection> {
    use sqlx::Connection as _;
    let url = world.stack.backends().database();
    let url = url.ok_or_else(|| anyhow::anyhow!("the stack has no PostgreSQL"))?;
    Ok(PgConnection::connect(url).await?)
}

/// Counts the rows of the conversation's turns.
async fn rows(database: &mut PgConnection, conversation: &str) -> anyhow::Result<u64> {
    let counts = TABLES.map(|(table, _)| {
        format!("(SELECT COUNT(*) FROM {table} WHERE conversation_id = '{conversation}')")
    });
    let text = format!("SELECT {}", counts.join(" + "));
    let row = sqlx::query(sqlx::AssertSqlSafe(text))
        .fetch_one(database)
        .await?;
    Ok(u64::try_from(row.get::<i64, _>(0))?)
}

/// Returns true when the row of the conversation is gone. The row is the last row of a removed conversation.
async fn is_gone(database: &mut PgConnection, conversation: &str) -> anyhow::Result<bool> {
    let text = "SELECT id FROM conversations WHERE id = $1";
    let row = sqlx::query(text)
        .bind(conversation)
        .fetch_optional(database)
        .await?;
    Ok(row.is_none())
}
