//! Bytes as JSON: text as a string, other bytes as base64 with a media type.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// The media type of bytes with an unknown type.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Returns a string for UTF-8 without NUL, because every database can store such a text. Returns base64 with the
/// media type for any other bytes.
pub fn from_bytes(bytes: Vec<u8>, media_type: Option<&str>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text.into(),
        Ok(text) => base64(text.as_bytes(), media_type),
        Err(error) => base64(error.as_bytes(), media_type),
    }
}

/// Returns base64 with the media type, even for bytes that are text.
pub fn base64(bytes: &[u8], media_type: Option<&str>) -> Value {
    json!({ "encoding": "base64", "type": media_type.unwrap_or(UNKNOWN_TYPE), "data": STANDARD.encode(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_the_rest_is_base64() {
        assert_eq!(from_bytes("grün".into(), Some("text/plain")), json!("grün"));
        let binary = json!({"encoding": "base64", "type": "image/png", "data": "/wA="});
        assert_eq!(from_bytes(vec![0xff, 0], Some("image/png")), binary);
        assert_eq!(from_bytes(b"a\0b".to_vec(), None)["type"], UNKNOWN_TYPE);
    }
}
