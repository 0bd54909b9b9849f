//! The forms of a secret: decoded, as a server may read the secret, and encoded, as a server may repeat the secret.

use base64::{
    Engine as _,
    alphabet::STANDARD as ALPHABET,
    engine::{
        DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig,
        general_purpose::{STANDARD, URL_SAFE},
    },
};
use serde_json::Value;

/// Base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns a secret, the texts that the secret encodes, and the password of a name and a password.
pub(super) fn decoded(secret: &str) -> Vec<String> {
    let mut texts = vec![secret.to_owned()];
    texts.extend(from_base64(secret));
    texts.extend(from_percent(secret));
    // HTTP's basic authentication encodes `name:password`.
    let parts = texts[1..].iter().filter_map(|text| text.split_once(':'));
    let passwords: Vec<_> = parts.map(|(_, password)| password.to_owned()).collect();
    texts.extend(passwords);
    texts
}

/// Returns a text unchanged, and the forms of the text in JSON, in URLs and in Base64.
pub(super) fn encoded(text: &str) -> Vec<String> {
    let quoted = Value::from(text).to_string();
    let escaped = quoted[1..quoted.len() - 1].to_owned();
    // Some libraries put a `\\` before a `/`.
    let with_slashes = escaped.replace('/', "\\/");
    let mut forms = vec![text.to_owned(), escaped, with_slashes];
    // RFC 3986 keeps four marks, and browsers keep five more.
    for kept in ["-._~", "-._~!*'()"] {
        let in_url = to_percent(text, kept);
        forms.push(lower_case(&in_url));
        forms.push(in_url);
    }
    for engine in [STANDARD, URL_SAFE] {
        let whole = engine.encode(text);
        forms.push(whole.trim_end_matches('=').to_owned());
        forms.push(whole);
        forms.extend((0..3).filter_map(|before| inside(&engine, text, before)));
    }
    forms
}

/// Returns the characters of Base64 that the text alone decides, when `before` bytes stand before the text in a group of
/// three bytes.
fn inside(engine: &GeneralPurpose, text: &str, before: usize) -> Option<String> {
    let bytes = [&b"\0\0"[..before], text.as_bytes()].concat();
    let (begin, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
    engine.encode(bytes).get(begin..end).map(str::to_owned)
}

fn from_base64(text: &str) -> Option<String> {
    let text = text.replace('-', "+").replace('_', "/");
    printable(LENIENT.decode(text).ok()?)
}

fn from_percent(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    printable(bytes).filter(|decoded| decoded != text)
}

/// Returns the bytes as a text, if a person could have typed the text.
fn printable(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains(char::is_control)).then_some(text)
}

fn to_percent(text: &str, kept: &str) -> String {
    let encoded = |byte: u8| {
        let character = char::from(byte);
        if character.is_ascii_alphanumeric() || kept.contains(character) {
            character.to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(encoded).collect()
}

/// Returns the percent-encoded text with small hex digits.
fn lower_case(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (hex, rest) = part.split_at(2);
        out.push('%');
        out.push_str(&hex.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}
