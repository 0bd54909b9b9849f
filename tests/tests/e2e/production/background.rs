//! Responses that the provider makes in the background (OpenAI's Responses API): a worker that dies or a connection that
//! is lost costs nothing, and readers see no restart (invariant 5, paid once; invariant 7, fenced deltas).

use std::{collections::BTreeMap, fs, future::ready};

use everturn_client::Frame;
use everturn_tests::{
    events::{count, data, types},
    model::{Model, Reply},
    responses::{Responses, Script},
    stack::{Process, Stack, frames_until},
    wait,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::both::crash::half_at_first;

const ANSWER: &str = "The first half of the answer, and then the second half of it.";
/// The part of the answer that a held response has.
const HALF: &str = "The first half of the answer, ";
const THOUGHTS: &str = "I think about halves.";
const WHOLE_TURN: &str = "user_message thought assistant_message complete";

fn answer() -> Script {
    Script::text(ANSWER).reasoning(THOUGHTS)
}

/// A stack whose agent thinks with this provider.
async fn stack(provider: &Responses) -> Stack {
    let unused = Model::start(|_| Reply::error(500, "not_this_one")).await;
    let url = unused.base_url();
    let stack = Stack::new(unused).await;
    let path = stack.path("everturn.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("kind = \"openai\"", "kind = \"openai_responses\"");
    fs::write(&path, text.replace(&url, &provider.base_url())).unwrap();
    stack
}

/// What a reader has on its screen, text by text.
#[derive(Default)]
struct Screen(BTreeMap<String, String>);

impl Screen {
    /// Takes a frame. No text ever becomes shorter, or another one.
    fn take(&mut self, frame: &Frame) {
        let word = |key: &str| frame.data[key].as_str().unwrap_or_default().to_owned();
        let shown = self.0.entry(word("part")).or_default();
        let now = match frame.event.as_str() {
            "text_start" => word("text"),
            "text_delta" => {
                assert_eq!(frame.data["offset"], shown.len(), "{frame:?}");
                format!("{shown}{}", word("text"))
            }
            _ => return,
        };
        assert!(
            now.starts_with(shown.as_str()),
            "`{shown}` becomes `{now}` with {frame:?}"
        );
        *shown = now;
    }
}

/// Reads a conversation from its beginning to the end of its turn.
fn reader(stack: &Stack, conversation: &str) -> JoinHandle<Vec<Frame>> {
    let (client, conversation) = (stack.client(), conversation.to_owned());
    tokio::spawn(async move {
        let is_last = |frame: &Frame| matches!(frame.event.as_str(), "complete" | "error");
        frames_until(&client, &conversation, 0, is_last).await
    })
}

/// Waits until the response is noted, and until a new reader is shown the first half of the answer.
async fn is_half_way(stack: &Stack, conversation: &str) {
    stack.has_noted_response().await;
    let mut text = String::new();
    let client = stack.client();
    let text = std::sync::Mutex::new(&mut text);
    let is_half = |frame: &Frame| {
        let mut text = text.lock().unwrap();
        let word = |key: &str| frame.data[key].as_str().unwrap_or_default();
        match frame.event.as_str() {
            "text_start" if word("part") == "text" => word("text").clone_into(&mut text),
            "text_delta" if word("part") == "text" => text.push_str(word("text")),
            _ => {}
        }
        **text == HALF
    };
    frames_until(&client, conversation, 0, is_half).await;
}

/// Checks that a reader saw the whole of both texts grow, and nothing else. `generations` have written them.
fn saw_no_restart(frames: &[Frame], generations: &[u64]) {
    let mut screen = Screen::default();
    let mut seen = Vec::new();
    for frame in frames {
        screen.take(frame);
        seen.extend(frame.data["generation"].as_u64());
    }
    seen.dedup();
    // The parts of the newer generation come one after the other, with nothing older in between.
    assert_eq!(seen, generations);
    assert_eq!(screen.0["text"], ANSWER);
    assert_eq!(screen.0["reasoning"], THOUGHTS);
}

/// A turn whose response waits in its middle, with the worker at it, the gateway, and a reader that has seen the half.
async fn half_way() -> (
    Responses,
    Stack,
    Process,
    Process,
    String,
    JoinHandle<Vec<Frame>>,
) {
    let provider = Responses::start(|_| answer().held()).await;
    let stack = stack(&provider).await;
    stack.configure("[worker]\ngraceful_shutdown = \"1s\"\n");
    let (worker, gateway) = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    paid(&provider, 1).await;
    let reader = reader(&stack, &conversation);
    is_half_way(&stack, &conversation).await;
    (provider, stack, worker, gateway, conversation, reader)
}

/// What the turn says that it took is what the provider has billed, and nothing stays reserved: the next turn has room.
#[tokio::test]
async fn a_budget_counts_a_response_once_when_its_worker_is_killed() {
    let provider = Responses::start(|_| answer().held()).await;
    let stack = stack(&provider).await;
    // One call without tools takes 15 tokens, and reserves some 450: a second reservation would not fit.
    let path = stack.path("everturn.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (before, after) = text.split_once("\ntools = [").unwrap();
    let (_, after) = after.split_once('\n').unwrap();
    fs::write(&path, format!("{before}\nmax_output_tokens = 400\n{after}")).unwrap();
    stack.configure(
        "[agents.default.budget]\nconversation_tokens = 800\nusd = 1\n\
         [models.\"scripted/scripted\"]\ninput = 10\ncached_input = 1\noutput = 100\n",
    );
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    paid(&provider, 1).await;
    is_half_way(&stack, &conversation).await;
    worker.kill().await;
    let _next = stack.worker();
    provider.read_again(1).await;
    ends_with_one(&provider, &stack, &conversation).await;

    let events = stack.ended(&conversation, 1).await;
    let end = data(&events, "complete")[0];
    // 6 tokens at 10, 4 cached ones at 1 and 5 written ones at 100 millionths.
    assert_eq!(end["cost_usd"], "0.000564", "{end:#}");
    let url = format!("{}/api/v1/usage", stack.url());
    let page: Value = stack
        .http
        .get(url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let day = &page["usage"][0];
    let sums = ["calls", "cut_calls", "cut_tokens"].map(|key| day[key].as_u64());
    assert_eq!(sums, [Some(1), Some(0), Some(0)], "{day:#}");
    let tokens = ["input_tokens", "output_tokens"].map(|key| day["usage"][key].as_u64());
    assert_eq!(tokens, [Some(10), Some(5)], "{day:#}");
    assert_eq!(day["cost_usd"], end["cost_usd"]);

    // The conversation has taken 15 of 800 tokens, of which nothing is reserved any more.
    stack
        .client()
        .submit(&conversation, "again", None)
        .await
        .unwrap();
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(count(&events, "complete"), 2, "{events:#?}");
}

/// Waits until so many responses were asked for.
async fn paid(provider: &Responses, count: usize) {
    wait::until(&format!("{count} responses were asked for"), || {
        ready((provider.paid().len() >= count).then_some(()))
    })
    .await;
}

/// Lets the response run to its end, and checks that it is the only one, and its text the answer.
async fn ends_with_one(provider: &Responses, stack: &Stack, conversation: &str) {
    provider.release();
    let events = stack.ended(conversation, 1).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(data(&events, "assistant_message")[0]["content"], ANSWER);
    assert_eq!(provider.paid().len(), 1, "nothing is paid twice");
    assert_eq!(provider.cancelled(), [""; 0]);
}

#[tokio::test]
async fn a_worker_that_is_killed_costs_nothing_and_readers_see_no_restart() {
    let (provider, stack, worker, _gateway, conversation, reader) = half_way().await;
    worker.kill().await;
    let _next = stack.worker();
    provider.read_again(1).await;
    ends_with_one(&provider, &stack, &conversation).await;
    assert_eq!(provider.reads(), ["resp_1 after nothing"]);
    saw_no_restart(&reader.await.unwrap(), &[1, 2]);
}

#[tokio::test]
async fn a_worker_that_shuts_down_leaves_its_response_to_the_next() {
    let (provider, stack, worker, _gateway, conversation, reader) = half_way().await;
    worker.terminate().await;
    let _next = stack.worker();
    provider.read_again(1).await;
    ends_with_one(&provider, &stack, &conversation).await;
    saw_no_restart(&reader.await.unwrap(), &[1, 2]);
}

#[tokio::test]
async fn a_response_that_ended_without_a_reader_is_not_made_again() {
    let (provider, stack, worker, _gateway, conversation, reader) = half_way().await;
    worker.kill().await;
    provider.release();
    let _next = stack.worker();
    ends_with_one(&provider, &stack, &conversation).await;
    saw_no_restart(&reader.await.unwrap(), &[1, 2]);
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again_by_the_same_attempt() {
    let (provider, stack, _worker, _gateway, conversation, reader) = half_way().await;
    provider.cut();
    provider.read_again(1).await;
    ends_with_one(&provider, &stack, &conversation).await;
    assert_ne!(provider.reads(), ["resp_1 after nothing"], "it goes on");
    saw_no_restart(&reader.await.unwrap(), &[1]);
}

#[tokio::test]
async fn a_cancel_cancels_the_response_once() {
    let (provider, stack, _worker, _gateway, conversation, _reader) = half_way().await;
    stack.client().cancel(&conversation).await.unwrap();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(count(&events, "cancelled"), 1, "{events:#?}");
    assert_eq!(provider.cancelled(), ["resp_1"]);
    assert_eq!(data(&events, "assistant_message")[0]["content"], HALF);
}

#[tokio::test]
async fn a_response_that_is_gone_is_made_and_paid_again() {
    let (provider, stack, worker, _gateway, conversation, reader) = half_way().await;
    worker.kill().await;
    provider.forget();
    let _next = stack.worker();
    paid(&provider, 2).await;
    provider.release();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(data(&events, "assistant_message")[0]["content"], ANSWER);
    assert_eq!(provider.paid().len(), 2);
    stack.logged("worker", "gives no reply").await;
    reader.abort();
}

/// Only the provider knows the response, and not which request it is of.
#[tokio::test]
async fn a_response_whose_id_was_not_read_is_made_and_paid_again() {
    let provider = Responses::start(|number| match number {
        1 => answer().silent(),
        _ => answer(),
    });
    let provider = provider.await;
    let stack = stack(&provider).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    paid(&provider, 1).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(data(&events, "assistant_message")[0]["content"], ANSWER);
    assert_eq!(provider.paid().len(), 2);
    assert_eq!(provider.reads(), [""; 0]);
}

#[tokio::test]
async fn a_response_that_failed_is_made_again() {
    let provider = Responses::start(|number| match number {
        1 => answer().failing("server_error"),
        _ => answer(),
    });
    let provider = provider.await;
    let stack = stack(&provider).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), WHOLE_TURN);
    assert_eq!(data(&events, "assistant_message")[0]["content"], ANSWER);
    assert_eq!(provider.paid().len(), 2);
}

/// A summary is a plain call: the provider keeps none of it, and it does not have the name of the step's other call.
#[tokio::test]
async fn a_response_that_fails_because_the_context_is_too_long_is_followed_by_a_summary() {
    const SUMMARY: &str = "They asked a question before.";
    let provider = Responses::start(|number| match number {
        1 => Script::text(&"long ".repeat(2_000)),
        2 => Script::text("").failing("context_length_exceeded"),
        3 => Script::text(SUMMARY),
        _ => answer(),
    });
    let provider = provider.await;
    let stack = stack(&provider).await;
    let _running = stack.start().await;
    let (conversation, _) = stack.ask("A question.").await;
    stack.ended(&conversation, 1).await;
    let message = json!({"content": "And now?"});
    stack.send(&conversation, &message).await;
    let events = stack.ended(&conversation, 2).await;
    assert_eq!(
        data(&events, "assistant_message")[1]["content"],
        ANSWER,
        "{events:#?}"
    );
    assert_eq!(data(&events, "context_compacted")[0]["summary"], SUMMARY);
    let paid = provider.paid();
    let in_background: Vec<_> = paid.iter().map(|body| body["store"] == true).collect();
    assert_eq!(in_background, [true, true, false, true]);
}

/// The call is made again when a provider knows no background, and its text replaces the one that was cut.
#[tokio::test]
async fn a_plain_call_that_was_killed_begins_anew_on_every_screen() {
    let stack = Stack::new(Model::start(half_at_first).await).await;
    let (worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("hello").await;
    stack.asked(1).await;
    let reader = reader(&stack, &conversation);
    let is_first = |frame: &Frame| frame.event == "text_start";
    stack.frames_until(&conversation, 0, is_first).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    let whole = &data(&events, "assistant_message")[0]["content"];
    assert_eq!(whole, "This is the whole answer.");
    let frames = reader.await.unwrap();
    let last_start = frames.iter().rposition(|frame| frame.event == "text_start");
    let live = frames[last_start.unwrap()..].iter();
    let live: String = live
        .filter_map(|frame| frame.data["text"].as_str())
        .collect();
    assert_eq!(whole, &live, "nothing of the first try is left");
    assert_eq!(stack.model.requests().len(), 2);
}
