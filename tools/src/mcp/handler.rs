//! The notifications of a server: the progress of calls, lines of the server's log, and changed tools. The requests of a
//! server: questions to the person of a call.

#![expect(
    deprecated,
    reason = "the newest protocol plans to remove lines of logs, and servers send them"
)]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitRequestParams,
        ElicitResult, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability,
        Implementation, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
        ProtocolVersion, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::questions::{Dialog, METHOD, Questions};
use crate::progress::{Progress, ProgressStep, Reports};

/// The calls in flight.
type Calls = HashMap<ProgressToken, Call>;

/// A call in flight.
struct Call {
    progress: Progress,
    dialog: Dialog,
}

/// Handles the notifications and the questions of a server.
#[derive(Clone)]
pub(super) struct Handler {
    questions: Questions,
    calls: Arc<Mutex<Calls>>,
    tools_changed: Arc<Notify>,
}

impl Handler {
    pub(super) fn new(questions: Questions) -> Self {
        Self {
            questions,
            calls: Arc::default(),
            tools_changed: Arc::default(),
        }
    }

    /// Passes the progress of a call on to `progress`, and the server's questions to `dialog`, for the lifetime of the
    /// returned value.
    pub(super) fn watch(
        &self,
        token: ProgressToken,
        progress: Progress,
        dialog: Dialog,
    ) -> CallProgress<'_> {
        let reports = progress.follow();
        self.calls()
            .insert(token.clone(), Call { progress, dialog });
        CallProgress {
            handler: self,
            token,
            reports,
        }
    }

    /// Waits until the tools have changed.
    pub(super) async fn tools_changed(&self) {
        self.tools_changed.notified().await;
    }

    /// Records that the tools have changed.
    pub(super) fn note_changed_tools(&self) {
        self.tools_changed.notify_one();
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the result for a question. A question names no call, so a question belongs to a call only while the call is
    /// the only call in flight.
    fn reply(&self, request: Value) -> Value {
        let calls = self.calls();
        if let (Some(call), 1) = (calls.values().next(), calls.len()) {
            return call.dialog.reply(request);
        }
        tracing::warn!(
            calls = calls.len(),
            "an MCP server asked a person during several calls, and nobody knows which call asks; with \
             `max_concurrent_calls = 1` the person is asked"
        );
        json!({"action": "cancel"})
    }
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        step: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(call) = self.calls().get(&step.progress_token) {
            call.progress.step(ProgressStep {
                done: Some(step.progress),
                total: step.total,
                message: step.message.unwrap_or_default(),
            });
        }
    }

    /// A line of the log names no call, so a line belongs to a call only while the call is the only call in flight.
    async fn on_logging_message(
        &self,
        line: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let calls = self.calls();
        if let (Some(call), 1) = (calls.values().next(), calls.len()) {
            let (level, message) = in_words(&line);
            call.progress.line(&level, &message);
        }
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let result = self.reply(json!(request));
        serde_json::from_value(result)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Takes a question with a form that the library does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != METHOD || self.questions == Questions::None {
            let code = ErrorCode::METHOD_NOT_FOUND;
            return Err(ErrorData::new(code, request.method, None));
        }
        let result = self.reply(request.params.unwrap_or_default());
        Ok(CustomResult::new(result))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.note_changed_tools();
    }

    fn get_info(&self) -> ClientConfig {
        let everturn = Implementation::new("everturn", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        if self.questions != Questions::None {
            let elicitation = ElicitationCapability::new()
                .with_form(FormElicitationCapability::default())
                .with_url(UrlElicitationCapability::default());
            capabilities.elicitation = Some(elicitation);
        }
        let mut config = ClientConfig::new(capabilities, everturn);
        // The version is for `initialize`. The newer protocol has a version in each request.
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }
}

/// The progress of a call. Only the latest step is kept: a slow listener misses steps, and never delays the server.
pub(super) struct CallProgress<'a> {
    handler: &'a Handler,
    token: ProgressToken,
    reports: watch::Receiver<Reports>,
}

impl CallProgress<'_> {
    /// Waits until the server reports a step or a line. Cancel safe.
    pub(super) async fn next(&mut self) {
        // The handler keeps the sender for the lifetime of this value.
        let _changed = self.reports.changed().await;
    }
}

impl Drop for CallProgress<'_> {
    fn drop(&mut self) {
        self.handler.calls().remove(&self.token);
    }
}

/// Returns the level and the text of a line. A value other than a string is written as JSON.
fn in_words(line: &LoggingMessageNotificationParam) -> (String, String) {
    let level = serde_json::to_value(line.level).ok();
    let level = level.as_ref().and_then(Value::as_str).unwrap_or("info");
    let text = match &line.data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = match &line.logger {
        Some(logger) => format!("{logger}: {text}"),
        None => text,
    };
    (level.to_owned(), text)
}
