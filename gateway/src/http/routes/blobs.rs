//! Images and files: uploads for messages, and downloads.

use std::{fmt::Write, time::Duration};

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use everturn_store::{Blob, BlobFile, Upload};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type},
    },
};

use super::idempotency::idempotency_key;
use crate::{
    http::{
        extract::{Caller, Params, checked_id, unread_body},
        openapi::{IdempotencyKey, problems},
        problem::{Code, Problem},
        range::{self, Asked},
        state::GatewayState,
    },
    schema::Id,
};

/// Maximum time for the body to arrive: ten megabytes over a slow line.
const BODY_LIMIT: Duration = Duration::from_secs(120);
/// The policy forbids a file to run scripts, to load resources and to appear in a frame, whatever type a browser
/// detects.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UploadQuery {
    /// Name of the file, for people and models. The gateway drops the path and keeps at most 255 bytes.
    #[serde(default)]
    #[param(example = "plan.png")]
    file_name: String,
}

/// The bytes of a file.
struct FileBytes;

impl PartialSchema for FileBytes {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
            .min_length(Some(1))
            .into()
    }
}

impl ToSchema for FileBytes {}

/// A stored file.
#[derive(Serialize, ToSchema)]
#[schema(as = Blob)]
pub(super) struct BlobBody {
    /// Id of the file, for the attachments of messages.
    #[schema(value_type = Id)]
    blob_id: String,
    /// The media type, without parameters.
    #[schema(example = "image/png")]
    media_type: String,
    /// The name of the file, without a path; may be empty.
    file_name: String,
    bytes: u32,
    /// The SHA-256 hash of the bytes, in hexadecimal digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    sha256: String,
}

impl From<Blob> for BlobBody {
    fn from(blob: Blob) -> Self {
        Self {
            blob_id: blob.id,
            media_type: blob.media_type,
            file_name: blob.file_name,
            bytes: blob.bytes,
            sha256: blob.sha256,
        }
    }
}

problems!(
    UploadRefusals: InvalidBody, InvalidId, InvalidParameter, BlobTooLarge, BlobTypeRefused, IdempotencyConflict, TooManyBlobs,
    BlobsUnavailable
);

/// Uploads a file for a message.
///
/// The body has the file's bytes, and `Content-Type` the media type. A file without a message is removed after a day. A
/// repeated `Idempotency-Key` returns the stored file.
#[utoipa::path(
    post, path = "/blobs", tag = "files", operation_id = "upload_blob", params(UploadQuery, IdempotencyKey),
    request_body(content((FileBytes = "image/png"), (FileBytes = "application/pdf"), (FileBytes = "text/plain"))),
    responses((status = 201, body = BlobBody, description = "Stored"), UploadRefusals)
)]
pub(super) async fn upload(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(query): Params<UploadQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<BlobBody>), Problem> {
    let key = idempotency_key(&headers)?;
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let media_type = text(header::CONTENT_TYPE).unwrap_or_default().to_owned();
    let limit = state.ports.blobs.rules().max_bytes;
    let said: Option<u64> = text(header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    if said.is_some_and(|bytes| bytes > limit as u64) {
        return Err(too_large(limit));
    }
    let Ok(read) = tokio::time::timeout(BODY_LIMIT, limited(body, limit)).await else {
        let detail = format!("The file did not arrive within {} s.", BODY_LIMIT.as_secs());
        return Err(Problem::new(Code::InvalidBody, detail));
    };
    let upload = Upload {
        media_type,
        file_name: query.file_name,
        bytes: read?,
    };
    let blobs = &state.ports.blobs;
    let blob = blobs.upload(&caller.access, upload, key.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(blob.into())))
}

fn too_large(limit: usize) -> Problem {
    Problem::new(
        Code::BlobTooLarge,
        format!("A file may have at most {limit} bytes."),
    )
}

/// Reads the bytes of a body, and stops at the limit.
async fn limited(body: Body, limit: usize) -> Result<Vec<u8>, Problem> {
    let (mut body, mut bytes) = (body.into_data_stream(), Vec::new());
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| unread_body(&error))?;
        if bytes.len() + chunk.len() > limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

