//! Images and files in messages and in results of tools. Messages and results contain references; the bytes are in
//! the store.
//!
//! - `known`: a cache of recently sent files
//! - `results`: turns files in results of tools into blobs

mod known;
mod results;

use everturn_proto::event::Attachment;
use everturn_store::ToolResult;
use serde::Deserialize;
use serde_json::Value;

pub use known::KnownFiles;
pub(crate) use results::keep;

/// The most files of a result that are kept or sent: the default limit of a message.
const MAX_OF_RESULT: usize = 10;
/// The field that marks a reference in a result.
const BLOB_ID: &str = "blob_id";
/// The estimate for an image, in bytes at 3 per token. An image has at most about 1,600 tokens at Anthropic (1.15
/// megapixels, after scaling down), and fewer at most other providers.
const IMAGE_BYTES: usize = 1_600 * 3;
/// The divisor for a PDF. A page has about 50 KB and some 2,000 tokens as text and image: one token per 25 bytes.
const PDF_BYTES_A_BYTE: usize = 8;

/// The use of a file by models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Image,
    Pdf,
    /// Put into the message as text.
    Text,
    /// Not sent.
    Other,
}

impl Kind {
    pub(crate) fn of(media_type: &str) -> Self {
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
pub(crate) fn estimated_bytes(file: &Attachment) -> usize {
    let bytes = file.bytes as usize;
    match Kind::of(&file.media_type) {
        Kind::Image => IMAGE_BYTES,
        Kind::Pdf => IMAGE_BYTES.max(bytes / PDF_BYTES_A_BYTE),
        Kind::Text => bytes,
        Kind::Other => 0,
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
pub(crate) fn named_by(result: &ToolResult) -> Vec<Attachment> {
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
            if found.len() < MAX_OF_RESULT && found.iter().all(|file| file.blob_id != blob_id) {
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
