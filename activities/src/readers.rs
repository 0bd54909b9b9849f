//! The readers of a conversation, who wait for its new events.

use everturn_proto::LogId;
use everturn_stream::{Announcement, ModelWait, StreamWriter};

/// Notifies readers of new events. Readers find the events of a lost notice at their next look at the store.
pub(crate) async fn announce(stream: &dyn StreamWriter, log: &LogId, announcement: Announcement) {
    if let Err(error) = stream.announce(log, announcement).await {
        tracing::debug!(%error, %log, "an announcement was lost");
    }
}

/// Tells readers that a call waits for its provider. Later readers ask the gateway for the conversation's status.
pub(crate) async fn announce_wait(stream: &dyn StreamWriter, log: &LogId, wait: ModelWait) {
    if let Err(error) = stream.announce_wait(log, wait).await {
        tracing::debug!(%error, %log, "the news of a waiting call was lost");
    }
}
