//! Memory of the caller's tenant: for bodies of requests, for answers in preparation, and for answers on their way to a
//! slow client.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    response::Response,
};
use everturn_telemetry::gateway as telemetry;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::timeout;

use super::{
    extract::Caller,
    problem::{Code, Problem},
    state::GatewayState,
};
use crate::limits::memory::{Account, Held};

/// How long a request waits for memory. The gateway then asks the client to retry, because waiting requests must not
/// pile up.
const WAIT: Duration = Duration::from_secs(5);

/// The smallest size of a counted body. Smaller bodies need little memory, even on every connection together.
const COUNTED_FROM: u64 = 4 * 1024;

/// The copies of a body or a page in memory during processing: its rows, the values made from the rows, and its bytes.
const COPIES: usize = 3;

impl GatewayState {
    /// Takes memory for at most `bytes` bytes and their copies. Refuses when the tenant's memory stays full for
    /// [`WAIT`].
    pub(crate) async fn room(&self, caller: &Caller, bytes: usize) -> Result<Held, Problem> {
        let account = self.account(caller);
        let room = account.room(bytes.saturating_mul(COPIES));
        timeout(WAIT, room).await.map_err(|_elapsed| {
            telemetry::over_memory("request");
            let detail = "Your tenant's requests and streams use too much memory. Read the waiting responses, and repeat the \
                          request.";
            Problem::new(Code::TooMuchAtOnce, detail).retry_after_s(1)
        })
    }

    /// Returns the most bytes of the request's body. Returns `None` for a small body, because small bodies are not
    /// counted.
    pub(crate) fn bytes_of_body(&self, request: &Request) -> Option<usize> {
        let is_file = request.uri().path().ends_with("/blobs");
        let most = if is_file {
            self.ports.blobs.rules().max_bytes
        } else {
            self.config.max_body_bytes()
        };
        let size = request.body().size_hint();
        let bytes = size.upper().unwrap_or(u64::MAX);
        if bytes < COUNTED_FROM {
            return None;
        }
        Some(usize::try_from(bytes).unwrap_or(usize::MAX).min(most))
    }

    /// Counts an answer's bytes until the connection has sent them. A stream has no size, and counts its frames by
    /// itself.
    pub(crate) fn counted(&self, caller: &Caller, response: Response) -> Response {
        let size = response.body().size_hint().exact();
        if size.is_none_or(|size| size < COUNTED_FROM) {
            return response;
        }
        let account = self.account(caller);
        response.map(|body| Body::new(CountedBody { body, account }))
    }

    fn account(&self, caller: &Caller) -> Arc<Account> {
        self.limits.memory().account(&caller.access.tenant_id)
    }
}

/// A body with counted pieces. The count of a piece ends when the connection has sent the piece.
struct CountedBody {
    body: Body,
    account: Arc<Account>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        Pin::new(&mut this.body).poll_frame(context).map(|frame| {
            frame.map(|frame| frame.map(|frame| frame.map_data(|data| this.account.counted(data))))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
