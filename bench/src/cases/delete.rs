//! Case `delete`: a conversation of many turns is deleted. The case measures the time until the answer, the time until
//! the last row is gone, and the turns of another conversation meanwhile.

use std::time::{Duration, Instant};

use clap::Args;
use everturn_tests::model::Model;
use reqwest::StatusCode;
use sqlx::PgConnection;

use crate::{
    measure::{Latencies, Report, Samples, float},
    world::{BackendChoice, TURN_LIMIT, TurnKind, World, turn_w},
};

/// PostgreSQL is necessary, because the case copies the rows of a turn in SQL.
const CHOICE: BackendChoice = BackendChoice { embedded: false };

/// A table with rows of each turn.
struct Table {
    name: &'static str,
    /// The columns with ids of the turn.
    ids: &'static [&'static str],
    /// The column with a sequence number of the conversation.
    sequence: Option<&'static str>,
}

/// A row refers to rows of earlier tables only.
const TABLES: [Table; 5] = [
    Table {
        name: "messages",
        ids: &["id", "client_message_id", "agent_execution_id"],
        sequence: Some("sequence_number"),
    },
    Table {
        name: "agent_executions",
        ids: &[
            "id",
            "message_id",
            "root_execution_id",
            "parent_execution_id",
        ],
        sequence: None,
    },
    Table {
        name: "agent_execution_events",
        ids: &["id", "message_id"],
        sequence: Some("sequence_number"),
    },
    Table {
        name: "execution_checkpoints",
        ids: &["id", "message_id", "agent_execution_id", "execution_id"],
        sequence: None,
    },
    Table {
        name: "tool_execution_records",
        ids: &[
            "execution_id",
            "message_id",
            "agent_execution_id",
            "call_id",
        ],
        sequence: Some("observed_sequence"),
    },
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
    let rows = rows(&world).await;
    let before = turns_until(&world, async |turns| Ok(turns >= TURNS_BEFORE)).await?;
    let begun = Instant::now();
    let url = format!("{}/conversations/{conversation}", world.api());
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
    let copies = TABLES.map(|table| {
        let ids = table.ids.iter();
        let ids = ids.map(|id| format!("'{id}', row.{id} || '-' || copy"));
        let sequence = table.sequence.iter();
        let sequence = sequence.map(|column| format!("'{column}', row.{column} + copy * {last}"));
        let changed: Vec<_> = ids.chain(sequence).collect();
        format!(
            "INSERT INTO {name} SELECT (jsonb_populate_record(row, jsonb_build_object({changed}))).* \
             FROM {name} AS row, generate_series(1, {copies}) AS copy WHERE row.conversation_id = '{conversation}'",
            name = table.name,
            changed = changed.join(", "),
            copies = turns - 1,
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

/// Counts the rows of turns, while the conversation is the only conversation with a turn.
async fn rows(world: &World) -> u64 {
    let rows = world.stack.rows().await.into_iter();
    let rows = rows.filter(|(table, _)| TABLES.iter().any(|of_turns| of_turns.name == table));
    rows.map(|(_, number)| number.unsigned_abs()).sum()
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
