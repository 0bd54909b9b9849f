//! A worker's link to a server: one connection at a time, made at first use, and made again with a back-off after its
//! end.
//!
//! Listed tools stay known while the server is away, so that a short interruption does not change the offer to a
//! model. A call then waits for a new connection, for as long as `connect_timeout`.

use std::{pin::pin, sync::Arc, time::Duration};

use rmcp::model::Tool as Listed;
use tokio::{
    sync::{Semaphore, SemaphorePermit, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection::Connection,
    error::without_access,
    handshake::{Era, Running},
    oauth::Access,
    options::ServerOptions,
};
use crate::{error::ToolError, registry::ToolSet};

/// The time that the first model call waits for a starting server: a third of the default `llm_timeout`. After a
/// failed try, later model calls do not wait: the tools are missing from the call until they are known.
const FIRST_WAIT: Duration = Duration::from_secs(20);
/// The longest wait of a tool call for the next try to reach a server that is away.
const MAX_CALL_WAIT: Duration = Duration::from_secs(5);
/// The pause between two tries to connect: the first and the longest pause.
const MIN_BACK_OFF: Duration = Duration::from_secs(1);
const MAX_BACK_OFF: Duration = Duration::from_secs(60);
/// The lifetime of a good connection. After a good connection the back-off begins anew.
const STABLE: Duration = Duration::from_secs(30);
/// The pause between the news of changed tools and the request for the list, because a server may report each of many
/// changes.
const SETTLE: Duration = Duration::from_millis(200);
/// The time for a connection to end in order.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(8);

/// Turns a server's list into tools.
pub(super) type Catalog = fn(&Arc<Link>, Vec<Listed>) -> ToolSet;

/// The link to a server. The server's tools share the link.
pub(super) struct Link {
    pub(super) options: ServerOptions,
    /// Provides tokens, if the server requires them.
    access: Option<Arc<Access>>,
    catalog: Catalog,
    state: watch::Sender<LinkState>,
    calls: Semaphore,
    stop: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Default)]
struct LinkState {
    phase: Phase,
    /// The first request of the last connection.
    era: Option<Era>,
    /// The tools as last listed.
    tools: Option<Arc<ToolSet>>,
    /// The number of tries in a row without a good connection.
    failures: u32,
}

#[derive(Default)]
enum Phase {
    /// No caller has needed the connection yet.
    #[default]
    Idle,
    Connecting,
    Up(Arc<Connection>),
    /// The next try is not before `retry_at`.
    Down {
        retry_at: Instant,
    },
}

impl Link {
    /// Creates a link that connects at first use.
    pub(super) fn new(
        options: ServerOptions,
        access: Option<Arc<Access>>,
        catalog: Catalog,
    ) -> Arc<Self> {
        let calls = Semaphore::new(options.max_concurrent_calls);
        Arc::new(Self {
            options,
            access,
            catalog,
            state: watch::Sender::default(),
            calls,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Returns the tools as last listed. Waits for a first answer of the server, but not for long.
    pub(super) async fn tools(self: &Arc<Self>) -> Arc<ToolSet> {
        self.wake();
        let mut states = self.state.subscribe();
        let first = states.wait_for(|state| state.tools.is_some() || state.failures > 0);
        // After a time-out, the tools known now are returned.
        let _first = tokio::time::timeout(FIRST_WAIT, first).await.is_ok();
        self.known()
    }

    /// Ends the connection in order: a child gets time to end by itself. Calls in flight are lost.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(CLOSE_TIMEOUT, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(server = self.options.name, "an MCP server does not end");
        }
        // Tools hold the link, and the link holds the tools. Resetting the state breaks the cycle and frees the
        // memory.
        self.state
            .send_modify(|state| *state = LinkState::default());
    }

    /// Returns the connection, and makes a missing one. The error is for the model.
    pub(super) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, ToolError> {
        let mut states = self.state.subscribe();
        let mut has_tried = false;
        while !self.stop.is_cancelled() {
            self.wake();
            let retry_at = match &states.borrow_and_update().phase {
                Phase::Up(connection) if !connection.has_ended() => {
                    return Ok(Arc::clone(connection));
                }
                Phase::Down { retry_at } => Some(*retry_at),
                Phase::Connecting => {
                    has_tried = true;
                    None
                }
                // The task of the connection has not noticed the end of the connection yet.
                Phase::Idle | Phase::Up(_) => None,
            };
            match retry_at {
                Some(at) if has_tried || at > Instant::now() + MAX_CALL_WAIT => break,
                Some(at) => tokio::time::sleep_until(at).await,
                None if states.changed().await.is_err() => break,
                None => {}
            }
        }
        Err(self.unavailable())
    }

    /// Waits for a permit for a call.
    pub(super) async fn permit(&self) -> Result<SemaphorePermit<'_>, ToolError> {
        self.calls
            .acquire()
            .await
            .map_err(|_closed| self.unavailable())
    }

