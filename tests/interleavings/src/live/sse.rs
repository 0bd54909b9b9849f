//! A rendered frame, with a line instead of JSON.

use std::sync::Arc;

use axum::body::Bytes;

use super::{cursor::Cursor, frame::LiveFrame};
use crate::limits::memory::Account;

/// A frame and its bytes.
#[derive(Debug)]
pub(super) struct RenderedFrame {
    pub(super) frame: LiveFrame,
    pub(super) bytes: Bytes,
    #[allow(dead_code)]
    pub(super) cursor: Option<Cursor>,
}

impl RenderedFrame {
    /// Renders a frame, and counts the frame to the account.
    pub(super) fn new(conversation: &str, frame: LiveFrame, account: &Arc<Account>) -> Self {
        let cursor = match &frame {
            LiveFrame::Event(event) => Some(Cursor::behind(event)),
            _ => None,
        };
        Self {
            frame,
            bytes: account.counted(conversation.as_bytes().to_vec()),
            cursor,
        }
    }
}
