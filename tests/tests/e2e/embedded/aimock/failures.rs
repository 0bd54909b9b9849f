//! Every way in which a provider fails, on each wire: what ends the turn, and what is tried again.

use everturn_proto::words::FailureCode;
use everturn_tests::{
    aimock::Aimock,
    events::{data, types},
    model::{Model, Reply},
    stack::Stack,
};
use serde_json::{Value, json};

use super::{WIRES, tables};

/// What the model says when it does not fail. It comes in many pieces, so that it can be cut in its middle.
const ANSWER: &str =
    "Everything that was asked for is here, and it took no more than two calls of the model.";
/// How long the provider asks to wait: longer than the engine waits before its first retries.
const RETRY_AFTER_S: u64 = 4;

/// What a failure leads to.
enum Leads {
    /// The call is made again, once, and the turn completes.
    On,
    /// The same as [`Leads::On`], but the call is not made again before the provider wants it.
    OnAfter(u64),
    /// The turn ends with this code, after so many calls.
    ToEnd(FailureCode, usize),
}

/// A way to fail: its name, how the mock does it (fields of a fixture, by the kind of the provider), and what it leads to.
type Class = (&'static str, fn(&str) -> Value, Leads);

static CLASSES: [Class; 16] = [
    (
        "rate limit",
        |_| error(429, "rate"),
        Leads::OnAfter(RETRY_AFTER_S),
    ),
    ("unavailable", |_| error(503, "server_error"), Leads::On),
    ("gateway", |_| error(502, "server_error"), Leads::On),
    ("overloaded", |_| error(529, "overloaded_error"), Leads::On),
    ("dropped", |_| chaos("dropRate"), Leads::On),
    ("disconnected", |_| chaos("disconnectRate"), Leads::On),
    ("malformed", |_| chaos("malformedRate"), Leads::On),
    ("cut", |_| cut(), Leads::On),
    (
        "bad request",
        |_| error(400, "invalid_request_error"),
        Leads::ToEnd(FailureCode::LlmBadRequest, 1),
    ),
    (
        "no key",
        |_| error(401, "authentication_error"),
        Leads::ToEnd(FailureCode::LlmUnauthorized, 1),
    ),
    (
        "no right",
        |_| error(403, "permission_error"),
        Leads::ToEnd(FailureCode::LlmUnauthorized, 1),
    ),
    (
        "no model",
        |_| error(404, "not_found_error"),
        Leads::ToEnd(FailureCode::LlmNotFound, 1),
    ),
    (
        "too long",
        too_long,
        Leads::ToEnd(FailureCode::LlmContextTooLong, 1),
    ),
    (
        "no credit",
        no_credit,
        Leads::ToEnd(FailureCode::LlmQuotaExceeded, 1),
    ),
    (
        "policy",
        policy,
        Leads::ToEnd(FailureCode::LlmContentPolicy, 1),
    ),
    (
        "silent",
        |_| silent(),
        Leads::ToEnd(FailureCode::LlmTimeout, 2),
    ),
];

/// An error with this status, type and code.
fn error(status: u16, word: &str) -> Value {
    said(status, word, &format!("It says: {word}."))
}

/// An error with this status, type or code, and message.
fn said(status: u16, word: &str, message: &str) -> Value {
    let error = json!({"message": message, "type": word, "code": word});
    json!({"response": {"status": status, "error": error, "retryAfter": RETRY_AFTER_S}})
}

/// The context is too long, in the words of each provider.
fn too_long(kind: &str) -> Value {
    match kind {
        "openai" => said(
            400,
            "context_length_exceeded",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        ),
        "anthropic" => said(
            400,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ),
        _ => said(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
    }
}

/// The account has no credit, in the words of each provider. The mock cannot say Gemini's, which are in `details`.
fn no_credit(kind: &str) -> Value {
    match kind {
        "openai" => said(
            429,
            "insufficient_quota",
            "You exceeded your current quota.",
        ),
        "anthropic" => said(
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
        ),
        _ => said(402, "FAILED_PRECONDITION", "Enable billing."),
    }
}

/// The content policy forbids the request.
fn policy(kind: &str) -> Value {
    match kind {
        "openai" => said(
            400,
            "content_policy_violation",
            "It was rejected by the safety system.",
        ),
        _ => said(
            400,
            "invalid_request_error",
            "Blocked by our content filtering policy.",
        ),
    }
}

/// What the mock does instead of answering.
fn chaos(rate: &str) -> Value {
    json!({"response": {"content": ANSWER}, "chaos": {rate: 1}})
}

/// The connection breaks in the middle of the text.
fn cut() -> Value {
    json!({"response": {"content": ANSWER}, "chunkSize": 10, "latency": 10, "truncateAfterChunks": 5})
}

/// The answer does not come within the time that the agent gives it.
fn silent() -> Value {
    json!({"response": {"content": ANSWER}, "latency": 600_000})
}

/// What the user writes, by which the mock knows what to do.
fn question(name: &str, kind: &str) -> String {
    format!("Fail with `{name}` on {kind}.")
}

/// The fixtures of a class on a wire: what fails the first time, or whenever it is asked, and what answers then.
fn fixtures((name, fields, leads): &Class, kind: &str) -> Vec<Value> {
    let question = question(name, kind);
    let mut fails = fields(kind);
    fails["match"] = json!({"userMessage": question});
    match leads {
        Leads::ToEnd(..) => vec![fails],
        Leads::On | Leads::OnAfter(_) => {
            fails["match"]["sequenceIndex"] = json!(0);
            let good = json!({"match": {"userMessage": question, "sequenceIndex": 1}, "response": {"content": ANSWER}});
            vec![fails, good]
        }
    }
}

/// The requests to the mock that asked this.
fn asked<'a>(requests: &'a [Value], question: &str) -> Vec<&'a Value> {
    let asks = |request: &&Value| request["body"].to_string().contains(question);
    requests.iter().filter(asks).collect()
}

