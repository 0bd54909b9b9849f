//! The reading of replies from their bytes, without a network.

use everturn_stream::Part;
use futures::stream;
use reqwest::Body;
use serde_json::json;

use super::*;
use crate::{
    client::tests::{request, user},
    error::ModelError,
    port::{ModelReply, OfferedTool},
};

/// Reads a reply whose bytes arrive in these chunks. The model had the tools `weather` and `ping`.
pub(super) fn read<T: AsRef<[u8]>>(
    kind: ProviderKind,
    chunks: impl IntoIterator<Item = T>,
) -> Result<ModelReply, ModelError> {
    let mut request = request(vec![user("Hello")]);
    request.tools.push(OfferedTool {
        name: "ping".into(),
        description: "Pings.".into(),
        parameters: json!({"type": "object"}),
    });
    let exchange = Exchange {
        request: &request,
        reader: reader(kind),
        has_tags: Profile::of(kind, "x", &request.model).think_tags,
    };
    let chunks = chunks.into_iter().map(|chunk| chunk.as_ref().to_vec());
    let chunks: Vec<_> = chunks.map(Ok::<_, std::io::Error>).collect();
    let answer = axum::http::Response::new(Body::wrap_stream(stream::iter(chunks)));
    let mut heard = [String::new(), String::new()];
    let mut listener = |part: Part, piece: &str| heard[usize::from(part == Part::Text)] += piece;
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().unwrap();
    let reply = runtime.block_on(call::read(exchange, answer.into(), &mut listener));
    if let Ok(reply) = &reply {
        assert_eq!(heard, [&*reply.reasoning, &*reply.text]);
    }
    reply
}
