//! The chain of an agent's models: when one fails, the next one answers. Readers are told once, no worker that dies forgets
//! it, and what has failed is left alone for a while.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Json, Router,
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use everturn_tests::{
    events::{data, types},
    model::{CallUsage, Model, Reply},
    responses::{Responses, Script},
    stack::{Process, Stack},
    wait,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::embedded::health::Probes;

pub(crate) const ANSWER: &str = "The second model answers.";
const TURN: &str = "user_message model_fallback assistant_message complete";
/// What a call of the second model takes: 0.008 USD at [`PRICES`].
const EACH: CallUsage = CallUsage {
    input_tokens: 2000,
    output_tokens: 500,
    cached_tokens: 0,
    reasoning_tokens: 0,
};
const PRICES: &str = "[models.\"scripted/scripted\"]\ninput = 1000\noutput = 1000\n\
                      [models.\"second/other\"]\ninput = 1.5\noutput = 10\ncontext_window = 500_000\n";

/// A model that answers.
async fn second() -> Model {
    Model::start(|_| Reply::text(ANSWER).taking(EACH)).await
}

/// A stack whose agent has a chain: the stack's own model, and what `keys` say, with provider `second`.
async fn stack(first: Model, second_url: &str, kind: &str, keys: &str) -> Stack {
    with_patience("10m", first, second_url, kind, keys).await
}

/// The same stack, whose agent has this patience.
async fn with_patience(
    patience: &str,
    first: Model,
    second_url: &str,
    kind: &str,
    keys: &str,
) -> Stack {
    let agent = format!(
        "max_output_tokens = 1000\npatience = \"{patience}\"\n[agents.default.fallback]\n{keys}\n{PRICES}"
    );
    let stack = Stack::with_agent(first, &agent).await;
    stack.configure(&format!(
        "[providers.second]\nkind = \"{kind}\"\nbase_url = \"{second_url}\"\n"
    ));
    stack
}

pub(crate) async fn with_second(first: Model, second: &Model, keys: &str) -> Stack {
    let keys = format!("models = [\"second/other\"]\n{keys}");
    stack(first, &second.base_url(), "openai", &keys).await
}

fn asked(models: [&Model; 2]) -> [usize; 2] {
    models.map(|model| model.requests().len())
}

/// Asserts that the turn has gone on to the second model once, after a failure with this code.
pub(crate) fn fell_back(events: &[Value], code: &str) {
    assert_eq!(types(events), TURN, "{events:#?}");
    let fallback = data(events, "model_fallback")[0];
    let named = json!({"from": "scripted/scripted", "to": "second/other", "code": code, "step": 0});
    for (key, value) in named.as_object().unwrap() {
        assert_eq!(&fallback[key], value, "{fallback:#}");
    }
    let message = fallback["message"].as_str().unwrap();
    assert!(
        message.contains("`scripted`") || code == "llm_context_too_long",
        "{message}"
    );
    assert_eq!(data(events, "assistant_message")[0]["content"], ANSWER);
}

#[tokio::test]
async fn the_next_model_answers_after_a_refusal_and_the_first_one_is_left_alone() {
    let second = second().await;
    let first = Model::start(|_| Reply::error(503, "away")).await;
    let stack = with_second(first, &second, "").await;
    let _gateway = stack.gateway().await;
    let probes = Probes::free();
    let _worker = probes.spawn(&stack, &["worker"], &[]);
    let (conversation, _) = stack.ask("answer").await;
    let events = stack.ended(&conversation, 1).await;
    fell_back(&events, "llm_unavailable");
    assert_eq!(asked([&stack.model, &second]), [1, 1]);

    // The step is that of the model that has answered, and so is its price.
    let end = data(&events, "complete")[0];
    assert_eq!(end["cost_usd"], "0.008", "{end:#}");
    let execution = end["agent_execution_id"].as_str().unwrap();
    let path = format!("/conversations/{conversation}/executions/{execution}");
    let step = stack.get(&path).await["step_usage"][0].clone();
    assert_eq!([&step["model"], &step["cost_usd"]], ["other", "0.008"]);

    // Its circuit is open: another turn does not ask it, and is as cheap as any.
    let line = "everturn_model_circuits_open{provider=\"scripted\",model=\"scripted\"} 1\n";
    wait::until(line, || async {
        probes.text().await?.contains(line).then_some(())
    })
    .await;
    let (conversation, _) = stack.ask("again").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(asked([&stack.model, &second]), [1, 2]);
}

#[tokio::test]
async fn one_call_tries_a_model_that_was_left_alone() {
    let second = second().await;
    let is_back = Arc::new(AtomicBool::new(false));
    let first = Model::start({
        let is_back = Arc::clone(&is_back);
        move |_| {
            if is_back.load(Ordering::Relaxed) {
                Reply::text("I am back.")
            } else {
                Reply::error(503, "away")
            }
        }
    });
    let stack = with_second(first.await, &second, "").await;
    stack.configure("[worker]\ncircuit = \"0s\"\n");
    // Each worker remembers by itself which models it leaves alone.
    let _running = stack.start_with_one_worker().await;
    for (turn, expected) in [[1, 1], [2, 2]].into_iter().enumerate() {
        let (conversation, _) = stack.ask(&format!("turn {turn}")).await;
        fell_back(&stack.ended(&conversation, 1).await, "llm_unavailable");
        // The one call of the second turn was the trial.
        assert_eq!(asked([&stack.model, &second]), expected);
    }
    is_back.store(true, Ordering::Relaxed);
    let (conversation, _) = stack.ask("are you there?").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message assistant_message complete");
    assert_eq!(asked([&stack.model, &second]), [3, 2]);
}

#[tokio::test]
async fn a_context_that_is_too_long_goes_to_a_larger_window_at_once() {
    let second = second().await;
    let first = Model::start(|_| Reply::error(400, "context_length_exceeded")).await;
    let stack = with_second(first, &second, "").await;
    let (_worker, _gateway) = stack.start().await;
    for turn in 1..=2 {
        let (conversation, _) = stack.ask("answer").await;
        fell_back(&stack.ended(&conversation, 1).await, "llm_context_too_long");
        // That one context is too long says nothing about the next one.
        assert_eq!(asked([&stack.model, &second]), [turn, turn]);
    }
}

#[tokio::test]
async fn a_failure_that_is_not_listed_ends_the_turn() {
    let second = second().await;
    let first = Model::start(|_| Reply::error(400, "nonsense")).await;
    let stack = with_second(first, &second, "").await;
    let (_worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), "user_message error");
    assert_eq!(data(&events, "error")[0]["code"], "llm_bad_request");
    assert_eq!(asked([&stack.model, &second]), [1, 0]);
}

