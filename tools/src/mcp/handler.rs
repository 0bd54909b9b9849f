//! The notifications of a server: the progress of calls, and changed tools.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
        ProtocolVersion,
    },
    service::NotificationContext,
};
use tokio::sync::{Notify, watch};

type Calls = HashMap<ProgressToken, watch::Sender<Option<ProgressNotificationParam>>>;

/// Handles the notifications of a server. The client declares no capability, so a server may send no requests.
#[derive(Clone, Default)]
pub(super) struct Handler {
    calls: Arc<Mutex<Calls>>,
    tools_changed: Arc<Notify>,
}

impl Handler {
    /// Follows the progress of a call, for the lifetime of the returned value.
    pub(super) fn watch(&self, token: ProgressToken) -> CallProgress<'_> {
        let (sender, steps) = watch::channel(None);
        self.calls().insert(token.clone(), sender);
        CallProgress {
            handler: self,
            token,
            steps,
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
        if let Some(call) = self.calls().get(&step.progress_token) {
            call.send_replace(Some(step));
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
    steps: watch::Receiver<Option<ProgressNotificationParam>>,
}

impl CallProgress<'_> {
    /// Returns the next step in a few words: `3/10 copying`.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.steps.changed().await.ok()?;
        self.steps.borrow_and_update().as_ref().map(in_words)
    }
}

impl Drop for CallProgress<'_> {
    fn drop(&mut self) {
        self.handler.calls().remove(&self.token);
    }
}

fn in_words(step: &ProgressNotificationParam) -> String {
    let total = step
        .total
        .map(|total| format!("/{total}"))
        .unwrap_or_default();
    let message = step
        .message
        .as_ref()
        .map(|message| format!(" {message}"))
        .unwrap_or_default();
    format!("{}{total}{message}", step.progress)
}
