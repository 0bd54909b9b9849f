//! More disasters of PostgreSQL: the engine is lost with it, or nobody stops the processes. They have the load and the checks of
//! `tests/tests/e2e/production/backups/`, and take a minute each.

use everturn_proto::words::FailureCode;
use everturn_tests::{model::Model, stack::Stack};

use crate::production::backups::{Backup, Disaster, all_is_well, as_the_page_says, busy, restore};

#[tokio::test]
async fn with_the_engine_lost_every_turn_goes_on() {
    let mut stack = Stack::breakable(Model::start(busy).await).await;
    let temporal = stack.move_to_own_temporal().await;
    let lose = async |_: &Backup| temporal.lose_everything().await;
    Box::pin(as_the_page_says(stack, lose)).await;
}

/// A server takes the place of a lost one, and has all but its last ten seconds. Nobody stops anything, so the engine goes
/// on with turns of which it knows more than the database.
#[tokio::test]
async fn when_nobody_does_anything_every_turn_ends() {
    let stack = Stack::breakable(Model::start(busy).await).await;
    let backup = Backup::prepare(stack).await;
    let _running = backup.stack.start().await;
    let disaster = Disaster::strike(&backup).await;
    let restored = restore(&backup, &disaster).await;
    let ends = all_is_well(&backup, &restored, disaster).await;
    let said = [FailureCode::StoreBehind, FailureCode::TurnLost];
    let is_said = |end: &String| end == "complete" || said.contains(&end.as_str().into());
    assert!(ends.keys().all(is_said), "{ends:?}");
}