#[tokio::test]
async fn a_chain_that_is_exhausted_ends_with_the_last_failure() {
    let away = |code: &'static str, status| Model::start(move |_| Reply::error(status, code));
    let second = away("slow_down", 429).await;
    let first = away("away", 503).await;
    let models = "models = [\"second/other\", \"second/third\"]";
    let stack = with_patience("0s", first, &second.base_url(), "openai", models).await;
    let (_worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        types(&events),
        "user_message model_fallback model_fallback error"
    );
    assert_eq!(data(&events, "error")[0]["code"], "llm_overloaded");
    let told: Vec<_> = data(&events, "model_fallback")
        .iter()
        .map(|event| format!("{} {}", event["to"], event["code"]))
        .collect();
    let expected = [
        "\"second/other\" \"llm_unavailable\"",
        "\"second/third\" \"llm_overloaded\"",
    ];
    assert_eq!(told, expected);
    assert_eq!(asked([&stack.model, &second]), [1, 2]);
}

#[tokio::test]
async fn a_chain_waits_when_all_its_models_refuse() {
    let (first, second) = (
        Model::start(|_| Reply::error(503, "away")).await,
        Model::start(|request| match request.number {
            1..=3 => Reply::error(429, "slow_down"),
            _ => Reply::text(ANSWER).taking(EACH),
        })
        .await,
    );
    // One process, so that the frames reach the reader without Redis.
    let stack = with_second(first, &second, "").await.with_gateways(1);
    stack.configure("[worker]\ncircuit = \"0s\"\n");
    let _all = stack.all_in_one().await;
    let (conversation, frames) = stack.frames_of_turn("answer").await;
    fell_back(&stack.ended(&conversation, 1).await, "llm_unavailable");
    let waits = frames.iter().filter(|frame| frame.event == "model_waiting");
    let attempts: Vec<_> = waits.map(|wait| wait.data["attempt"].as_u64()).collect();
    assert_eq!(attempts, [Some(3), Some(5), Some(7)]);
    assert_eq!(asked([&stack.model, &second]), [4, 4]);
    let usage = stack.get_api("/api/v1/usage?by=agent").await;
    assert_eq!(usage["usage"][0]["calls"], 1, "{usage:#}");
}

