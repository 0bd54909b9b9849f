//! Answers that are not what they had to be, and the summary of a turn whose steps are used up.

use everturn_proto::{
    Thread,
    turn::{LlmCompleteState, SaveCutReply, save_request::Batch},
    words::{AgentExecutionStatus, FinishReason},
};
use everturn_store::{PageLimit, StepClaims};

use super::{
    Backend,
    fixture::{Turn, TurnStore, json, state},
};

fn invalid(text: &str) -> LlmCompleteState {
    LlmCompleteState {
        invalid_output: Some("The answer is not JSON.".into()),
        ..state(text, vec![])
    }
}

async fn finishes(turn: &Turn<impl TurnStore>) -> Vec<serde_json::Value> {
    let answers = turn.all_data("assistant_message").await;
    answers.into_iter().map(|it| it["finish"].clone()).collect()
}

/// The texts of the context of the next turn.
async fn context(turn: &Turn<impl TurnStore>) -> Vec<String> {
    let rows = PageLimit::rows(10);
    let read = turn.store.context("c", &Thread::Conversation, rows, None);
    let messages = read.await.unwrap().messages;
    messages.into_iter().map(|it| it.content).collect()
}

pub async fn an_invalid_answer_completes_nothing(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let goes_on = LlmCompleteState {
        goes_on: true,
        reasoning: "hm".into(),
        ..invalid("forty")
    };
    turn.store
        .complete_step(&turn.step(0), goes_on)
        .await
        .unwrap();
    turn.save(0, Batch::CutReply(SaveCutReply {})).await;
    let last = invalid("forty-two");
    turn.store.complete_step(&turn.step(1), last).await.unwrap();
    let saved = turn.end(1, AgentExecutionStatus::Completed).await;
    assert_eq!(saved.result.status(), AgentExecutionStatus::Failed);
    let end = saved.ended.unwrap();
    assert_eq!(end.error_code.as_deref(), Some("llm_output_invalid"));
    assert_eq!(
        turn.types().await,
        [
            "user_message",
            "thought",
            "assistant_message",
            "assistant_message",
            "error"
        ]
    );
    assert_eq!(finishes(&turn).await, ["invalid_output", "invalid_output"]);
    let error = turn.data("error").await;
    assert_eq!(
        (&error["code"], &error["message"]),
        (
            &"llm_output_invalid".into(),
            &"The answer is not JSON.".into()
        )
    );
    assert_eq!(context(&turn).await[1..], ["forty", "forty-two"]);
}

pub async fn a_valid_answer_is_told_as_a_value(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let valid = LlmCompleteState {
        output: Some(json(r#"{"n":42}"#)),
        ..state("{\"n\": 42}", vec![])
    };
    turn.store
        .complete_step(&turn.step(0), valid)
        .await
        .unwrap();
    let saved = turn.end(0, AgentExecutionStatus::Completed).await;
    assert_eq!(saved.result.status(), AgentExecutionStatus::Completed);
    let complete = turn.data("complete").await;
    assert_eq!(complete["output"], serde_json::json!({"n": 42}));
    assert_eq!(finishes(&turn).await, ["stop"]);
}

pub async fn the_summary_of_a_turn_without_steps_is_kept(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let summary = LlmCompleteState {
        finish: FinishReason::StepLimit.into(),
        reasoning: "hm".into(),
        ..state("So far.", vec![])
    };
    turn.store
        .complete_step(&turn.step(0), summary)
        .await
        .unwrap();
    let saved = turn.end(0, AgentExecutionStatus::Failed).await;
    assert_eq!(saved.result.status(), AgentExecutionStatus::Failed);
    assert_eq!(
        turn.types().await,
        ["user_message", "thought", "assistant_message", "error"]
    );
    let answer = turn.data("assistant_message").await;
    assert_eq!(
        (&answer["finish"], &answer["partial"]),
        (&"step_limit".into(), &false.into())
    );
    assert_eq!(context(&turn).await[1..], ["So far."]);
}
