//! A server that does not answer any more is restarted.
//!
//! A program whose threads wait for one another neither ends nor answers. After a call without an answer, the worker asks the
//! program for a sign of life. A program that gives no sign is ended, and the next call starts it anew. A server behind a URL
//! cannot be restarted, so the worker does not ask it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{ClientRequest, DiscoverRequest, PingRequest},
    service::Peer,
};
use tokio_util::sync::CancellationToken;

use super::{
    options::{ServerLocation, ServerOptions},
    stdio::Ending,
};

/// The time for a sign of life. Every program has a free moment in this time, unless it is stuck: a program that computes for
/// longer without a look at its input serves no other call either.
const SIGN_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks a program for signs of life. Clones share the question.
#[derive(Clone)]
pub(super) struct Vital {
    server: String,
    is_program: bool,
    peer: Peer<RoleClient>,
    ending: Ending,
    stop: CancellationToken,
    /// True while a question has no answer yet. Several calls may end at once.
    is_asked: Arc<AtomicBool>,
}

impl Vital {
    pub(super) fn new(
        options: &ServerOptions,
        peer: &Peer<RoleClient>,
        ending: &Ending,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            server: options.name.clone(),
            is_program: matches!(options.location, ServerLocation::Command { .. }),
            peer: peer.clone(),
            ending: Arc::clone(ending),
            stop: stop.clone(),
            is_asked: Arc::default(),
        }
    }

    /// Ends the program if it gives no sign of life.
    pub(super) async fn check(self) {
        if !self.is_program || self.is_asked.swap(true, Ordering::AcqRel) {
            return;
        }
        let asked = tokio::time::timeout(SIGN_TIMEOUT, self.peer.send_request(self.question()));
        let is_silent = self
            .stop
            .run_until_cancelled(asked)
            .await
            .is_some_and(|answer| answer.is_err());
        self.is_asked.store(false, Ordering::Release);
        if is_silent {
            let why = format!(
                "the program gave no sign of life for {} s after a call without an answer, and is started anew",
                SIGN_TIMEOUT.as_secs()
            );
            tracing::warn!(server = self.server, "{why}");
            let _first_wins = self.ending.set(why);
            self.stop.cancel();
        }
    }

    /// The newer protocol has no pings.
    fn question(&self) -> ClientRequest {
        let server = self.peer.peer_info();
        if server.is_none_or(|server| server.protocol_version.has_initialize()) {
            ClientRequest::PingRequest(PingRequest::default())
        } else {
            ClientRequest::DiscoverRequest(DiscoverRequest::default())
        }
    }
}
