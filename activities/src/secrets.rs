//! Secrets that somebody is sent, and what they say without them.
//!
//! A provider, a service or a server may repeat what it was sent, and no secret may get into events, histories, logs or to a
//! model. This keeps honest ones from it: who wants to give a secret away has other ways.

use std::{cmp::Reverse, sync::Arc};

use serde_json::Value;

/// Shorter secrets may be ordinary words. Cutting them out of texts would reveal them.
const MIN_BYTES: usize = 8;
/// Stands where a secret was.
const CUT: &str = "***";

/// Secrets, in the forms in which texts have them. They are shown nowhere.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Arc<[String]>);

impl Secrets {
    /// The secrets in these values: of headers, of variables, or keys as they are. A header's scheme is no secret.
    pub(crate) fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets = values.into_iter().map(without_scheme);
        let secrets = secrets.filter(|secret| secret.len() >= MIN_BYTES);
        let mut forms: Vec<_> = secrets.flat_map(forms).collect();
        // One that another one begins with would leave the rest of it.
        forms.sort_by_key(|form| Reverse(form.len()));
        forms.dedup();
        Self(forms.into())
    }

    /// True when there is nothing to cut out.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without the secrets. It may have been shortened in the middle of one.
    pub(crate) fn cut(&self, text: String) -> String {
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

    /// The bytes without the secrets, whether they are a text or not.
    pub(crate) fn cut_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(bytes) {
            Ok(text) => self.cut(text).into_bytes(),
            Err(error) => {
                let secrets = self.0.iter().map(String::as_bytes);
                secrets.fold(error.into_bytes(), |bytes, secret| without(&bytes, secret))
            }
        }
    }

    /// The JSON without the secrets in its texts. It stays JSON, whatever a secret looks like.
    pub(crate) fn cut_json(&self, json: String) -> String {
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

/// The secret part of a header's value, like that of `Bearer token`.
fn without_scheme(value: &str) -> &str {
    let value = value.trim();
    let is_scheme = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic());
    match value.split_once(' ') {
        Some((scheme, rest)) if is_scheme(scheme) && !rest.trim().contains(' ') => rest.trim(),
        _ => value,
    }
}

/// A secret as it is, and as texts in JSON have it. Some libraries put a `\` before a `/`.
fn forms(secret: &str) -> Vec<String> {
    let quoted = Value::from(secret).to_string();
    let escaped = quoted[1..quoted.len() - 1].to_owned();
    let with_slashes = escaped.replace('/', "\\/");
    vec![secret.to_owned(), escaped, with_slashes]
}

/// The bytes with every occurrence of a secret cut out.
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
