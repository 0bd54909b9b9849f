//! Runs each tool on a separate thread, so that a blocking or panicking tool stops no other work.
//!
//! Tools are other people's code. On the worker's runtime, which has as many threads as cores, a few blocking tools
//! would stop the heartbeats of the worker's activities. The engine would then give the activities to the next worker,
//! and with them the blocking tools.

use std::{panic::AssertUnwindSafe, sync::Arc, thread};

use everturn_proto::Json;
use everturn_telemetry::trace;
use everturn_tools::{Tool, ToolContext, ToolError};
use futures::FutureExt;
use tokio::{
    runtime::Handle,
    sync::{Semaphore, oneshot},
};
use tracing::Instrument;

/// The most threads for tools that never return, in addition to the threads of running tools. A worker with more of
/// them needs a restart; a thread costs little except its stack.
const MAX_STUCK: usize = 256;

/// The threads of a worker's tools. Clones share them.
#[derive(Clone)]
pub struct ToolThreads {
    free: Arc<Semaphore>,
}

impl ToolThreads {
    /// Makes threads for `running` parallel tools, and some for tools that never return.
    pub fn new(running: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(
                running
                    .saturating_add(MAX_STUCK)
                    .min(Semaphore::MAX_PERMITS),
            )),
        }
    }

    /// Runs a tool. Dropping the future drops the tool's future, as soon as the tool yields its thread. A panic is a
    /// known failure, like any other error of a tool.
    pub async fn run(
        &self,
        tool: Arc<dyn Tool>,
        context: ToolContext,
        input: Json,
    ) -> Result<Json, ToolError> {
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else {
            tracing::error!("too many tools of this worker never returned; restart the worker");
            return Err(not_started("too many tools of this worker never returned"));
        };
        let (mut sender, receiver) = oneshot::channel();
        let runtime = Handle::current();
        let span = tracing::Span::current();
        let work = trace::carried(async move { tool.run(context, input).instrument(span).await });
        let run = move || {
            let _permit = permit;
            let ended = runtime.block_on(async {
                let run = AssertUnwindSafe(work).catch_unwind();
                tokio::select! {
                    ended = run => Some(ended),
                    () = sender.closed() => None,
                }
            });
            if let Some(ended) = ended {
                // The receiver is gone when the attempt has ended in the meantime.
                let _ = sender.send(ended.unwrap_or_else(|_| Err(broken())));
            }
        };
        if let Err(error) = thread::Builder::new().name("tool".to_owned()).spawn(run) {
            tracing::error!(%error, "no thread for a tool");
            return Err(not_started("the worker has no thread left"));
        }
        // The sender was dropped without an answer: the tool panicked while it was dropped.
        receiver.await.unwrap_or_else(|_| Err(broken()))
    }
}

fn broken() -> ToolError {
    ToolError::Failed("The tool failed with an internal error.".to_owned())
}

fn not_started(reason: &str) -> ToolError {
    ToolError::Unavailable {
        message: format!("The tool was not started: {reason}."),
        retry_after: None,
    }
}

#[cfg(test)]
mod tests {
    use std::{future, sync::mpsc, time::Duration};

    use async_trait::async_trait;
    use everturn_tools::{Effect, ToolSpec};
    use serde_json::json;

    use super::*;

    /// Blocks its thread until it is let go, then waits for ever, and says when it was dropped.
    struct Stuck {
        spec: ToolSpec,
        go: std::sync::Mutex<mpsc::Receiver<()>>,
        dropped: mpsc::Sender<()>,
    }

    struct OnDrop(mpsc::Sender<()>);

    impl Drop for OnDrop {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    #[async_trait]
    impl Tool for Stuck {
        fn spec(&self) -> &ToolSpec {
            &self.spec
        }

        async fn run(&self, _: ToolContext, input: Json) -> Result<Json, ToolError> {
            assert!(input != Json::of(&"panic"), "told to panic");
            let _dropped = OnDrop(self.dropped.clone());
            let _ = self.go.lock().unwrap().recv();
            future::pending().await
        }
    }

    /// The tool, how to let it go, and how to hear of its end.
    fn stuck() -> (Arc<Stuck>, mpsc::Sender<()>, mpsc::Receiver<()>) {
        let ((go, waits), (dropped, hears)) = (mpsc::channel(), mpsc::channel());
        let spec = ToolSpec {
            name: "stuck".into(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            title: None,
            effect: Effect::Read,
            is_inline: false,
        };
        (
            Arc::new(Stuck {
                spec,
                go: waits.into(),
                dropped,
            }),
            go,
            hears,
        )
    }

    #[tokio::test]
    async fn a_tool_that_blocks_holds_up_nothing_and_ends_when_it_lets_go() {
        let (tool, go, dropped) = stuck();
        let threads = ToolThreads::new(0);
        let run = threads.run(tool, ToolContext::by_hand(), Json::default());
        // The runtime has one thread, and its timers go on.
        assert!(
            tokio::time::timeout(Duration::from_millis(50), run)
                .await
                .is_err()
        );
        go.send(()).unwrap();
        dropped
            .recv_timeout(Duration::from_secs(60))
            .expect("the tool's future is dropped");
    }

    #[tokio::test]
    async fn a_panic_is_a_known_failure() {
        let (tool, ..) = stuck();
        let ended = ToolThreads::new(1)
            .run(tool, ToolContext::by_hand(), Json::of(&"panic"))
            .await;
        assert_eq!(ended, Err(broken()));
    }

    #[tokio::test]
    async fn threads_are_bounded() {
        let (tool, ..) = stuck();
        let threads = ToolThreads {
            free: Arc::new(Semaphore::new(0)),
        };
        let ended = threads
            .run(tool, ToolContext::by_hand(), Json::default())
            .await;
        assert!(
            matches!(ended, Err(ToolError::Unavailable { .. })),
            "{ended:?}"
        );
    }
}
