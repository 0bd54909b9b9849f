//! What a message says: its text, and the files that it names.

use std::collections::BTreeSet;

use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    http::{
        extract::checked_id,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::Id,
};

/// A file that a message names.
#[derive(Deserialize, ToSchema)]
pub(super) struct NewAttachment {
    /// The id of the file, as the upload answered it.
    #[schema(value_type = Id)]
    blob_id: String,
}

/// The content of a message, which can be stored and sent to a model.
pub(super) struct Content {
    pub(super) text: String,
    /// The ids of the files, each once.
    pub(super) attachments: Vec<String>,
}

impl Content {
    /// Checks what a message says by itself. The store knows which files there are.
    pub(super) fn checked(
        state: &GatewayState,
        text: Option<String>,
        attachments: Vec<NewAttachment>,
    ) -> Result<Self, Problem> {
        if text.is_none() && attachments.is_empty() {
            let detail = "The body has neither a text nor attachments.";
            return Err(Problem::new(Code::InvalidBody, detail));
        }
        let text = text.unwrap_or_default();
        let limit = state.config.message_limit();
        if text.len() > limit {
            return Err(Problem::new(
                Code::MessageTooLong,
                format!("A message has at most {limit} bytes."),
            ));
        }
        if text.trim().is_empty() && attachments.is_empty() {
            return Err(Problem::new(
                Code::InvalidMessage,
                "A message has some text, or an attachment.",
            ));
        }
        if text.contains('\0') {
            return Err(Problem::new(
                Code::InvalidMessage,
                "A message has no NUL character.",
            ));
        }
        let limit = state.ports.blobs.rules().max_per_message;
        if attachments.len() > limit {
            return Err(Problem::new(
                Code::TooManyAttachments,
                format!("A message has at most {limit} attachments."),
            ));
        }
        let mut seen = BTreeSet::new();
        let mut ids = Vec::with_capacity(attachments.len());
        for attachment in attachments {
            let id = checked_id("blob id", attachment.blob_id)?;
            if seen.insert(id.clone()) {
                ids.push(id);
            }
        }
        Ok(Self {
            text,
            attachments: ids,
        })
    }
}