#[tokio::test]
async fn each_failure_leads_where_it_should_on_each_wire() {
    let wires = WIRES
        .iter()
        .flat_map(|(kind, _)| CLASSES.iter().flat_map(move |class| fixtures(class, kind)));
    let aimock = Aimock::answering(&json!({"fixtures": wires.collect::<Vec<_>>()})).await;
    let stack = Stack::new(Model::start(|_| Reply::error(500, "not this one")).await).await;
    for (kind, path) in WIRES {
        let hasty = format!(
            "[agents.{kind}_hasty]\nprovider = \"{kind}\"\nmodel = \"a-model\"\nllm_timeout = \"2s\""
        );
        stack.configure(&tables(kind, &aimock.base_url(path), &hasty));
    }
    let _running = stack.start().await;
    let client = stack.client();
    let mut turns = Vec::new();
    for (kind, _) in WIRES {
        for class in &CLASSES {
            let question = question(class.0, kind);
            let is_silent = matches!(class.2, Leads::ToEnd(FailureCode::LlmTimeout, _));
            let agent = format!("{kind}{}", if is_silent { "_hasty" } else { "" });
            let conversation = client.create_conversation(Some(&agent)).await.unwrap();
            client.submit(&conversation, &question, None).await.unwrap();
            turns.push((question, class, conversation));
        }
    }
    for (question, _, conversation) in &turns {
        stack.ended(conversation, 1).await;
        println!("{question}");
    }
    let requests = aimock.requests().await;
    for (question, (_, _, leads), conversation) in &turns {
        let events = stack.events(conversation).await;
        let asked = asked(&requests, question);
        let (end, calls) = match leads {
            Leads::On | Leads::OnAfter(_) => {
                let answer = data(&events, "assistant_message");
                assert_eq!(answer[0]["content"], ANSWER, "{question}: {events:#?}");
                ("user_message assistant_message complete", 2)
            }
            Leads::ToEnd(code, calls) => {
                let error = data(&events, "error");
                assert_eq!(error[0]["code"], code.as_str(), "{question}: {events:#?}");
                ("user_message error", *calls)
            }
        };
        assert_eq!(types(&events), end, "{question}: {events:#?}");
        assert_eq!(asked.len(), calls, "{question}");
        if let Leads::OnAfter(seconds) = leads {
            let [first, second] = [0, 1].map(|at| asked[at]["timestamp"].as_u64().unwrap());
            assert!(
                second - first >= seconds * 1000,
                "{question}: {first} and {second}"
            );
        }
    }
}
