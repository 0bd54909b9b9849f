//! Secrets in outgoing requests, and texts without them.
//!
//! A provider, a service or a server may repeat a secret of its request, and no secret may get into events, histories,
//! logs or to a model. The removal protects against honest servers; a malicious server has other ways to reveal a
//! secret.

use std::{cmp::Reverse, sync::Arc};

use serde_json::Value;

/// The least length of a removed secret. Shorter secrets may be ordinary words: the gaps in a text would reveal a short
/// secret.
const MIN_BYTES: usize = 8;
/// The replacement of a secret.
const CUT: &str = "***";

/// Secrets, in the forms of texts. No output shows the secrets.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[String]>);

impl Secrets {
    /// Collects the secrets in the values: of headers, of variables, or plain keys. A header's scheme is no secret.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets = values.into_iter().map(without_scheme);
        let secrets = secrets.filter(|secret| secret.len() >= MIN_BYTES);
        let mut forms: Vec<_> = secrets.flat_map(forms).collect();
        // Longer forms come first: the removal of a form that begins another would leave the other's rest.
        forms.sort_by_key(|form| Reverse(form.len()));
        forms.dedup();
        Self(forms.into())
    }

    /// True without secrets.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text without the secrets. The text may have been cut off in the middle of a secret.
    pub fn cut(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            let text = if text.contains(secret) {
                text.replace(secret, CUT)
            } else {
                text
            };
            let beginnings = (MIN_BYTES..secret.len()).rev();
            let whole = beginnings
                .filter_map(|bytes| secret.get(..bytes))
                .find_map(|beginning| text.strip_suffix(beginning));
            whole.map_or_else(|| text.clone(), |whole| format!("{whole}{CUT}"))
        })
    }

    /// Returns the bytes without the secrets, whether the bytes are a text or not.
    pub fn cut_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(bytes) {
            Ok(text) => self.cut(text).into_bytes(),
            Err(error) => {
                let secrets = self.0.iter().map(String::as_bytes);
                secrets.fold(error.into_bytes(), |bytes, secret| without(&bytes, secret))
            }
        }
    }

    /// Returns the JSON without the secrets in its texts. The result is valid JSON for any secret.
    pub fn cut_json(&self, json: String) -> String {
        if !self.0.iter().any(|secret| json.contains(secret)) {
            return json;
        }
        match serde_json::from_str(&json) {
            Ok(mut value) => {
                self.cut_value(&mut value);
                value.to_string()
            }
            Err(_) => self.cut(json),
        }
    }

    fn cut_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.cut(std::mem::take(text)),
            Value::Array(values) => values.iter_mut().for_each(|value| self.cut_value(value)),
            Value::Object(fields) => {
                let all = std::mem::take(fields);
                fields.extend(all.into_iter().map(|(name, mut value)| {
                    self.cut_value(&mut value);
                    (self.cut(name), value)
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Returns the secret part of a header's value, like `token` of `Bearer token`.
fn without_scheme(value: &str) -> &str {
    let value = value.trim();
    let is_scheme = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic());
    match value.split_once(' ') {
        Some((scheme, rest)) if is_scheme(scheme) && !rest.trim().contains(' ') => rest.trim(),
        _ => value,
    }
}

/// Returns a secret unchanged, and in its forms in JSON texts. Some libraries put a `\` before a `/`.
fn forms(secret: &str) -> Vec<String> {
    let quoted = Value::from(secret).to_string();
    let escaped = quoted[1..quoted.len() - 1].to_owned();
    let with_slashes = escaped.replace('/', "\\/");
    vec![secret.to_owned(), escaped, with_slashes]
}

/// Returns the bytes with every occurrence of a secret removed.
fn without(bytes: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest
        .windows(secret.len())
        .position(|window| window == secret)
    {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(CUT.as_bytes());
        rest = &rest[at + secret.len()..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SECRET: &str = "s3cret/to\"ken";

    fn cut(text: &str) -> String {
        Secrets::of([SECRET]).cut(text.to_owned())
    }

    #[test]
    fn a_secret_is_cut_out_in_each_form() {
        assert_eq!(cut("not s3cret/to\"ken, please"), "not ***, please");
        assert_eq!(cut(r#"{"key": "s3cret/to\"ken"}"#), r#"{"key": "***"}"#);
        assert_eq!(cut(r#"{"key": "s3cret\/to\"ken"}"#), r#"{"key": "***"}"#);
        assert_eq!(
            cut("shortened in s3cret/to"),
            "shortened in ***",
            "its beginning"
        );
        assert_eq!(cut("s3cret is a word"), "s3cret is a word");
    }

    #[test]
    fn the_scheme_of_a_header_is_no_secret() {
        let secrets = Secrets::of(["Bearer abcdefgh", "several words in it", "short"]);
        let cut = |text: &str| secrets.cut(text.to_owned());
        assert_eq!(cut("the key abcdefgh"), "the key ***");
        assert_eq!(cut("Bearer abcdefgh"), "Bearer ***");
        assert_eq!(cut("several words in it"), "***");
        assert_eq!(cut("in short"), "in short");
    }

    #[test]
    fn of_two_secrets_the_longer_one_goes_first() {
        let secrets = Secrets::of(["abcdefgh", "abcdefgh-ijklmnop"]);
        let text = "abcdefgh-ijklmnop and abcdefgh".to_owned();
        assert_eq!(secrets.cut(text), "*** and ***");
    }

    #[test]
    fn json_stays_json() {
        let secrets = Secrets::of(["12345678"]);
        let json = r#"{"id":12345678,"12345678":["of 12345678"]}"#.to_owned();
        let cut: Value = serde_json::from_str(&secrets.cut_json(json)).unwrap();
        assert_eq!(cut, json!({"***": ["of ***"], "id": 12_345_678}));
        assert_eq!(secrets.cut_json("[12345678".to_owned()), "[***");
    }

    proptest! {
        #[test]
        fn any_text_loses_its_secrets_and_nothing_else(
            before in prop::collection::vec(any::<u8>(), 0..20), repeats in 0_usize..4, after in "\\PC{0,20}",
        ) {
            let secrets = Secrets::of([SECRET]);
            let bytes = [before, SECRET.repeat(repeats).into_bytes(), after.into_bytes()].concat();
            let holds = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
            let cut = secrets.cut_bytes(bytes.clone());
            prop_assert!(!holds(&cut));
            prop_assert!(holds(&bytes) || bytes == cut);
            if let Ok(text) = String::from_utf8(bytes.clone()) {
                prop_assert!(!holds(secrets.cut_json(text).as_bytes()));
            }
        }
    }
}
