//! The key of a provider, and the other headers that it is sent, with each kind of provider.

use std::{collections::HashMap, sync::Mutex};

use everturn_tests::model::{Model, Reply, Request, Wire};
use serde_json::json;

use super::{Secret, Watched};

/// What the model says, which must be where the secrets must not be.
const ANSWER: &str = "The parrot is well.";
/// The header that a proxy in front of a provider wants.
const PROXY_HEADER: &str = "x-proxy-authorization";

/// Kinds of providers, and the wires that they speak.
const KINDS: [(&str, Wire); 5] = [
    ("openai", Wire::OpenAi),
    ("openai_responses", Wire::Responses),
    ("azure", Wire::OpenAi),
    ("anthropic", Wire::Anthropic),
    ("gemini", Wire::Gemini),
];

/// What the user writes: the name of a case.
const CASES: [&str; 9] = [
    "plain",
    "refused",
    "bad",
    "long",
    "away",
    "limited",
    "broken",
    "malformed",
    "nonsense",
];

/// The failures of a case before the model answers, unless the first one ends the turn.
const FAILURES: usize = 2;

/// The secrets of a kind of providers: its key, and that of the proxy.
fn secrets_of(kind: &str) -> [Secret; 2] {
    ["KEY", "PROXY"].map(|name| Secret::new(&format!("{name}_{}", kind.to_uppercase())))
}

/// Repeats the secrets in every way in which a provider can, and then answers.
fn repeats(key: &str, token: &str, case: &str, tries: usize) -> Reply {
    let words = format!("neither the key {key} nor {token} of `Bearer {token}` is welcome");
    let good = Reply::text(ANSWER);
    let error = json!({"type": "error", "error": {"type": words, "code": words, "message": words}});
    // On every wire, something is where something else should be.
    let nonsense = json!({"type": "response.completed", "index": 0, "choices": words, "candidates": words, "delta": words,
        "response": {"status": words, "error": words}});
    match case {
        _ if tries > FAILURES => good,
        "refused" => Reply::error(401, &words).header("www-authenticate", &words),
        "bad" => Reply::error(400, &words),
        // The message is cut in the middle of a key.
        "long" => Reply::error(400, &format!("{}{key}", "x".repeat(475))),
        "away" => Reply::error(503, &words).header("retry-after-ms", "10"),
        "limited" => Reply::error(429, &words).header("retry-after-ms", "10"),
        "broken" => good.event(&error.to_string()),
        "malformed" => good.event(&format!("{{\"choices\": {words}")),
        "nonsense" => good.event(&nonsense.to_string()),
        _ => good,
    }
}

/// The provider and the agent of a kind.
fn tables(model: &Model, kind: &str, wire: Wire, [key, proxy]: &[Secret; 2]) -> String {
    format!(
        "[providers.{kind}]\nkind = \"{kind}\"\nbase_url = \"{}\"\napi_key_env = \"{}\"\n\
         headers_env = {{ {PROXY_HEADER} = \"{}\" }}\n\
         [agents.{kind}]\nprovider = \"{kind}\"\nmodel = \"{kind}\"\ninstructions = \"{kind}\"\n",
        model.base_url_of(wire),
        key.variable,
        proxy.variable,
    )
}

#[tokio::test]
async fn the_secrets_of_providers_stay_where_they_are() {
    let mut secrets = KINDS.map(|(kind, _)| secrets_of(kind));
    // Each secret is sent: a case of a provider that was sent none would show nothing.
    let sent: HashMap<_, _> = secrets
        .iter()
        .map(|[key, proxy]| (key.value.clone(), proxy.value.clone()))
        .collect();
    for [_, proxy] in &mut secrets {
        proxy.value = format!("Bearer {}", proxy.value);
    }
    let tries: Mutex<HashMap<(String, String), usize>> = Mutex::default();
    let model = Model::start(move |request: &Request| {
        let token = &sent[&request.key];
        assert_eq!(request.headers[PROXY_HEADER], format!("Bearer {token}"));
        let case = request.last("user");
        let mut tries = tries.lock().unwrap();
        let tries = tries
            .entry((request.key.clone(), case.clone()))
            .or_default();
        *tries += 1;
        repeats(&request.key, token, &case, *tries)
    })
    .await;
    let config: Vec<_> = KINDS
        .iter()
        .zip(&secrets)
        .map(|((kind, wire), secrets)| tables(&model, kind, *wire, secrets))
        .collect();
    let mut secrets: Vec<_> = secrets.into_iter().flatten().collect();
    let watched = Watched::start(model, &secrets, |stack| stack.configure(&config.concat())).await;

    let client = watched.stack.client();
    let mut conversations = Vec::new();
    for (kind, _) in KINDS {
        for case in CASES {
            let conversation = client.create_conversation(Some(kind)).await.unwrap();
            client.submit(&conversation, case, None).await.unwrap();
            conversations.push(conversation);
        }
    }
    for conversation in &conversations {
        watched.stack.ended(conversation, 1).await;
    }
    assert!(
        watched.stack.model.requests().len() > conversations.len(),
        "calls were made again"
    );
    for secret in &mut secrets {
        let value = secret.value.trim_start_matches("Bearer ");
        secret.value = value.to_owned();
    }
    watched.holds_none(&secrets, &conversations, ANSWER).await;
}
