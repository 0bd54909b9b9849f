//! The files of a request, in the form for a model.

use std::{collections::HashMap, sync::Arc};

use everturn_proto::event::Attachment;

/// A file in the form for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentFile {
    /// The bytes of an image or a PDF, in base64.
    Base64(Arc<str>),
    /// A text.
    Text(Arc<str>),
    /// A sentence in place of the file.
    Told(String),
}

/// The files of a request, by the ids of their blobs.
#[derive(Debug, Clone, Default)]
pub struct SentFiles(HashMap<String, SentFile>);

impl SentFiles {
    /// Adds a file.
    pub fn add(&mut self, blob_id: &str, file: SentFile) {
        self.0.insert(blob_id.to_owned(), file);
    }

    /// Returns the model's form of a file. For a file that was not added, returns a sentence that the file no longer
    /// exists.
    pub fn of(&self, attachment: &Attachment) -> SentFile {
        let file = self.0.get(&attachment.blob_id).cloned();
        file.unwrap_or_else(|| SentFile::Told(told(attachment, "is no longer there")))
    }
}

/// Returns a sentence about a file that the model does not get.
pub fn told(attachment: &Attachment, why: &str) -> String {
    let Attachment {
        file_name,
        media_type,
        ..
    } = attachment;
    if file_name.is_empty() {
        format!("(A file of type {media_type} {why}.)")
    } else {
        format!("(The file {file_name:?} of type {media_type} {why}.)")
    }
}