    fn unavailable(&self) -> ToolError {
        let server = &self.options.name;
        match self.access.as_ref().and_then(|access| access.failure()) {
            Some(failure) => without_access(server, &failure),
            None => ToolError::Failed(format!(
                "MCP server `{server}` is not available now; the tool was not called."
            )),
        }
    }

    /// Returns the tools as last listed; empty before the first list.
    pub(super) fn known(&self) -> Arc<ToolSet> {
        self.state.borrow().tools.clone().unwrap_or_default()
    }

    /// Begins to connect, unless a connection exists, a try is under way, or the back-off is not over.
    fn wake(self: &Arc<Self>) {
        let begins = !self.stop.is_cancelled()
            && self.state.send_if_modified(|state| {
                let is_time = match state.phase {
                    Phase::Idle => true,
                    Phase::Down { retry_at } => retry_at <= Instant::now(),
                    Phase::Connecting | Phase::Up(_) => false,
                };
                if is_time {
                    state.phase = Phase::Connecting;
                }
                is_time
            });
        if begins {
            self.tasks.spawn(Arc::clone(self).keep());
        }
    }

    /// Connects, and stays until the connection has ended.
    async fn keep(self: Arc<Self>) {
        let server = self.options.name.as_str();
        let mut is_good = false;
        let (stop, era) = (self.stop.child_token(), self.state.borrow().era);
        match Connection::open(&self.options, self.access.as_ref(), stop, era).await {
            Ok((connection, running, listed)) => {
                let since = Instant::now();
                let connection = Arc::new(connection);
                let tools = Arc::new((self.catalog)(&self, listed));
                tracing::info!(server, tools = tools.len(), "an MCP server is connected");
                self.state.send_modify(|state| {
                    state.phase = Phase::Up(Arc::clone(&connection));
                    state.era = Some(connection.era);
                    state.tools = Some(tools);
                });
                self.tend(&connection, running).await;
                is_good = since.elapsed() >= STABLE;
                if !self.stop.is_cancelled() {
                    let why = connection
                        .ending()
                        .unwrap_or("the server closed the connection or died, or a call found the connection broken");
                    tracing::warn!(server, why, "the connection to an MCP server has ended");
                }
            }
            Err(_) if self.stop.is_cancelled() => {}
            Err(error) => {
                // The server may have been replaced by another version.
                self.state.send_modify(|state| state.era = None);
                tracing::warn!(server, %error, "an MCP server is not available");
            }
        }
        self.state.send_modify(|state| {
            state.failures = if is_good {
                1
            } else {
                state.failures.saturating_add(1)
            };
            let wait = if is_good {
                Duration::ZERO
            } else {
                back_off(state.failures)
            };
            state.phase = Phase::Down {
                retry_at: Instant::now() + wait,
            };
        });
    }

    /// Keeps the list of tools fresh while the connection lives.
    async fn tend(self: &Arc<Self>, connection: &Connection, running: Running) {
        let mut ended = pin!(running.waiting());
        let mut news = pin!(connection.subscribe());
        let mut is_subscribed = true;
        loop {
            tokio::select! {
                _how = &mut ended => return,
                () = &mut news, if is_subscribed => is_subscribed = false,
                () = connection.tools_changed() => self.refresh(connection).await,
            }
        }
    }

    async fn refresh(self: &Arc<Self>, connection: &Connection) {
        tokio::time::sleep(SETTLE).await;
        let server = self.options.name.as_str();
        let listing = connection.list_tools(self.options.max_tools);
        match tokio::time::timeout(self.options.connect_timeout, listing).await {
            Ok(Ok(listed)) => {
                let tools = Arc::new((self.catalog)(self, listed));
                tracing::info!(
                    server,
                    tools = tools.len(),
                    "the tools of an MCP server have changed"
                );
                self.state.send_modify(|state| state.tools = Some(tools));
            }
            Ok(Err(error)) => {
                tracing::warn!(server, %error, "the changed tools of an MCP server cannot be listed");
            }
            Err(_) => tracing::warn!(
                server,
                "the changed tools of an MCP server were not listed in time"
            ),
        }
    }
}

/// Returns the pause after failures: 1 s, 2 s, 4 s … 60 s.
fn back_off(failures: u32) -> Duration {
    MIN_BACK_OFF
        .saturating_mul(1 << failures.saturating_sub(1).min(6))
        .min(MAX_BACK_OFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_back_off_doubles_and_ends() {
        let seconds: Vec<u64> = [1, 2, 3, 7, 100, u32::MAX]
            .map(|failures| back_off(failures).as_secs())
            .into();
        assert_eq!(seconds, [1, 2, 4, 60, 60, 60]);
    }
}
