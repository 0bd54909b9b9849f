//! Runs each tool on a thread of its own: one that blocks, or panics, is alone with that.
//!
//! Tools are other people's code. One that blocks the thread it is polled on, on a runtime with as many threads as
//! cores, would stop the heartbeats of everything the worker does; the engine would then give all of it to the next
//! worker, the blocking tool included.

use std::{panic::AssertUnwindSafe, sync::Arc, thread};

use everturn_proto::Json;
use futures::FutureExt;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, oneshot},
};
use tracing::Instrument;

use crate::tools::{Tool, ToolContext, ToolError, ToolOutput};

/// Threads that tools which never return may hold, beside those of the tools that run. A worker with more of them is
/// to be restarted; each costs little but its stack.
const MAX_STUCK: usize = 256;

/// The threads of a worker's tools.
pub struct ToolThreads {
    free: Arc<Semaphore>,
}

impl ToolThreads {
    /// Threads for `running` tools at once, and some for tools that never return.
    pub fn new(running: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(running.saturating_add(MAX_STUCK).min(Semaphore::MAX_PERMITS))) }
    }

    /// Runs a tool. Dropping this drops the tool's future, as soon as the tool lets go of its thread. A panic is a
    /// known failure, like any other error of a tool.
    pub(crate) async fn run(
        &self,
        tool: Arc<dyn Tool>,
        context: ToolContext,
        input: Json,
    ) -> Result<ToolOutput, ToolError> {
        let Ok(place) = Arc::clone(&self.free).try_acquire_owned() else {
            tracing::error!("too many tools of this worker never returned; restart it");
            return Err(not_started("too many tools of this worker never returned"));
        };
        let (mut sender, receiver) = oneshot::channel();
        let runtime = Handle::current();
        let span = tracing::Span::current();
        let run = move || {
            let _place = place;
            let ended = runtime.block_on(async {
                let run = AssertUnwindSafe(tool.run(context, input).instrument(span)).catch_unwind();
                tokio::select! {
                    ended = run => Some(ended),
                    () = sender.closed() => None,
                }
            });
            if let Some(ended) = ended {
                // Nobody waits any more when the attempt ended in the meantime.
                let _ = sender.send(ended.unwrap_or_else(|_| Err(broken())));
            }
        };
        if let Err(error) = thread::Builder::new().name("tool".to_owned()).spawn(run) {
            tracing::error!(%error, "no thread for a tool");
            return Err(not_started("the worker has no thread left"));
        }
        // A sender that is gone without a word: the tool panicked while it was dropped.
        receiver.await.unwrap_or_else(|_| Err(broken()))
    }
}

fn broken() -> ToolError {
    ToolError::Failed("The tool failed with an internal error.".to_owned())
}

fn not_started(reason: &str) -> ToolError {
    ToolError::Unavailable { message: format!("The tool was not started: {reason}."), retry_after: None }
}
