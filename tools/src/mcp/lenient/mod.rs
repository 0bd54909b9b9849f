//! Reads the messages of servers as servers really send them: repairs JSON that is almost JSON, and fields that almost have
//! their type.
//!
//! - `flaws`: what was repaired in a message
//! - `text`: the repair of JSON
//! - `shape`: the repair of fields; `block`: the repair of a result's content; `field`: single fields
//! - `id`: the id of an answer that is too large to be kept, or that is no JSON
//!
//! Pure. A repair never guesses at a meaning: the rest of a broken part is kept, or the part is left out with a flaw, which the
//! caller logs.

mod block;
mod field;
mod flaws;
mod id;
mod shape;
mod text;

pub(super) use flaws::Flaws;
pub(super) use id::IdFinder;
use rmcp::{
    RoleClient,
    model::{ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage, RequestId, ServerResult},
    service::RxJsonRpcMessage,
};
use serde::Deserialize as _;
use serde_json::Value;

/// The most bytes that are skipped of a message over the limit, in limits, to find the message's id and end.
pub(super) const MAX_SKIPPED: usize = 64;

/// A message of a server.
pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// The messages in a text, and what was wrong with the text.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// In the order of the text: a batch has several messages.
    pub(super) messages: Vec<Message>,
    /// Empty for exact messages.
    pub(super) flaws: Flaws,
}

/// Reads the messages in a text: one message, or a batch, or messages with other text around them.
///
/// A message that stays unreadable becomes an error of its request when its id can be found, so that the request does not
/// wait for ever.
pub(super) fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    if let Ok(message) = serde_json::from_str::<Message>(text)
        && !is_suspect(&message)
    {
        reading.messages.push(message);
        return reading;
    }
    let found = text::read(text, &mut reading.flaws);
    for mut value in found.messages {
        shape::mend(&mut value, &mut reading.flaws);
        let message = typed(&value, &mut reading.flaws);
        reading.messages.extend(message);
    }
    if let Some(id) = found.broken.and_then(id::id_in) {
        reading.flaws.note("the answer is no JSON");
        let error = unreadable(id, "the answer of the server is no JSON");
        reading.messages.push(error);
    }
    reading
}

/// Returns a message of JSON, or the error of its request.
fn typed(value: &Value, flaws: &mut Flaws) -> Option<Message> {
    match Message::deserialize(value) {
        Ok(message) if has_bare_result(&message) => {
            let id = shape::id_of_answer(value)?;
            flaws.note("the result is no object");
            Some(unreadable(id, "the result of the server is no object"))
        }
        Ok(message) => Some(message),
        Err(why) => {
            let id = shape::id_of_answer(value)?;
            flaws.note(format!("the answer is no message of JSON-RPC: {why}"));
            Some(unreadable(id, "the answer of the server cannot be read"))
        }
    }
}

/// True for a result that has the fields of a known result, but not its types. rmcp reads such a result as custom.
fn is_suspect(message: &Message) -> bool {
    let has = |result: &Value, field: &str| result.get(field).is_some();
    let fields = ["tools", "content", "structuredContent", "protocolVersion"];
    custom_result(message)
        .is_some_and(|result| !result.is_object() || fields.iter().any(|field| has(result, field)))
}

fn has_bare_result(message: &Message) -> bool {
    custom_result(message).is_some_and(|result| !result.is_object())
}

fn custom_result(message: &Message) -> Option<&Value> {
    match message {
        JsonRpcMessage::Response(response) => match &response.result {
            ServerResult::CustomResult(custom) => Some(&custom.0),
            _ => None,
        },
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => {
            None
        }
    }
}

/// Logs the flaws of a message, if there are any.
pub(super) fn warn(server: &str, flaws: &Flaws) {
    if flaws.is_empty() {
        return;
    }
    tracing::warn!(server, %flaws, "a message of an MCP server is not exact, and was repaired");
}

/// Makes the error of a request with an unreadable answer.
pub(super) fn unreadable(id: RequestId, why: &str) -> Message {
    let error = ErrorData::new(UNREADABLE, why.to_owned(), None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
}

/// The code of an error that stands for an unreadable answer. No server of the protocol sends the code.
pub(super) const UNREADABLE: ErrorCode = ErrorCode(i32::MIN);