#[tokio::test]
async fn a_chain_makes_no_more_calls_that_may_be_billed_than_one_model() {
    let away = || Model::start(|_| Reply::text("It begins well, ").cut());
    let second = away().await;
    let names: Vec<_> = (1..=5).map(|n| format!("\"second/m{n}\"")).collect();
    let keys = format!("models = [{}]", names.join(", "));
    let stack = stack(away().await, &second.base_url(), "openai", &keys).await;
    let (_worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(data(&events, "error")[0]["code"], "llm_stream_cut");
    assert_eq!(asked([&stack.model, &second]), [2, 4]);
}

/// The worker is killed at a place of the fallback, and another one goes on.
async fn killed_at(place: &str) -> (Stack, Model, Vec<Value>) {
    let second = second().await;
    let first = Model::start(|_| Reply::error(503, "away")).await;
    let stack = with_second(first, &second, "after = 1").await;
    let _gateway = stack.gateway().await;
    let worker: Process = stack.worker_stopping_at(place);
    let (conversation, _) = stack.ask("answer").await;
    stack.reached(place).await;
    worker.kill().await;
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    (stack, second, events)
}

#[tokio::test]
async fn a_worker_that_dies_before_the_note_has_told_nobody() {
    let (stack, second, events) = killed_at("think.before_fallback").await;
    fell_back(&events, "llm_unavailable");
    assert_eq!(asked([&stack.model, &second]), [2, 1]);
}

#[tokio::test]
async fn a_worker_that_dies_after_the_note_leaves_the_next_model_to_another() {
    let (stack, second, events) = killed_at("think.after_fallback").await;
    fell_back(&events, "llm_unavailable");
    assert_eq!(
        asked([&stack.model, &second]),
        [1, 1],
        "the first is not asked again"
    );
}

#[tokio::test]
async fn a_response_of_the_first_provider_is_read_from_no_other() {
    let second = Responses::start(|_| Script::text(ANSWER)).await;
    let failing = Responses::start(|_| Script::text("It will fail.").failing("server_error")).await;
    let stack = of_responses("", &failing, &second).await;
    let (_worker, _gateway) = stack.start().await;
    let (conversation, _) = stack.ask("answer").await;
    fell_back(&stack.ended(&conversation, 1).await, "llm_unavailable");
    assert_eq!([failing.paid().len(), second.paid().len()], [1, 1]);
    assert!(second.reads().is_empty(), "{:?}", second.reads());
}

/// A stack whose agent has these keys and thinks in the background, with two providers.
async fn of_responses(keys: &str, first: &Responses, second: &Responses) -> Stack {
    let unused = Model::start(|_| Reply::error(500, "not_this_one")).await;
    let url = unused.base_url();
    let agent = format!(
        "{keys}max_output_tokens = 1000\n[agents.default.fallback]\nmodels = [\"second/other\"]\nafter = 1\n{PRICES}"
    );
    let stack = Stack::with_agent(unused, &agent).await;
    let second = second.base_url();
    stack.configure(&format!(
        "[providers.second]\nkind = \"openai_responses\"\nbase_url = \"{second}\"\n"
    ));
    let path = stack.path("everturn.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replacen("kind = \"openai\"", "kind = \"openai_responses\"", 1);
    std::fs::write(&path, text.replace(&url, &first.base_url())).unwrap();
    stack
}

#[tokio::test]
async fn the_response_of_a_left_model_is_cancelled_though_its_worker_dies() {
    let second = Responses::start(|_| Script::text(ANSWER)).await;
    let slow = Responses::start(|_| Script::text("I take my time, and more.").held()).await;
    let keys = "llm_timeout = \"3s\"\nllm_total_timeout = \"4s\"\n";
    let stack = of_responses(keys, &slow, &second).await;
    let _gateway = stack.gateway().await;
    let worker = stack.worker_stopping_at("think.after_fallback");
    let (conversation, _) = stack.ask("answer").await;
    stack.reached("think.after_fallback").await;
    worker.kill().await;
    assert_eq!(slow.cancelled(), [""; 0]);
    let _next = stack.worker();
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(types(&events), TURN, "{events:#?}");
    assert_eq!(data(&events, "model_fallback")[0]["code"], "llm_timeout");
    assert_eq!(slow.cancelled(), ["resp_1"]);
    assert_eq!([slow.paid().len(), second.paid().len()], [1, 1]);
}

/// A model on Gemini's wire. It keeps the bodies of its requests, with the paths that name the models.
#[derive(Clone, Default)]
struct Gemini(Arc<Mutex<Vec<(String, Value)>>>);

impl Gemini {
    /// Starts it, and returns the base URL for `everturn.toml`. Model `one` asks for a tool and then fails, `two` answers.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = self.clone();
        let app = Router::new().fallback(move |uri: Uri, Json(body): Json<Value>| async move {
            let mut requests = seen.0.lock().unwrap();
            requests.push((uri.path().to_owned(), body));
            Self::answer(requests.len())
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://127.0.0.1:{port}/v1beta/")
    }

    fn answer(number: usize) -> Response {
        let call = json!({"name": "calculate", "args": {"expression": "21 * 2"}});
        let part = match number {
            1 => json!({"functionCall": call, "thoughtSignature": "c2ln"}),
            2 => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
            _ => json!({"text": ANSWER}),
        };
        let frame = json!({"candidates": [{
            "content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0,
        }]});
        let events = [("content-type", "text/event-stream")];
        (events, format!("data: {frame}\n\n")).into_response()
    }
}

#[tokio::test]
async fn the_signatures_of_a_model_stay_with_it() {
    let gemini = Gemini::default();
    let url = gemini.start().await;
    let unused = Model::start(|_| Reply::error(500, "not_this_one")).await;
    let stack = Stack::new(unused).await;
    stack.configure(&format!(
        "[providers.gemini]\nkind = \"gemini\"\nbase_url = \"{url}\"\n\
         [agents.gemini]\nprovider = \"gemini\"\nmodel = \"one\"\ntools = [\"calculate\"]\n\
         [agents.gemini.fallback]\nmodels = [\"gemini/two\"]\nafter = 1\n"
    ));
    let (_worker, _gateway) = stack.start().await;
    let client = stack.client();
    let conversation = client.create_conversation(Some("gemini")).await.unwrap();
    client.submit(&conversation, "answer", None).await.unwrap();
    let events = stack.ended(&conversation, 1).await;
    let expected = "user_message thought act observe model_fallback assistant_message complete";
    assert_eq!(types(&events), expected);
    let requests = gemini.0.lock().unwrap().clone();
    let sent: Vec<_> = requests
        .iter()
        .map(|(path, body)| {
            let model = path.rsplit('/').next().unwrap().split(':').next().unwrap();
            (model, body.to_string().contains("c2ln"))
        })
        .collect();
    assert_eq!(sent, [("one", false), ("one", true), ("two", false)]);
}
