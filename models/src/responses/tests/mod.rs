//! The client against a server that answers what a test wrote, byte by byte.

mod background;
mod errors;
mod files;
mod forms;
mod hostile;
mod replies;
mod wire;

use std::time::Duration;

use everturn_proto::words::FailureCode;
use everturn_stream::Part;
use serde_json::{Value, json};

use super::*;
use crate::{
    client::tests::{
        KEY, request,
        server::{Script, Server},
        user,
    },
    provider::{Provider, ProviderKind},
};

/// What a listener has heard, in its order.
#[derive(Debug, Clone, PartialEq)]
enum Heard {
    Accepted(String),
    MadeAgain,
    Delta(Part, String),
}

#[derive(Default)]
struct Recorder {
    heard: Vec<Heard>,
    refuses: bool,
}

#[async_trait]
impl ReplyListener for Recorder {
    async fn accepted(&mut self, response_id: &str) -> Result<(), ModelError> {
        self.heard.push(Heard::Accepted(response_id.to_owned()));
        if self.refuses {
            return Err(ModelError::new(FailureCode::LlmUnavailable, "not noted"));
        }
        Ok(())
    }

    async fn made_again(&mut self) -> Result<(), ModelError> {
        self.heard.push(Heard::MadeAgain);
        if self.refuses {
            return Err(ModelError::new(FailureCode::LlmRateLimited, "not now"));
        }
        Ok(())
    }

    fn delta(&mut self, part: Part, piece: &str) {
        self.heard.push(Heard::Delta(part, piece.to_owned()));
    }
}

fn client(base_url: String, background: bool) -> ResponsesClient {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let provider = Provider {
        base_url: Some(base_url),
        api_key: Some(KEY.to_owned()),
        background,
        ..Provider::new(ProviderKind::OpenAiResponses)
    };
    let providers = [("p".to_owned(), provider)].into();
    ResponsesClient::new(&providers).unwrap()
}

/// The answer to a call, what the listener has heard, and the requests.
struct Asked {
    reply: Result<ModelReply, ModelError>,
    heard: Vec<Heard>,
    seen: Vec<(String, Value)>,
}

async fn ask(background: bool, scripts: impl IntoIterator<Item = Script>) -> Asked {
    ask_for(background, hello(), scripts).await
}

async fn ask_for(
    background: bool,
    request: ModelRequest,
    scripts: impl IntoIterator<Item = Script>,
) -> Asked {
    let server = Server::start(scripts).await;
    let client = client(server.base_url(), background);
    let mut recorder = Recorder::default();
    let reply = client.complete(request, &mut recorder).await;
    let seen = server.seen().into_iter();
    Asked {
        reply,
        heard: recorder.heard,
        seen: seen.map(|seen| (seen.path, seen.body)).collect(),
    }
}

fn hello() -> ModelRequest {
    ModelRequest {
        idempotency_key: "call-1".into(),
        ..request(vec![user("Hello")])
    }
}

/// The request of an attempt that goes on with this response.
fn attached(id: &str) -> ModelRequest {
    ModelRequest {
        attached: Some(id.to_owned()),
        ..hello()
    }
}

/// Events with their numbers, from this one on.
fn numbered(from: u64, events: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let number = |(at, mut event): (u64, Value)| {
        event["sequence_number"] = json!(at);
        event
    };
    (from..).zip(events).map(number).collect()
}

fn created() -> Value {
    json!({"type": "response.created", "response": {"id": "resp_1", "status": "queued"}})
}

fn delta(text: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "content": [{"type": "output_text", "text": text}]})
}

fn response(status: &str, output: &[Value]) -> Value {
    json!({"id": "resp_1", "status": status, "output": output, "usage": {
        "input_tokens": 120, "input_tokens_details": {"cached_tokens": 100},
        "output_tokens": 34, "output_tokens_details": {"reasoning_tokens": 30},
    }})
}

fn completed(output: &[Value]) -> Value {
    json!({"type": "response.completed", "response": response("completed", output)})
}

fn said(text: &str) -> Heard {
    Heard::Delta(Part::Text, text.to_owned())
}

fn accepted() -> Heard {
    Heard::Accepted("resp_1".to_owned())
}
