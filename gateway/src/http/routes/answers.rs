//! Gives an answer of a person to the turn of the call, and finds out whether the turn has stored the answer.

use std::time::Duration;

use everturn_proto::{
    ids,
    turn::ResolveApproval,
    words::{ApprovalRefusal, ApprovalState},
};
use everturn_store::{Conversation, OutsideTool};
use tokio::time::sleep;

use crate::{
    http::{problem::Problem, state::GatewayState},
    turns::ApprovalOutcome,
};

/// The looks at a call whose turn stores another answer at the moment, and the pause between two looks. A save takes some
/// milliseconds.
const SAVE_LOOKS: u32 = 20;
const SAVE_PAUSE: Duration = Duration::from_millis(50);

/// Gives the answer to the turn. The outcome is [`ApprovalOutcome::Taken`] when the answer is stored, also when the turn has
/// refused the answer.
pub(super) async fn given(
    state: &GatewayState,
    conversation: &Conversation,
    sub_agent: Option<&str>,
    call: &OutsideTool,
    answer: ResolveApproval,
) -> Result<ApprovalOutcome, Problem> {
    let (answer_id, execution_id) = (ids::answer_id(&answer), answer.execution_id.clone());
    let give = || {
        let turns = &state.ports.turns;
        turns.resolve_approval(&conversation.id, sub_agent, answer.clone())
    };
    let asks = call.record.open_question().is_some();
    let mut outcome = give().await?;
    for _look in 1..SAVE_LOOKS {
        // The turn learns of a tool's question some milliseconds after the readers.
        if !asks || outcome != ApprovalOutcome::Refused(ApprovalRefusal::NotWaiting) {
            break;
        }
        sleep(SAVE_PAUSE).await;
        outcome = give().await?;
    }
    if outcome == ApprovalOutcome::Taken {
        return Ok(outcome);
    }
    let looks = looks_after(&outcome);
    if is_saved(state, conversation, &execution_id, &answer_id, looks).await? {
        return Ok(ApprovalOutcome::Taken);
    }
    Ok(outcome)
}

/// Returns the number of looks at the call: several looks while the turn stores another answer.
fn looks_after(outcome: &ApprovalOutcome) -> u32 {
    match outcome {
        ApprovalOutcome::Refused(ApprovalRefusal::Answered | ApprovalRefusal::BeingStored) => {
            SAVE_LOOKS
        }
        ApprovalOutcome::Taken
        | ApprovalOutcome::Refused(_)
        | ApprovalOutcome::NotRunning
        | ApprovalOutcome::Unanswered => 1,
    }
}

/// Returns true if the call's stored answer is this answer. The save takes the newest noted answer, whichever answer the
/// turn has taken, so a refused answer may be stored, and the turn may have ended since.
async fn is_saved(
    state: &GatewayState,
    conversation: &Conversation,
    execution_id: &str,
    answer_id: &str,
    looks: u32,
) -> Result<bool, Problem> {
    let outside = &state.ports.outside;
    for look in 1..=looks {
        let saved = outside.saved_answer(&conversation.id, execution_id).await?;
        let Some(saved) = saved else { break };
        if saved.decision() != ApprovalState::Pending {
            return Ok(saved.answer_id.as_deref() == Some(answer_id));
        }
        if look < looks {
            sleep(SAVE_PAUSE).await;
        }
    }
    Ok(false)
}
