//! A worker's link to a server: one connection at a time, made at first use, and made again with a back-off after its
//! end.
//!
//! Listed tools stay known while the server is away, so that a short interruption does not change the offer to a
//! model. A call then waits for a new connection, for as long as `connect_timeout`.

use std::{pin::pin, sync::Arc, time::Duration};

use rmcp::model::Tool as Listed;
use tokio::{sync::watch, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use everturn_telemetry::mcp as measured;

use super::{
    connection::{Before, Connection},
    error::{ConnectError, without_access},
    handshake::{Era, Running},
    oauth::Access,
    options::ServerOptions,
    slots::Slots,
    status::{self, ServerState, ServerStatus},
    stderr::Tail,
};
use crate::{error::ToolError, registry::ToolSet};

/// The time that model calls wait for a starting server, from its start: a third of the default `llm_timeout`. Afterwards
/// model calls do not wait: the tools are missing from the call until they are known, and the model reads that.
const FIRST_WAIT: Duration = Duration::from_secs(20);
/// The longest wait of a tool call for the next try to reach a server that is away.
const MAX_CALL_WAIT: Duration = Duration::from_secs(5);
/// The longest time limit for a start. The time limit doubles after each start that took too long, because a program that is
/// downloaded first never starts when each try is ended too early.
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_mins(10);
/// The pause between two tries to connect: the first and the longest pause.
const MIN_BACK_OFF: Duration = Duration::from_secs(1);
const MAX_BACK_OFF: Duration = Duration::from_secs(60);
/// The lifetime of a good connection without a call. After a good connection, or an answered call, the back-off begins anew.
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
    /// The slots of calls.
    pub(super) slots: Slots,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// The last lines on the standard error of a program.
    tail: Tail,
}

#[derive(Default)]
struct LinkState {
    phase: Phase,
    /// The first request of the last connection.
    era: Option<Era>,
    /// The tools as last listed.
    tools: Option<Arc<ToolSet>>,
    /// The server's words on the use of its tools.
    instructions: Option<String>,
    /// The reason why the last try failed.
    failure: Option<String>,
    /// The number of starts in a row that took too long.
    slow_starts: u32,
    /// The number of tries in a row without a good connection.
    failures: u32,
}

