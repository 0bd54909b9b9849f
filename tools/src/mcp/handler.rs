//! The notifications of a server: the progress of calls, lines of the server's log, and changed tools.

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
        ClientCapabilities, ClientConfig, Implementation, LoggingMessageNotificationParam,
        ProgressNotificationParam, ProgressToken, ProtocolVersion,
    },
    service::NotificationContext,
};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::progress::{Progress, ProgressStep, Reports};

/// The progress of each call in flight.
type Calls = HashMap<ProgressToken, Progress>;

/// Handles the notifications of a server. The client declares no capability, so a server may send no requests.
#[derive(Clone, Default)]
pub(super) struct Handler {
    calls: Arc<Mutex<Calls>>,
    tools_changed: Arc<Notify>,
}

impl Handler {
    /// Passes the progress of a call on to `progress`, for the lifetime of the returned value.
    pub(super) fn watch(&self, token: ProgressToken, progress: Progress) -> CallProgress<'_> {
        let reports = progress.follow();
        self.calls().insert(token.clone(), progress);
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
}

impl ClientHandler for Handler {
    async fn on_progress(
        &self,
        step: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Some(progress) = self.calls().get(&step.progress_token) {
            progress.step(ProgressStep {
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
        if let (Some(progress), 1) = (calls.values().next(), calls.len()) {
            let (level, message) = in_words(&line);
            progress.line(&level, &message);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.note_changed_tools();
    }

    fn get_info(&self) -> ClientConfig {
        let everturn = Implementation::new("everturn", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(ClientCapabilities::default(), everturn);
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
