//! The client for programs in Rust has words of its own, because it does not depend on `everturn_proto`. It has to know
//! each word of this version that it can meet.

use everturn_client::{OnBusy, state};
use everturn_proto::words;

#[test]
fn the_client_knows_how_a_message_may_meet_a_running_turn() {
    for word in words::OnBusy::ALL {
        let known = OnBusy::from(word.as_str());
        assert!(!matches!(known, OnBusy::Unknown(_)), "{word}");
    }
}

#[test]
fn the_client_knows_each_state_of_an_approval() {
    for word in words::ApprovalState::ALL {
        let known = state::ApprovalState::from(word.as_str());
        let is_unknown = matches!(known, state::ApprovalState::Unknown(_));
        // A call that needs no approval has none.
        let is_never_said = *word == words::ApprovalState::NotNeeded;
        assert_eq!(is_unknown, is_never_said, "{word}");
    }
}

#[test]
fn the_client_knows_each_status_of_a_plan_step() {
    for word in words::PlanStepStatus::ALL {
        let known = state::PlanStepStatus::from(word.as_str());
        assert!(
            !matches!(known, state::PlanStepStatus::Unknown(_)),
            "{word}"
        );
    }
}

#[test]
fn the_client_knows_why_an_answer_ends() {
    use words::FinishReason::{Compacted, ToolCalls};
    for word in words::FinishReason::ALL {
        let known = state::FinishReason::from(word.as_str());
        let is_unknown = matches!(known, state::FinishReason::Unknown(_));
        // No answer comes of such an LLM call.
        let is_never_said = matches!(word, Compacted | ToolCalls);
        assert_eq!(is_unknown, is_never_said, "{word}");
    }
}