problems!(ReadRefusals: InvalidId, BlobNotFound, RangeNotSatisfiable, BlobsUnavailable);

/// Reads a file, or one range of its bytes.
///
/// A file lives as long as its conversation. `ETag` is the hash of the file's bytes, which never change. With the header
/// `Range`, the response has one range of the bytes.
#[utoipa::path(
    get, path = "/blobs/{id}", tag = "files", operation_id = "read_blob",
    params(("id" = Id, Path, description = "The file.")),
    responses(
        (
            status = 200, description = "The file, with the file's media type",
            content(
                (FileBytes = "image/png"), (FileBytes = "image/jpeg"), (FileBytes = "image/gif"), (FileBytes = "image/webp"),
                (FileBytes = "application/pdf"), (FileBytes = "text/plain"), (FileBytes = "text/markdown"),
                (FileBytes = "text/csv"), (FileBytes = "application/json")
            )
        ),
        (status = 206, description = "The bytes of `Range`, with their positions in `Content-Range`"),
        (status = 304, description = "The file is unchanged: `If-None-Match` names the `ETag`"),
        ReadRefusals
    )
)]
pub(super) async fn read(
    State(state): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = checked_id("blob id", id)?;
    let most = state.ports.blobs.rules().max_bytes;
    let _room = state.room(&caller, most).await?;
    let file = state.ports.blobs.file(&caller.access, &id).await?;
    let BlobFile { blob, bytes } = file.ok_or_else(|| Problem::blob_not_found(&id))?;
    let etag = format!("\"{}\"", blob.sha256);
    let known = headers.get(header::IF_NONE_MATCH);
    let is_known = known
        .and_then(|known| known.to_str().ok())
        .is_some_and(|known| {
            known
                .split(',')
                .any(|tag| tag.trim().trim_start_matches("W/") == etag)
        });
    let content_type = if blob.media_type.starts_with("text/") {
        format!("{}; charset=utf-8", blob.media_type)
    } else {
        blob.media_type.clone()
    };
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let content_type = [(header::CONTENT_TYPE, content_type)];
        match range::asked(&headers, &etag, bytes.len()) {
            Asked::Whole => (content_type, bytes).into_response(),
            Asked::Part(part) => {
                let (first, last) = (part.start, part.end - 1);
                let content_range = format!("bytes {first}-{last}/{}", bytes.len());
                let content_range = [(header::CONTENT_RANGE, content_range)];
                let part = bytes[part].to_vec();
                (
                    StatusCode::PARTIAL_CONTENT,
                    content_type,
                    content_range,
                    part,
                )
                    .into_response()
            }
            Asked::Beyond => return Ok(beyond(bytes.len())),
        }
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::ACCEPT_RANGES, "bytes"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        // The browser asks again before every use, because a deleted file must not be shown from a cache.
        (header::CACHE_CONTROL, "private, no-cache"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        (header::ETAG, etag),
        (header::CONTENT_DISPOSITION, disposition(&blob)),
    ] {
        let value = HeaderValue::try_from(value).map_err(|_no_text| Problem::internal())?;
        headers.insert(name, value);
    }
    Ok(response)
}

/// Returns the response to a request for a range beyond the file's end.
fn beyond(length: usize) -> Response {
    let detail = format!("The file has {length} bytes.");
    let problem = Problem::new(Code::RangeNotSatisfiable, detail);
    let content_range = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
    (content_range, problem).into_response()
}

/// Returns the header `Content-Disposition`: a browser may show an image in a page, and saves every other type as a
/// file.
fn disposition(blob: &Blob) -> String {
    let is_image = matches!(
        blob.media_type.as_str(),
        "image/png" | "image/jpeg" | "image/gif" | "image/webp"
    );
    let kind = if is_image { "inline" } else { "attachment" };
    if blob.file_name.is_empty() {
        return kind.to_owned();
    }
    let name = percent_encoded(&blob.file_name);
    format!("{kind}; filename*=UTF-8''{name}")
}

/// Encodes a name for a header, as in RFC 8187.
fn percent_encoded(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
            encoded.push(char::from(byte));
        } else {
            let _infallible = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
