//! The files that a context names, in the form for the model.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_models::{FileKind, SentFile, SentFiles, named_by, told};
use everturn_proto::{event::Attachment, turn::AgentDefinition};
use everturn_store::{BlobFiles, ContextMessage, StepClaims};
use temporalio_common::ActivityError;

use super::claimed::Claimed;
use crate::files::KnownFiles;

/// The most bytes of files in a request: in base64, they fit into the 32 MB that the strictest provider accepts.
const MAX_BYTES: u64 = 20 * 1024 * 1024;

/// Reads the files of a context.
pub(super) struct FileReader<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) steps: &'a dyn StepClaims,
    pub(super) blobs: &'a BlobFiles,
    pub(super) known: &'a KnownFiles,
}

impl FileReader<'_> {
    /// Returns the files that the messages name. Recently read files come from the worker's memory.
    pub(super) async fn read(
        &self,
        agent: &AgentDefinition,
        messages: &[ContextMessage],
    ) -> Result<SentFiles, ActivityError> {
        let mut files = SentFiles::default();
        for (attachment, is_left_out) in named(messages) {
            let why = match FileKind::of(&attachment.media_type) {
                _ if is_left_out => Some("was shown to you before, and is left out now"),
                FileKind::Image if agent.no_images => Some("is attached; you cannot see images"),
                FileKind::Pdf if agent.no_pdfs => Some("is attached; you cannot read PDF files"),
                FileKind::Other => Some("is attached; you cannot read files of this type"),
                FileKind::Image | FileKind::Pdf | FileKind::Text => None,
            };
            if let Some(why) = why {
                files.add(&attachment.blob_id, SentFile::Told(told(&attachment, why)));
            } else if let Some(file) = self.read_file(&attachment).await? {
                files.add(&attachment.blob_id, file);
            }
        }
        Ok(files)
    }

    async fn read_file(&self, file: &Attachment) -> Result<Option<SentFile>, ActivityError> {
        let Self {
            claimed,
            steps,
            blobs,
            known,
        } = self;
        let conversation_id = &claimed.step.conversation_id;
        if let Some(file) = known.get(conversation_id, &file.blob_id) {
            return Ok(Some(file));
        }
        let read = claimed
            .attempt
            .insist_on_blobs(|| blobs.file_of(conversation_id, &file.blob_id))
            .await;
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                // No call was made, so the claim's count is given back.
                claimed
                    .attempt
                    .insist(|| steps.release_step(claimed.step, claimed.generation))
                    .await?;
                return Err(error);
            }
        };
        let Some(read) = read else {
            return Ok(None);
        };
        let sent = match (
            FileKind::of(&file.media_type),
            String::from_utf8(read.bytes),
        ) {
            (FileKind::Text, Ok(text)) => SentFile::Text(text.into()),
            (_, Ok(text)) => SentFile::Base64(encoded(text.as_bytes())),
            (_, Err(error)) => SentFile::Base64(encoded(error.as_bytes())),
        };
        known.put(conversation_id, &file.blob_id, sent.clone());
        Ok(Some(sent))
    }
}

fn encoded(bytes: &[u8]) -> Arc<str> {
    STANDARD.encode(bytes).into()
}

/// Returns the files that the messages name, and whether each file is left out because the files are too many. Files
/// are left out in blocks: a block ends before the message that would exceed the limit, and only the last block is
/// sent. Therefore a request begins like the request before, until a new block begins. The files of the last message
/// are always sent.
fn named(messages: &[ContextMessage]) -> Vec<(Attachment, bool)> {
    let (mut found, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for message in messages {
        let of_results = message.tool_results.iter().flat_map(named_by);
        let own: Vec<Attachment> = message
            .attachments
            .iter()
            .cloned()
            .chain(of_results)
            .collect();
        let size: u64 = own.iter().map(|file| u64::from(file.bytes)).sum();
        if bytes + size > MAX_BYTES {
            (begin, bytes) = (found.len(), 0);
        }
        bytes += size;
        found.extend(own);
    }
    let found = found.into_iter().enumerate();
    found.map(|(index, file)| (file, index < begin)).collect()
}

#[cfg(test)]
mod tests {
    use everturn_proto::words::MessageRole;

    use super::*;

    fn with_file(number: u32, megabytes: u32) -> ContextMessage {
        ContextMessage {
            attachments: vec![Attachment {
                blob_id: format!("blob_{number}"),
                media_type: "image/png".into(),
                file_name: String::new(),
                bytes: megabytes * 1024 * 1024,
            }],
            ..ContextMessage::text(MessageRole::User, "look")
        }
    }

    fn left_out(messages: &[ContextMessage]) -> Vec<bool> {
        named(messages)
            .into_iter()
            .map(|(_, is_left_out)| is_left_out)
            .collect()
    }

    #[test]
    fn files_are_left_out_in_blocks() {
        let mut messages: Vec<_> = (0..4).map(|number| with_file(number, 5)).collect();
        assert_eq!(left_out(&messages), [false; 4]);
        messages.push(with_file(4, 5));
        assert_eq!(left_out(&messages), [true, true, true, true, false]);
        messages.push(with_file(5, 5));
        assert_eq!(left_out(&messages), [true, true, true, true, false, false]);
        messages.push(with_file(6, 21));
        assert_eq!(left_out(&messages)[5..], [true, false]);
        assert_eq!(
            left_out(&[ContextMessage::text(MessageRole::User, "no file")]),
            [false; 0]
        );
    }
}
