//! The text of a model that failed, as a reader at a gateway in another process sees it. The other tests of the chain of an
//! agent's models are in `tests/tests/e2e/embedded/fallback.rs`.

use everturn_client::Frame;
use everturn_tests::model::{Model, Reply};

use crate::embedded::fallback::{ANSWER, fell_back, with_second};

#[tokio::test]
async fn the_text_of_a_model_that_failed_is_replaced() {
    let second = Model::start(|_| Reply::text(ANSWER).held()).await;
    let first = Model::start(|_| Reply::text("A beginning that is cut. ").cut()).await;
    let stack = with_second(first, &second, "after = 1").await;
    let (_worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    let is_shown = |frame: &Frame| {
        let text = frame.data["text"].as_str().unwrap_or_default();
        frame.event == "text_start" && ANSWER.starts_with(text) && !text.is_empty()
    };
    // A reader who comes now is shown the text of the second model, from its beginning.
    let frames = stack.frames_until(&conversation, 0, is_shown).await;
    let shown = frames.last().unwrap();
    assert_eq!(shown.data["generation"], 2, "{shown:?}");
    second.release();
    fell_back(&stack.ended(&conversation, 1).await, "llm_stream_cut");
}
