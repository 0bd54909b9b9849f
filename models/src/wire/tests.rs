//! Replies from bytes, without a network: the helpers that the tests of every wire share.

use std::{convert::Infallible, future::Future};

use axum::http;
use everturn_stream::Part;
use futures::stream;
use proptest::{prelude::*, sample::Index};
use reqwest::Response;
use serde_json::{Map, Value, json};

use super::{Exchange, call, reader};
use crate::{
    client::tests::{request, user},
    error::ModelError,
    port::{ModelReply, OfferedTool},
    profile::{Profile, ProfileSettings},
    provider::ProviderKind,
};

/// A field that no wire knows.
const NEW_FIELD: &str = r#""new_field":{"type":"x","a":[1,null]}"#;

/// A heard reply.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) deltas: Vec<(Part, String)>,
    pub(super) reply: Result<ModelReply, ModelError>,
}

/// Returns an answer whose body arrives in these pieces.
pub(crate) fn answer(header: Option<(&str, &str)>, pieces: &[&[u8]]) -> Response {
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| Ok::<_, Infallible>(piece.to_vec()))
        .collect();
    let mut answer = http::Response::builder();
    if let Some((name, value)) = header {
        answer = answer.header(name, value);
    }
    let body = reqwest::Body::wrap_stream(stream::iter(pieces));
    answer.body(body).unwrap().into()
}

/// Runs a future that waits for nothing but time.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(future)
}

/// Reads the reply of a wire from the pieces of a body.
pub(super) fn heard(kind: ProviderKind, pieces: &[&[u8]]) -> Heard {
    let answer = answer(None, pieces);
    let mut request = request(vec![user("Hello")]);
    request.tools.push(OfferedTool {
        name: "ping".into(),
        description: "Pings.".into(),
        parameters: json!({"type": "object"}),
    });
    let exchange = Exchange {
        request: &request,
        reader: reader(kind),
        has_tags: Profile::of(kind, "x", &request.model, ProfileSettings::default()).think_tags,
        advice: None,
    };
    let mut deltas = Vec::new();
    let mut listener = |part: Part, piece: &str| deltas.push((part, piece.to_owned()));
    let reply = block_on(call::read(exchange, answer, &mut listener));
    Heard { deltas, reply }
}

/// Reads a reply whose bytes arrive in these chunks. Readers hear the texts of a reply.
pub(super) fn read<T: AsRef<[u8]>>(
    kind: ProviderKind,
    chunks: impl IntoIterator<Item = T>,
) -> Result<ModelReply, ModelError> {
    let chunks: Vec<T> = chunks.into_iter().collect();
    let pieces: Vec<&[u8]> = chunks.iter().map(AsRef::as_ref).collect();
    let Heard { deltas, reply } = heard(kind, &pieces);
    if let Ok(reply) = &reply {
        let said = |part: Part| -> String {
            let of_part = deltas.iter().filter(|delta| delta.0 == part);
            of_part.map(|(_, piece)| &**piece).collect()
        };
        assert_eq!(
            [said(Part::Reasoning), said(Part::Text)],
            [&*reply.reasoning, &*reply.text]
        );
    }
    reply
}

/// The pieces of the first call that readers hear.
fn written(kind: ProviderKind, frames: &[Value]) -> Vec<String> {
    let body: Vec<String> = frames
        .iter()
        .map(|frame| format!("data: {frame}\n\n"))
        .collect();
    let pieces: Vec<&[u8]> = body.iter().map(String::as_bytes).collect();
    let heard = heard(kind, &pieces);
    assert!(heard.reply.is_ok(), "{:?}", heard.reply);
    let of_call = heard.deltas.into_iter();
    of_call
        .filter(|(part, _)| *part == Part::Call(0))
        .map(|(_, piece)| piece)
        .collect()
}

#[test]
fn readers_hear_the_arguments_of_a_call_on_each_wire() {
    let call = |function: Value| json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": function}]}}]});
    let chat = [
        call(json!({"name": "ping", "arguments": ""})),
        call(json!({"arguments": "{\"a\":"})),
        call(json!({"arguments": "1}"})),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let block = |piece: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}});
    let anthropic = [
        json!({"type": "message_start", "message": {}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "ping", "input": {}}}),
        block("{\"a\":"),
        block("1}"),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    for (kind, frames) in [
        (ProviderKind::OpenAi, &chat[..]),
        (ProviderKind::Anthropic, &anthropic),
    ] {
        assert_eq!(written(kind, frames), ["ping\n{\"a\":", "1}"], "{kind:?}");
    }
    let gemini = [json!({"candidates": [{"finishReason": "STOP",
        "content": {"parts": [{"functionCall": {"name": "ping", "args": {"a": 1}}}]}}]})];
    assert_eq!(written(ProviderKind::Gemini, &gemini), ["ping\n{\"a\":1}"]);
}

/// Divides bytes at any places.
pub(crate) fn split<'a>(bytes: &'a [u8], at: &[Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = at.iter().map(|at| at.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|at| &bytes[at[0]..at[1]]).collect()
}

/// Values with the fields and the words of a wire.
pub(crate) fn values(
    names: &'static [&'static str],
    words: &'static [&'static str],
) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => prop::sample::select(words).prop_map(Value::from),
        2 => (0_u64..4).prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let fields = prop::collection::hash_map(prop::sample::select(names), inner.clone(), 0..6);
        prop_oneof![
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
            4 => fields.prop_map(|fields| {
                let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect::<Map<_, _>>())
            }),
        ]
    })
}

/// The form of a stream: what servers and proxies change without changing the reply.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    is_named: bool,
    colon: &'static str,
    end: &'static str,
    has_new_fields: bool,
    /// Texts between the events.
    between: Vec<(Index, &'static str)>,
}

/// Every form of a stream. `events` are events of the wire that change nothing.
pub(crate) fn forms(events: &'static [&'static str]) -> impl Strategy<Value = Form> {
    let between = [
        ": ping\n\n",
        ":\n\n",
        "\n\n",
        "retry: 5\nid: 7\n\n",
        "data:\n\n",
    ];
    let between: Vec<&str> = between.iter().chain(events).copied().collect();
    let between = prop::collection::vec((any::<Index>(), prop::sample::select(between)), 0..6);
    let ends = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    let colons = prop::sample::select(vec![":", ": "]);
    (any::<bool>(), colons, ends, any::<bool>(), between).prop_map(
        |(is_named, colon, end, has_new_fields, between)| Form {
            is_named,
            colon,
            end,
            has_new_fields,
            between,
        },
    )
}

impl Form {
    /// Writes the frames as a stream. A frame is the text of a JSON object.
    pub(crate) fn write(&self, frames: &[String]) -> String {
        let mut events: Vec<String> = frames.iter().map(|frame| self.event(frame)).collect();
        for (at, text) in &self.between {
            events.insert(at.index(events.len() + 1), (*text).to_owned());
        }
        events.concat().replace('\n', self.end)
    }

    fn event(&self, frame: &str) -> String {
        let name = if self.is_named { "event: some\n" } else { "" };
        let data = match frame.strip_prefix('{') {
            Some(rest) if self.has_new_fields => format!("{{{NEW_FIELD},{rest}"),
            _ => frame.to_owned(),
        };
        format!("{name}data{}{data}\n\n", self.colon)
    }
}
