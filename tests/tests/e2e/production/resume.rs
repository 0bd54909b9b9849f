//! A reader stays connected while a conversation loses its workflow and is resumed: live texts reach the gateway of the
//! reader. The other tests of lost workflows are in `tests/tests/e2e/both/resume.rs`.

use everturn_client::Frame;
use everturn_tests::{model::Model, stack::Stack};
use serde_json::json;

use super::faults::{assembled, persisted};
use crate::both::resume::{cut_off, ended_once, resume, resuming, terminate};

#[tokio::test]
async fn in_mid_stream_with_a_reader_connected() {
    let stack = Stack::new(Model::start(cut_off).await).await;
    let _running = stack.start().await;
    let conversation = stack.client().create_conversation(None).await.unwrap();
    let is_last = |frame: &Frame| frame.event == "complete";
    let harm = async {
        stack
            .send(&conversation, &json!({"content": "change something"}))
            .await;
        stack.asked(2).await;
        terminate(&stack, &conversation).await;
        assert_eq!(resume(&stack, &conversation).await, resuming(0));
    };
    let (live, ()) = tokio::join!(stack.frames_until(&conversation, 0, is_last), harm);
    ended_once(&stack, &conversation).await;
    let replayed = stack.frames_until(&conversation, 0, is_last).await;
    assert_eq!(
        persisted(&live),
        persisted(&replayed),
        "live and replayed differ"
    );
    assert_eq!(assembled(&live), assembled(&replayed));

    // The same agent execution goes on: its texts are streamed, and their generations rise.
    let texts = live
        .iter()
        .filter(|frame| frame.data["part"] == "text" && frame.data["step"] == 1);
    let generations: Vec<_> = texts
        .clone()
        .filter_map(|frame| frame.data["generation"].as_u64())
        .collect();
    assert!(
        generations.is_sorted() && generations.last() > Some(&2),
        "{generations:?}"
    );
    let last = generations.last().copied();
    let text: String = texts
        .filter(|frame| frame.data["generation"].as_u64() == last && frame.event != "text_end")
        .map(|frame| frame.data["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        assembled(&live).last(),
        Some(&text),
        "what was streamed is what was saved"
    );
}