#[derive(Default)]
enum Phase {
    /// No caller has needed the connection yet.
    #[default]
    Idle,
    Connecting {
        since: Instant,
    },
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
        let slots = Slots::new(options.max_concurrent_calls);
        Arc::new(Self {
            options,
            access,
            catalog,
            state: watch::Sender::default(),
            slots,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            tail: Tail::default(),
        })
    }

    /// Returns the tools as last listed. Waits for a first answer of the server, but not for long.
    pub(super) async fn tools(self: &Arc<Self>) -> Arc<ToolSet> {
        self.wake();
        let mut states = self.state.subscribe();
        let until = match states.borrow().phase {
            Phase::Connecting { since } => since + FIRST_WAIT,
            Phase::Idle | Phase::Up(_) | Phase::Down { .. } => Instant::now() + FIRST_WAIT,
        };
        let first = states.wait_for(|state| state.tools.is_some() || state.failures > 0);
        // After a time-out, the tools known now are returned.
        let _first = tokio::time::timeout_at(until, first).await.is_ok();
        self.known()
    }

    /// Returns the text for the model about the server's tools: how to use the tools, or why they are missing.
    pub(super) fn note(&self) -> Option<String> {
        let state = self.state.borrow();
        match state.tools {
            None => Some(status::missing(&self.options.name)),
            Some(_) => state.instructions.clone(),
        }
    }

    /// Connects once, and returns the state of the server. Waits as long as the first try lasts.
    pub(super) async fn status(self: &Arc<Self>) -> ServerStatus {
        self.wake();
        let begin = Instant::now();
        let mut states = self.state.subscribe();
        // An error means that the link was closed, which the status shows.
        let _closed = states
            .wait_for(|state| matches!(state.phase, Phase::Up(_) | Phase::Down { .. }))
            .await
            .is_err();
        let state = states.borrow();
        let connected = match &state.phase {
            Phase::Up(connection) => Some(connection),
            Phase::Idle | Phase::Connecting { .. } | Phase::Down { .. } => None,
        };
        ServerStatus {
            name: self.options.name.clone(),
            address: self.options.location.address(),
            took: begin.elapsed(),
            state: match connected {
                Some(connection) => {
                    let tools = state.tools.as_ref().map_or(0, |tools| tools.len());
                    let instructions = state.instructions.is_some();
                    ServerState::connected(connection.server().as_deref(), tools, instructions)
                }
                None => ServerState::Unavailable {
                    reason: state.failure.clone().unwrap_or_default(),
                    output: self.tail.lines(),
                },
            },
        }
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
                Phase::Connecting { .. } => {
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

    fn unavailable(&self) -> ToolError {
        let server = &self.options.name;
        match self.access.as_ref().and_then(|access| access.failure()) {
            Some(failure) => without_access(server, &failure),
            // A server that restarts is away for some seconds: a tool that may run again is tried again later.
            None => ToolError::Unavailable {
                message: format!(
                    "MCP server `{server}` is not available now; the tool was not called."
                ),
                retry_after: None,
            },
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
                    Phase::Connecting { .. } | Phase::Up(_) => false,
                };
                if is_time {
                    state.phase = Phase::Connecting {
                        since: Instant::now(),
                    };
                }
                is_time
            });
        if begins {
            self.tasks.spawn(Arc::clone(self).keep());
        }
    }

    /// Connects, and stays until the connection has ended.
    async fn keep(self: Arc<Self>) {
        let stop = self.stop.child_token();
        let before = self.before();
        let opened = Connection::open(&self.options, self.access.as_ref(), stop, &before).await;
        let is_good = match opened {
            Ok((connection, running, listed)) => self.stay(connection, running, listed).await,
            Err(error) => {
                self.note_failure(&error, before.limit);
                false
            }
        };
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

    fn before(&self) -> Before {
        let state = self.state.borrow();
        let limit = self.options.connect_timeout;
        Before {
            era: state.era,
            limit: limit
                .saturating_mul(1 << state.slow_starts.min(6))
                .min(MAX_CONNECT_TIMEOUT.max(limit)),
            tail: self.tail.clone(),
        }
    }

    /// Stays until the connection has ended. Returns true after a good connection.
    async fn stay(
        self: &Arc<Self>,
        connection: Connection,
        running: Running,
        listed: Vec<Listed>,
    ) -> bool {
        let server = self.options.name.as_str();
        let since = Instant::now();
        let connection = Arc::new(connection);
        let found = listed.len();
        let tools = Arc::new((self.catalog)(self, listed));
        tracing::info!(
            server,
            tools = tools.len(),
            left_out = found.saturating_sub(tools.len()),
            "an MCP server is connected"
        );
        let said = connection.server().and_then(|it| it.instructions.clone());
        let instructions = said.filter(|_| self.options.instructions);
        self.state.send_modify(|state| {
            state.phase = Phase::Up(Arc::clone(&connection));
            state.era = Some(connection.era);
            state.tools = Some(tools);
            state.instructions = instructions.and_then(|said| status::instructions(server, &said));
            state.failure = None;
        });
        measured::connected(server, true);
        self.tend(&connection, running).await;
        measured::ended(server);
        if !self.stop.is_cancelled() {
            let why = connection.ending().unwrap_or(
                "the server closed the connection or died, or a call found the connection broken",
            );
            let output = self.tail.lines().join("\n");
            tracing::warn!(
                server,
                why,
                output,
                "the connection to an MCP server has ended"
            );
        }
        connection.has_answered() || since.elapsed() >= STABLE
    }

    fn note_failure(&self, error: &ConnectError, limit: Duration) {
        if self.stop.is_cancelled() {
            return;
        }
        let server = self.options.name.as_str();
        let is_slow = matches!(error, ConnectError::TimedOut(_));
        let reason = status::with_sources(error);
        let output = self.tail.lines().join("\n");
        let address = self.options.location.address();
        tracing::warn!(
            server,
            address,
            reason,
            output,
            limit_s = limit.as_secs(),
            "an MCP server is not available"
        );
        measured::connected(server, false);
        self.state.send_modify(|state| {
            // The server may have been replaced by another version.
            state.era = None;
            state.failure = Some(reason);
            if is_slow {
                state.slow_starts = state.slow_starts.saturating_add(1);
            }
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
