//! Secrets are nowhere but in the requests to whom they are for: not in the database, in Redis, in histories, logs, streams,
//! answers of the gateway or metrics, whatever their receiver makes of them.

mod oauth;
mod providers;
mod tools;

use std::fs;

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_proto::ids;
use everturn_tests::{
    model::Model,
    redis::Watch,
    stack::{Process, Stack},
};
use futures::{StreamExt, stream};
use serde_json::Value;

use crate::embedded::health::Probes;

/// Bytes of a secret that are enough to know it by: at its beginning, and at its end.
const KNOWN_BY: usize = 12;

/// Conversations whose places are read at the same time.
const AT_ONCE: usize = 4;

/// Secrets of one purpose: the variable that holds it, and its value, which looks like no other text.
struct Secret {
    variable: String,
    value: String,
}

impl Secret {
    fn new(variable: &str) -> Self {
        Self {
            variable: variable.to_owned(),
            value: format!("{}/{}", &random()[..20], &random()[..20]),
        }
    }

    /// The texts that hold the secret or a part of it: as it is, and its bytes as histories and databases write them.
    fn forms(&self) -> Vec<String> {
        let last = self.value.len() - KNOWN_BY;
        let parts = [&self.value[..KNOWN_BY], &self.value[last..]];
        let forms = parts.into_iter().flat_map(|part| {
            let bytes = part.bytes().map(|byte| format!("{byte:02x}"));
            // Base64 of a longer text depends on where in it the part begins.
            let shifted = (0..3).map(|start| {
                let whole = (part.len() - start) / 3 * 3;
                STANDARD.encode(&part[start..start + whole])
            });
            let plain = [part.to_owned(), bytes.collect::<Vec<_>>().concat()];
            plain.into_iter().chain(shifted)
        });
        forms.collect()
    }
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// A stack whose processes log all that they have to say, with one gateway and one worker.
struct Watched {
    stack: Stack,
    probes: [Probes; 2],
    redis: Watch,
    _processes: [Process; 2],
}

impl Watched {
    /// Starts the processes, which have these secrets. `configure` adds to the configuration.
    async fn start(model: Model, secrets: &[Secret], configure: impl FnOnce(&Stack)) -> Self {
        let stack = Stack::breakable(model).await.with_gateways(1);
        configure(&stack);
        let redis = stack.redis().watch().await.unwrap();
        let own = secrets
            .iter()
            .map(|secret| (secret.variable.as_str(), secret.value.as_str()));
        let environment: Vec<_> = own.chain([("EVERTURN_LOG", "debug")]).collect();
        let probes = [Probes::free(), Probes::free()];
        let listen = format!("127.0.0.1:{}", stack.gateway_port(0));
        let gateway = ["gateway", "--listen", &listen];
        let processes = [
            probes[0].spawn(&stack, &gateway, &environment),
            probes[1].spawn(&stack, &["worker"], &environment),
        ];
        for probes in &probes {
            probes.says("/readyz", 200).await;
        }
        Self {
            stack,
            probes,
            redis,
            _processes: processes,
        }
    }

    /// Searches every place for the secrets. Each place has what was said in the turns of the conversations, `said`, somewhere.
    async fn holds_none(&self, secrets: &[Secret], conversations: &[String], said: &str) {
        let seen = stream::iter(conversations).map(|conversation| seen(&self.stack, conversation));
        let mut places = seen.buffered(AT_ONCE).concat().await;
        let of_turns = places.iter().filter(|(_, text)| text.contains(said));
        assert!(of_turns.count() >= 4, "the places are those of the turns");
        let database = self.stack.dump().await;
        assert!(database.contains(said));
        places.push(("the database".to_owned(), database));
        for log in ["worker", "gateway"] {
            let text = fs::read_to_string(self.stack.path(&format!("{log}.log"))).unwrap();
            assert!(text.len() > 1000, "it has been logged");
            places.push((format!("the log of the {log}"), text));
        }
        for probes in &self.probes {
            places.push(("metrics".to_owned(), probes.text().await.unwrap()));
        }
        let told = self.redis.text();
        assert!(told.contains("\"APPEND\" \""), "texts go through it");
        places.push(("what Redis was told".to_owned(), told));
        let kept = self.stack.redis().dump().await.unwrap();
        places.push(("what Redis keeps".to_owned(), kept));
        for secret in secrets {
            for (place, text) in &places {
                assert_without(secret, place, text);
            }
        }
    }
}

fn assert_without(secret: &Secret, place: &str, text: &str) {
    for form in secret.forms() {
        let found = text.find(&form);
        let around = found.map(|at| {
            let before = text[..at].chars().rev().take(300).collect::<String>();
            before.chars().rev().collect::<String>()
        });
        assert_eq!(around, None, "{} is in {place}", secret.variable);
    }
}

/// The text of a history, and what its payloads hold.
fn decoded(value: &Value, text: &mut String) {
    match value {
        Value::String(word) => {
            let payload = STANDARD.decode(word).unwrap_or_default();
            text.push_str(word);
            text.push_str(&String::from_utf8_lossy(&payload));
        }
        Value::Array(values) => values.iter().for_each(|value| decoded(value, text)),
        Value::Object(fields) => fields.values().for_each(|value| decoded(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Everything that is seen of a conversation: pages of the gateway, its events, its stream and its history.
async fn seen(stack: &Stack, conversation: &str) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    for page in [
        "",
        "/events",
        "/messages",
        "/execution-status",
        "/executions",
    ] {
        let path = format!("/conversations/{conversation}{page}");
        seen.push((path.clone(), stack.get(&path).await.to_string()));
    }
    let is_end = |frame: &everturn_client::Frame| {
        let text = format!("{frame:?}");
        text.contains("complete") || text.contains("\"error\"")
    };
    let frames = stack.frames_until(conversation, 0, is_end).await;
    seen.push(("the stream".to_owned(), format!("{frames:?}")));
    let workflow = ids::workflow_id(conversation);
    let mut history = String::new();
    decoded(&stack.temporal.history(&workflow).await, &mut history);
    assert!(history.contains(conversation), "payloads are read");
    seen.push(("the history".to_owned(), history));
    let described = stack.temporal.describe(&workflow).await.to_string();
    seen.push(("its state".to_owned(), described));
    seen
}
