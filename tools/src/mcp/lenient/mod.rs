//! Reads the messages of servers as servers really send them: repairs JSON that is almost JSON, and fields that almost have
//! their type.
//!
//! - `flaws`: what was repaired in a message
//! - `text`: the repair of JSON
//! - `shape`: the repair of fields
//! - `id`: the id of an answer that is too large to be kept
//!
//! Pure. A repair never guesses at a meaning: the rest of a broken part is kept, or the part is left out with a flaw, which the
//! caller logs.

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

/// A message of a server.
pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// A message, and what was wrong with its text.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) message: Message,
    /// Empty for an exact message.
    pub(super) flaws: Flaws,
}

/// Reads a message. Returns `None` for a text that is no message of JSON-RPC.
///
/// A message that stays unreadable becomes an error of its request when its id can be found, so that the request does not
/// wait for ever.
pub(super) fn read(text: &str) -> Option<Reading> {
    if let Ok(message) = serde_json::from_str::<Message>(text)
        && !is_suspect(&message)
    {
        let flaws = Flaws::default();
        return Some(Reading { message, flaws });
    }
    let mut flaws = Flaws::default();
    let mut value = text::read(text, &mut flaws)?;
    shape::mend(&mut value, &mut flaws);
    let message = match Message::deserialize(&value) {
        Ok(message) if has_bare_result(&message) => {
            let id = shape::id_of_answer(&value)?;
            flaws.note("the result is no object");
            unreadable(id, "the result of the server is no object")
        }
        Ok(message) => message,
        Err(why) => {
            let id = shape::id_of_answer(&value)?;
            flaws.note(format!("the answer is no message of JSON-RPC: {why}"));
            unreadable(id, "the answer of the server cannot be read")
        }
    };
    Some(Reading { message, flaws })
}

/// True for a result that has the fields of a known result, but not its types. rmcp reads such a result as custom.
fn is_suspect(message: &Message) -> bool {
    let has = |result: &Value, field: &str| result.get(field).is_some();
    let fields = ["tools", "content", "structuredContent"];
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

/// Logs the flaws of a message.
pub(super) fn warn(server: &str, flaws: &Flaws) {
    tracing::warn!(server, %flaws, "a message of an MCP server is not exact, and was repaired");
}

/// Makes the error of a request with an unreadable answer.
pub(super) fn unreadable(id: RequestId, why: &str) -> Message {
    let error = ErrorData::new(UNREADABLE, why.to_owned(), None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
}

/// The code of an error that stands for an unreadable answer. No server of the protocol sends the code.
pub(super) const UNREADABLE: ErrorCode = ErrorCode(i32::MIN);
