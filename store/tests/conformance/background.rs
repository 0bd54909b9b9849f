//! Responses that run on at their provider: who calls a step again goes on with them (invariant 5, paid once).

use everturn_proto::words::AgentExecutionStatus;
use everturn_store::{BackgroundResponse, ClaimedCall, StepClaim};

use super::{
    Backend,
    fixture::{Turn, TurnStore},
};

fn response(id: &str) -> BackgroundResponse {
    BackgroundResponse {
        provider: "openai".into(),
        model: "gpt-x".into(),
        id: id.into(),
    }
}

/// Claims a step, and returns the generation and the response that it is to go on with.
async fn claim(turn: &Turn<impl TurnStore>, step: u32) -> (u32, Option<BackgroundResponse>) {
    let claim = turn.store.claim_step(&turn.step(step), None).await;
    let StepClaim::Call(ClaimedCall {
        generation,
        background,
        ..
    }) = claim.unwrap()
    else {
        panic!("nothing is stored")
    };
    (generation, background)
}

async fn note(turn: &Turn<impl TurnStore>, step: u32, generation: u32, id: &str) -> bool {
    let (step, response) = (turn.step(step), response(id));
    let noted = turn.store.note_response(&step, generation, &response);
    noted.await.unwrap()
}

pub async fn the_next_claim_of_a_step_goes_on_with_its_response(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let rows = backend.row_count().await;
    assert_eq!(claim(&turn, 0).await, (1, None));
    assert!(note(&turn, 0, 1, "resp_1").await);
    assert!(note(&turn, 0, 1, "resp_1").await, "it may be repeated");
    assert_eq!(claim(&turn, 0).await, (2, Some(response("resp_1"))));
    assert!(
        note(&turn, 0, 2, "resp_2").await,
        "the first one had failed"
    );
    assert_eq!(claim(&turn, 0).await, (3, Some(response("resp_2"))));
    assert_eq!(claim(&turn, 1).await, (4, None), "that is another step's");
    assert_eq!(backend.row_count().await, rows, "it costs no row");
}

pub async fn a_call_whose_claim_is_lost_notes_nothing(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    claim(&turn, 0).await;
    claim(&turn, 0).await;
    assert!(!note(&turn, 0, 1, "resp_late").await);
    assert!(note(&turn, 0, 2, "resp_new").await);
    assert!(!note(&turn, 0, 1, "resp_late").await);
    assert_eq!(claim(&turn, 0).await, (3, Some(response("resp_new"))));
    turn.complete(0, "said", &[]).await;
    turn.end(0, AgentExecutionStatus::Completed).await;
    assert!(!note(&turn, 0, 3, "resp_late").await, "the turn has ended");
}
