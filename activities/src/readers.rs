//! The readers of a conversation, who wait for its new events.

use everturn_proto::LogId;
use everturn_stream::{Announcement, StreamWriter};

/// Notifies readers of new events. Readers find the events of a lost notice at their next look at the store.
pub(crate) async fn announce(stream: &dyn StreamWriter, log: &LogId, announcement: Announcement) {
    if let Err(error) = stream.announce(log, announcement).await {
        tracing::debug!(%error, %log, "an announcement was lost");
    }
}
