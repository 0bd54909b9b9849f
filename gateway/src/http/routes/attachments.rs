//! The content of a message: text and attached files.

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

/// An uploaded file attached to a message.
#[derive(Deserialize, ToSchema)]
pub(super) struct NewAttachment {
    /// Id of the file, from the response of the upload.
    #[schema(value_type = Id)]
    blob_id: String,
}

/// The checked content of a message, ready for the store and for a model. A retry has no content.
#[derive(Default)]
pub(super) struct Content {
    pub(super) text: String,
    /// Ids of the files, without duplicates.
    pub(super) attachments: Vec<String>,
}

impl Content {
    /// Checks a message's text and its number of attachments. The store later checks that the files exist.
    pub(super) fn checked(
        state: &GatewayState,
        text: Option<String>,
        attachments: Vec<NewAttachment>,
    ) -> Result<Self, Problem> {
        if text.is_none() && attachments.is_empty() {
            let detail = "The body needs a text or attachments.";
            return Err(Problem::new(Code::InvalidBody, detail));
        }
        let text = text.unwrap_or_default();
        let limit = state.config.message_limit();
        if text.len() > limit {
            return Err(Problem::new(
                Code::MessageTooLong,
                format!("A message may have at most {limit} bytes."),
            ));
        }
        if text.trim().is_empty() && attachments.is_empty() {
            return Err(Problem::new(
                Code::InvalidMessage,
                "A message needs a text or an attachment.",
            ));
        }
        if text.contains('\0') {
            return Err(Problem::new(
                Code::InvalidMessage,
                "A message must not have a NUL character.",
            ));
        }
        let limit = state.ports.blobs.rules().max_per_message;
        if attachments.len() > limit {
            return Err(Problem::new(
                Code::TooManyAttachments,
                format!("A message may have at most {limit} attachments."),
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
