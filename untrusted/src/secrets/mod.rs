//! Secrets in outgoing requests, and texts without them.
//!
//! A provider, a service or a server may repeat a secret of its request, and no secret may get into events, histories,
//! logs or to a model. The removal protects against honest servers; a malicious server has other ways to reveal a
//! secret.

mod forms;

use std::sync::Arc;

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
        let texts = secrets.flat_map(forms::decoded);
        let forms = texts.flat_map(|text| forms::encoded(&text));
        let mut forms: Vec<_> = forms.filter(|form| form.len() >= MIN_BYTES).collect();
        // Longer forms come first: the removal of a form that begins another would leave the other's rest.
        forms.sort_by(|one, other| (other.len(), one).cmp(&(one.len(), other)));
        forms.dedup();
        Self(forms.into())
    }

    /// True without secrets.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text without the secrets. The text may have been cut off in the middle of a secret.
    pub fn cut(&self, text: String) -> String {
        self.0.iter().fold(text, |mut text, secret| {
            if text.contains(secret) {
                text = text.replace(secret, CUT);
            }
            let mut beginnings = (MIN_BYTES..secret.len()).rev();
            let cut_off = beginnings.find(|bytes| {
                let beginning = secret.get(..*bytes);
                beginning.is_some_and(|beginning| text.ends_with(beginning))
            });
            if let Some(bytes) = cut_off {
                text.truncate(text.len() - bytes);
                text.push_str(CUT);
            }
            text
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
    use base64::{
        Engine as _,
        engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
    };
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
    fn a_secret_is_cut_out_in_each_encoding() {
        // Base64 of the secret, and of texts with the secret at each distance from a group's begin.
        for text in [
            "czNjcmV0L3RvImtlbg==",
            "czNjcmV0L3RvImtlbg",
            "s3cret%2Fto%22ken",
            "s3cret%2fto%22ken",
        ] {
            assert_eq!(cut(&format!("it is {text}.")), "it is ***.", "{text}");
        }
        for (before, after) in [("", ":x"), ("u", ""), ("us", "!!"), ("user:", "-and-more")] {
            for encoding in [STANDARD, URL_SAFE_NO_PAD] {
                let text = encoding.encode(format!("{before}{SECRET}{after}"));
                let rest = cut(&text);
                assert!(rest.contains("***"), "{text}: {rest}");
                // A character at each end may belong to the neighbours of the secret, too.
                assert!(rest.len() + 13 <= text.len(), "{text}: {rest}");
            }
        }
    }

    #[test]
    fn a_secret_is_cut_out_decoded() {
        // `user:a/long password` of HTTP's basic authentication.
        let basic = format!("Basic {}", STANDARD.encode("user:a/long password"));
        let secrets = Secrets::of([basic.as_str(), "100%25%2Dcertain"]);
        let cut = |text: &str| secrets.cut(text.to_owned());
        assert_eq!(cut("user:a/long password"), "***");
        assert_eq!(cut("wrong: a/long password"), "wrong: ***");
        assert_eq!(cut("wrong: a%2Flong%20password"), "wrong: ***");
        assert_eq!(cut("of 100%-certain"), "of ***");
        assert_eq!(cut("user: another"), "user: another");
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
