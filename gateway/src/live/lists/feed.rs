//! The response body, made from a reader of a conversation list.

use std::sync::Arc;

use axum::body::Bytes;
use futures::{Stream, future::BoxFuture};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::hub::ListReader;
use crate::{
    config::GatewayConfig,
    limits::{StreamPermit, memory::Account},
    live::sse::{self, StreamEnd},
};

/// A stream of server-sent events about a list.
pub struct ListFeed {
    reader: ListReader,
    /// The account that the list's frames count to.
    account: Arc<Account>,
    /// Text before the first frame; empty after the text is sent.
    preface: String,
    config: Arc<GatewayConfig>,
    /// Cancelled when the gateway closes its streams.
    closing: CancellationToken,
    /// Resolves when the reader's credential is no longer valid.
    until: BoxFuture<'static, ()>,
    is_over: bool,
    _permit: StreamPermit,
}

impl ListFeed {
    /// Makes a feed of the reader's frames. The feed ends when `until` resolves, because the reader's credential is no
    /// longer valid.
    pub(crate) fn new(
        reader: ListReader,
        account: Arc<Account>,
        config: Arc<GatewayConfig>,
        closing: CancellationToken,
        until: BoxFuture<'static, ()>,
        permit: StreamPermit,
    ) -> Self {
        Self {
            reader,
            account,
            preface: sse::retry(config.retry_delay()),
            config,
            closing,
            until,
            is_over: false,
            _permit: permit,
        }
    }

    /// Returns the chunks of the body up to the end.
    pub fn into_chunks(self) -> impl Stream<Item = Bytes> + Send + 'static {
        futures::stream::unfold(self, |mut feed| async move {
            let chunk = feed.chunk().await?;
            Some((chunk, feed))
        })
    }

    /// Waits for the next frames. Returns a heartbeat comment after an idle interval, and `None` at the end.
    async fn chunk(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        if !self.preface.is_empty() {
            return Some(std::mem::take(&mut self.preface).into());
        }
        tokio::select! {
            biased;
            () = self.closing.cancelled() => {
                self.is_over = true;
                Some(sse::reconnect(self.config.retry_delay()).into())
            }
            () = &mut self.until => {
                self.is_over = true;
                Some(sse::end(StreamEnd::TokenExpired).into())
            }
            frames = next(&mut self.reader, &self.account) => frames,
            () = sleep(self.config.heartbeat) => Some(Bytes::from_static(sse::HEARTBEAT.as_bytes())),
        }
    }
}

/// Waits for the next frames, and for memory for the frames. Cancel safe.
async fn next(reader: &mut ListReader, account: &Arc<Account>) -> Option<Bytes> {
    reader.changed().await?;
    account.has_room().await;
    let frames = reader.next().await?;
    Some(account.counted(frames.into_bytes().into_boxed_slice()))
}
