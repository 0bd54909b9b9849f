//! The readers of a conversation, who wait for its new events.

use everturn_proto::LogId;
use everturn_stream::{Announcement, Notice, StreamWriter};

/// Notifies readers of new events. Readers find the events of a lost notice at their next look at the store.
pub(crate) async fn announce(stream: &dyn StreamWriter, log: &LogId, announcement: Announcement) {
    if let Err(error) = stream.announce(log, announcement).await {
        tracing::debug!(%error, %log, "an announcement was lost");
    }
}

/// Sends a notice to the present readers. Later readers ask the gateway for the conversation's status.
pub(crate) async fn notify(stream: &dyn StreamWriter, log: &LogId, notice: Notice) {
    if let Err(error) = stream.notify(log, notice).await {
        tracing::debug!(%error, %log, "a notice was lost");
    }
}
