//! The answer of a waiting call: one JSON document, or a stream with the progress and then the answer.

use std::time::Duration;

use axum::{
    Json,
    body::Bytes,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::stream;
use rmcp::model::{ErrorCode, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    era::Era,
    result,
    rpc::{RpcError, notification, result_message},
    task_id::TaskId,
    waiting::{Step, Waiting},
};
use crate::{
    http::{
        event_stream,
        problem::{Code, Problem},
        state::GatewayState,
    },
    live::sse,
};

/// A waiting call with the form of its answer.
pub(super) struct Answering {
    pub(super) waiting: Waiting,
    pub(super) era: Era,
    pub(super) id: RequestId,
    /// The client's token for progress, if the client wants progress.
    pub(super) token: Option<Value>,
    /// The metadata of the result.
    pub(super) meta: Option<Value>,
    /// The number of the last event.
    pub(super) count: u32,
}

/// The position of a stream, as an opaque text for clients. A client whose stream was cut shows the last position, and
/// any gateway goes on.
#[derive(Serialize, Deserialize)]
pub(super) struct Position {
    #[serde(rename = "t")]
    task: String,
    #[serde(rename = "i")]
    pub(super) id: RequestId,
    #[serde(rename = "p")]
    pub(super) token: Option<Value>,
    #[serde(rename = "n")]
    pub(super) count: u32,
}

impl Position {
    /// Reads a position; `None` for a text that is no position.
    pub(super) fn parse(text: &str) -> Option<(Self, TaskId)> {
        let position: Self = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        let task = TaskId::parse(&position.task)?;
        Some((position, task))
    }
}

impl Answering {
    /// Answers in the form that the client takes.
    pub(super) async fn answer(
        self,
        state: &GatewayState,
        headers: &HeaderMap,
    ) -> Result<Response, Problem> {
        let mut accepted = headers.get_all(header::ACCEPT).iter();
        let is_stream = |value: &HeaderValue| {
            value
                .to_str()
                .is_ok_and(|value| value.contains("text/event-stream"))
        };
        if accepted.any(is_stream) {
            return Ok(self.stream(state.config.heartbeat, state.config.retry_delay()));
        }
        self.document().await
    }

    /// Answers with one document after the end of the turn.
    async fn document(mut self) -> Result<Response, Problem> {
        loop {
            let result = match self.waiting.next().await {
                Step::Progress(_) => continue,
                Step::Ended(state) => self.result(&state),
                Step::Late => Some(result::still_running(&self.waiting.task)),
                Step::Refused(problem) => return Err(problem),
                Step::Stopping => {
                    let detail = "Send the call again with the same idempotency key; another gateway will answer.";
                    return Err(Problem::new(Code::ShuttingDown, detail).retry_after_s(1));
                }
            };
            let result = self.completed(result.unwrap_or_default());
            return Ok(Json(result_message(&self.id, &result)).into_response());
        }
    }

    /// Answers with a stream. `retry` is the time after which a client continues a cut stream.
    pub(super) fn stream(self, heartbeat: Duration, retry: Duration) -> Response {
        // The specification of 2025-11-25 begins a stream with an id and without data.
        let first = self.era.begins_with_an_id().then(|| {
            let (position, retry) = (self.position(), retry.as_millis());
            format!("id: {position}\nretry: {retry}\ndata:\n\n")
        });
        let chunks = stream::unfold(Some((self, first)), move |state| async move {
            let (mut answering, first) = state?;
            if let Some(first) = first {
                return Some((first, Some((answering, None))));
            }
            let (chunk, is_last) = answering.chunk(heartbeat).await?;
            Some((chunk, (!is_last).then_some((answering, None))))
        });
        event_stream::response(futures::StreamExt::map(chunks, Bytes::from))
    }

    /// Waits for the next text of the stream; true with the last text. `None` cuts the stream, and the client continues or
    /// repeats the call.
    async fn chunk(&mut self, heartbeat: Duration) -> Option<(String, bool)> {
        loop {
            let step = match timeout(heartbeat, self.waiting.next()).await {
                Ok(step) => step,
                Err(_elapsed) => return Some((self.still_here(), false)),
            };
            let message = match step {
                Step::Progress(text) => match self.progress(&text) {
                    Some(progress) => return Some((progress, false)),
                    None => continue,
                },
                Step::Ended(state) => {
                    let result = self.result(&state).unwrap_or_default();
                    result_message(&self.id, &self.completed(result))
                }
                Step::Late => {
                    let result = result::still_running(&self.waiting.task);
                    result_message(&self.id, &self.completed(result))
                }
                Step::Refused(problem) => of_problem(&problem).message(Some(&self.id)),
                Step::Stopping => return None,
            };
            return Some((self.event(&message), true));
        }
    }

    fn result(&self, state: &everturn_store::TurnState) -> Option<Value> {
        result::of_turn(&self.waiting.task, state)
    }

    fn completed(&self, mut result: Value) -> Value {
        if let Some(meta) = &self.meta {
            result["_meta"] = meta.clone();
        }
        self.era.completed(result)
    }

    /// Returns a sign of life. A client with a token gets progress, because clients with a time limit for silence count
    /// only progress.
    fn still_here(&mut self) -> String {
        let progress = self.progress("The agent works.");
        progress.unwrap_or_else(|| sse::HEARTBEAT.to_owned())
    }

    fn progress(&mut self, text: &str) -> Option<String> {
        let token = self.token.clone()?;
        let count = self.count.saturating_add(1);
        let params = json!({"progressToken": token, "progress": count, "message": text});
        Some(self.event(&notification("notifications/progress", &params)))
    }

    fn event(&mut self, message: &Value) -> String {
        self.count = self.count.saturating_add(1);
        let id = if self.era.can_continue() {
            format!("id: {}\n", self.position())
        } else {
            String::new()
        };
        format!("{id}event: message\ndata: {message}\n\n")
    }

    fn position(&self) -> String {
        let position = Position {
            task: self.waiting.task.to_string(),
            id: self.id.clone(),
            token: self.token.clone(),
            count: self.count,
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&position).unwrap_or_default())
    }
}

/// Makes the error of a problem, with the problem's code.
pub(super) fn of_problem(problem: &Problem) -> RpcError {
    let mut error = RpcError::new(ErrorCode(-32000), problem.detail());
    error.data = Some(json!({"code": problem.code().as_str()}));
    error
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_position_or_is_refused(
            text in "\\PC{0,60}",
            json in r#"\{("[tipnx]":("[a-z@/]{0,6}"|[0-9-]{1,4}|null|\{\}),?){0,4}\}"#,
        ) {
            for text in [text, URL_SAFE_NO_PAD.encode(json)] {
                if let Some((position, task)) = Position::parse(&text) {
                    prop_assert_eq!(position.task, task.to_string());
                }
            }
        }
    }
}
