//! A reader of the event stream that can be cut after any byte, and comes back to any gateway with its cursor.
//!
//! - [`frames`]: parses frames from bytes, as the SSE standard says
//! - [`cut`]: decides where a connection is cut
//! - [`view`]: what the reader has assembled, and the rules that no frame may break (invariant 7, fenced
//!   deltas; invariant 8, a cursor never expires)
//!
//! It shares no code with the gateway or its client, so that a bug of theirs cannot hide itself.

pub mod cut;
pub mod frames;
pub mod view;

use futures::StreamExt;

pub use self::{cut::Cut, view::View};
use crate::reader::frames::FrameReader;

/// How a reader sends its cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorIn {
    /// The cursor is in the query, as `?cursor=`.
    Query,
    /// The cursor is in the header `Last-Event-ID`, and that of the first visit still in the URL, as browsers do it.
    Header,
}

/// How a visit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The condition that the reader waited for is true.
    Satisfied,
    /// Its connection was cut where the `Cut` said.
    Cut,
    /// The gateway ended the stream, or was killed.
    Ended,
    /// The gateway did not answer, or its answer was not a stream.
    Refused,
}

/// One reader of one conversation, over all its connections.
pub struct Reader {
    /// Everything that it has assembled so far.
    pub view: View,
    conversation_id: String,
    http: reqwest::Client,
}

impl Reader {
    /// Makes a reader that has nothing yet. Readers share one HTTP client, because each costs much.
    pub fn new(http: &reqwest::Client, conversation_id: &str) -> Self {
        Self {
            view: View::default(),
            conversation_id: conversation_id.to_owned(),
            http: http.clone(),
        }
    }

    /// Reads from the gateway at this URL, from the cursor on, until `is_satisfied` is true, the connection is cut, or
    /// the stream ends. An error means that a frame broke a rule.
    pub async fn visit(
        &mut self,
        gateway: &str,
        cursor_in: CursorIn,
        cut: &mut Cut,
        is_satisfied: impl Fn(&View) -> bool,
    ) -> Result<Left, String> {
        let Some(response) = self.connect(gateway, cursor_in).await else {
            return Ok(Left::Refused);
        };
        self.view.begin_anew();
        let mut frames = FrameReader::default();
        let mut chunks = response.bytes_stream();
        while !is_satisfied(&self.view) {
            let Some(Ok(chunk)) = chunks.next().await else {
                return Ok(Left::Ended);
            };
            let before_cut = cut.through(&chunk);
            for frame in frames.push(&chunk[..before_cut.unwrap_or(chunk.len())])? {
                self.view.take(&frame)?;
            }
            if before_cut.is_some() {
                cut.note_place(frames.rest());
                return Ok(Left::Cut);
            }
        }
        Ok(Left::Satisfied)
    }

    async fn connect(&self, gateway: &str, cursor_in: CursorIn) -> Option<reqwest::Response> {
        let cursor = self.view.last_id();
        let url = format!(
            "{gateway}/api/v1/agent/conversations/{}/events/stream",
            self.conversation_id
        );
        let request = match cursor_in {
            CursorIn::Query => self.http.get(format!("{url}?cursor={cursor}")),
            CursorIn::Header => self
                .http
                .get(format!("{url}?cursor=0"))
                .header("last-event-id", cursor),
        };
        request
            .send()
            .await
            .ok()
            .filter(|response| response.status().is_success())
    }
}
