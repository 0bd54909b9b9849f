//! Images and files in messages and in results of tools, which contain references: the files that a model can use, and
//! the files of a request, in the form for a model.

use std::{collections::HashMap, sync::Arc};

use everturn_proto::event::Attachment;
use everturn_store::ToolResult;
use serde::Deserialize;
use serde_json::Value;

/// The most files of a result that are kept or sent: the default limit of a message.
pub const MAX_FILES_OF_RESULT: usize = 10;
/// The field that marks a reference in a result.
pub const BLOB_ID: &str = "blob_id";
/// The estimate for an image, in bytes at 3 per token. An image has at most about 1,600 tokens at Anthropic (1.15
/// megapixels, after scaling down), and fewer at most other providers.
const IMAGE_BYTES: usize = 1_600 * 3;
/// The divisor for a PDF. A page has about 50 KB and some 2,000 tokens as text and image: one token per 25 bytes.
const PDF_BYTES_A_BYTE: usize = 8;

/// The use of a file by models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A format that models can see.
    Image,
    /// A document of pages.
    Pdf,
    /// Put into the message as text.
    Text,
    /// Not sent.
    Other,
}

impl FileKind {
    /// Returns the use of a file of this type.
    pub fn of(media_type: &str) -> Self {
        match media_type {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Self::Image,
            "application/pdf" => Self::Pdf,
            "application/json" => Self::Text,
            text if text.starts_with("text/") => Self::Text,
            _ => Self::Other,
        }
    }
}

/// Returns the share of a context window that a file takes, as the bytes of a text with about as many tokens.
pub fn estimated_bytes(file: &Attachment) -> usize {
    let bytes = file.bytes as usize;
    match FileKind::of(&file.media_type) {
        FileKind::Image => IMAGE_BYTES,
        FileKind::Pdf => IMAGE_BYTES.max(bytes / PDF_BYTES_A_BYTE),
        FileKind::Text => bytes,
        FileKind::Other => 0,
    }
}

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

/// A reference to a blob in a result.
#[derive(Debug, Deserialize)]
struct Reference {
    blob_id: String,
    #[serde(rename = "type")]
    media_type: String,
    bytes: u32,
}

/// Returns the files named in a result. A tool may name any file of its conversation; files of other conversations
/// are not found.
pub fn named_by(result: &ToolResult) -> Vec<Attachment> {
    let mut found = Vec::new();
    // Most results name no file, and need not be parsed.
    if result.result.as_str().contains(BLOB_ID) {
        collect(&result.result.to_value(), &mut found);
    }
    found
}

fn collect(value: &Value, found: &mut Vec<Attachment>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        Value::Object(object) if object.contains_key(BLOB_ID) => {
            let Ok(Reference {
                blob_id,
                media_type,
                bytes,
            }) = Reference::deserialize(value)
            else {
                return;
            };
            if found.len() < MAX_FILES_OF_RESULT && found.iter().all(|file| file.blob_id != blob_id)
            {
                found.push(Attachment {
                    blob_id,
                    media_type,
                    file_name: String::new(),
                    bytes,
                });
            }
        }
        Value::Object(object) => object.values().for_each(|value| collect(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
