//! Files in results of tools. Every kind of tool returns bytes as base64 with a type (`tools/content.rs`). This
//! module stores images and PDF files as blobs, and puts references into the result.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_models::{BLOB_ID, FileKind, MAX_FILES_OF_RESULT};
use everturn_proto::Json;
use everturn_store::{BlobFiles, RefusedBlob, StoreError, ToolKey, Upload, UploadError};
use serde_json::{Value, json};
use temporalio_common::ActivityError;

use crate::attempt::Attempt;

/// The most tries at an object store without an answer. The tool has run, and the result must not wait for long.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// The text in the result for a file that could not be stored.
const NOT_STORED: &str = "The file could not be stored, because the store of files did not answer.";

/// Stores the files of a result, and returns the result with references instead. Files that the rules refuse stay in
/// the result.
pub(crate) async fn keep(
    blobs: &BlobFiles,
    attempt: &Attempt<'_>,
    key: &ToolKey,
    result: Json,
) -> Result<Json, ActivityError> {
    // Most results have no file, and need not be parsed.
    if !result.as_str().contains("base64") {
        return Ok(result);
    }
    let mut value = result.to_value();
    let mut files = Vec::new();
    find(&mut value, &mut files);
    let mut has_changed = false;
    for file in files {
        let Some(upload) = upload_of(file) else {
            continue;
        };
        match stored(blobs, attempt, key, &upload).await? {
            Stored::Blob(blob_id) => {
                file[BLOB_ID] = json!(blob_id);
                file["bytes"] = json!(upload.bytes.len());
            }
            Stored::Away => file["error"] = json!(NOT_STORED),
            Stored::Refused => continue,
        }
        if let Value::Object(object) = file {
            object.remove("encoding");
            object.remove("data");
        }
        has_changed = true;
    }
    Ok(if has_changed {
        Json::of(&value)
    } else {
        result
    })
}

enum Stored {
    Blob(String),
    Refused,
    Away,
}

async fn stored(
    blobs: &BlobFiles,
    attempt: &Attempt<'_>,
    key: &ToolKey,
    upload: &Upload,
) -> Result<Stored, ActivityError> {
    for _ in 0..TRIES {
        let kept = attempt.insist_on_blobs(|| once(blobs, key, upload)).await?;
        match kept {
            Ok(blob_id) => return Ok(Stored::Blob(blob_id)),
            Err(Some(refused)) => {
                tracing::debug!(%refused, "a file of a result stays in it");
                return Ok(Stored::Refused);
            }
            Err(None) => tokio::time::sleep(PAUSE).await,
        }
    }
    Ok(Stored::Away)
}

/// Stores a file once. Returns the id of the blob, or the reason for a refusal; `None` means that the object store is
/// away.
async fn once(
    blobs: &BlobFiles,
    key: &ToolKey,
    upload: &Upload,
) -> Result<Result<String, Option<RefusedBlob>>, StoreError> {
    let keeping = blobs.keep(&key.conversation_id, &key.execution_id, upload.clone());
    match keeping.await {
        Ok(blob) => Ok(Ok(blob.id)),
        Err(UploadError::Refused(refused)) => Ok(Err(Some(refused))),
        Err(UploadError::Store(StoreError::ObjectsUnavailable(why))) => {
            tracing::warn!(why, "a file of a result could not be stored");
            Ok(Err(None))
        }
        Err(UploadError::Store(error)) => Err(error),
    }
}

/// Collects the parts of a result that may be files.
fn find<'a>(value: &'a mut Value, files: &mut Vec<&'a mut Value>) {
    if files.len() >= MAX_FILES_OF_RESULT {
        return;
    }
    let is_file = value["encoding"] == "base64"
        && value["data"].is_string()
        && value["type"].as_str().is_some_and(|media_type| {
            matches!(FileKind::of(media_type), FileKind::Image | FileKind::Pdf)
        });
    if is_file {
        files.push(value);
        return;
    }
    match value {
        Value::Array(values) => {
            for value in values {
                find(value, files);
            }
        }
        Value::Object(object) => {
            for value in object.values_mut() {
                find(value, files);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn upload_of(file: &Value) -> Option<Upload> {
    let bytes = STANDARD.decode(file["data"].as_str()?).ok()?;
    Some(Upload {
        media_type: file["type"].as_str()?.to_owned(),
        file_name: String::new(),
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_found_wherever_they_stand() {
        let image = json!({"encoding": "base64", "type": "image/png", "data": "AAA="});
        let sound = json!({"encoding": "base64", "type": "audio/wav", "data": "AAA="});
        let mut value = json!(["a", image, {"content": [sound, image]}, {"type": "image/png"}]);
        let mut files = Vec::new();
        find(&mut value, &mut files);
        assert_eq!(files.len(), 2);
        assert_eq!(
            upload_of(files[0]).map(|upload| upload.bytes),
            Some(vec![0, 0])
        );
        let mut many = json!(vec![image; 30]);
        let mut files = Vec::new();
        find(&mut many, &mut files);
        assert_eq!(files.len(), MAX_FILES_OF_RESULT);
    }
}
