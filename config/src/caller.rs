//! `[providers.NAME.caller]`: the facts about the caller of a turn that a provider gets.

use std::collections::BTreeMap;

use everturn_models::{CallerFields, CallerText, ProviderKind};
use serde::Deserialize;
use toml::Spanned;

use super::{checker::Checker, headers::reserved};

/// The limits exist because the fields are part of each request. OpenAI accepts 16 fields of metadata.
const MAX_FIELDS: usize = 16;
const MAX_TEXT_BYTES: usize = 256;
const MAX_NAME_BYTES: usize = 64;

/// Headers that Everturn writes into each request to a model.
const OWN_HEADERS: [&str; 4] = [
    "accept",
    "anthropic-version",
    "idempotency-key",
    "user-agent",
];

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CallerTable {
    user: Option<Spanned<String>>,
    metadata: BTreeMap<Spanned<String>, Spanned<String>>,
    tags: Vec<Spanned<String>>,
    headers: BTreeMap<Spanned<String>, Spanned<String>>,
}

impl CallerTable {
    /// Checks the table of a provider of this kind. `has_header` is true for the provider's other headers.
    pub(super) fn check(
        &self,
        check: &mut Checker<'_>,
        kind: ProviderKind,
        has_header: impl Fn(&str) -> bool,
    ) -> CallerFields {
        self.check_kind(check, kind);
        for name in self.headers.keys() {
            let lower = name.get_ref().to_ascii_lowercase();
            let is_own = OWN_HEADERS.contains(&lower.as_str());
            if is_own || reserved(&lower).is_some() || has_header(&lower) {
                check.wrong(
                    name,
                    format!("the header `{lower}` has another value already; choose another name"),
                );
            } else if !is_header_name(&lower) {
                check.wrong(
                    name,
                    format!(
                        "a header's name has 1 to {MAX_NAME_BYTES} letters, digits, `-` and `_`"
                    ),
                );
            }
        }
        let user = self.user.as_ref().and_then(|written| text(check, written));
        CallerFields {
            user,
            metadata: texts(check, "metadata", &self.metadata, str::to_owned),
            tags: self.tags(check),
            headers: texts(check, "headers", &self.headers, str::to_ascii_lowercase),
        }
    }

    /// Refuses fields that requests of the kind do not have.
    fn check_kind(&self, check: &mut Checker<'_>, kind: ProviderKind) {
        let is_gemini = kind == ProviderKind::Gemini;
        let has_metadata = !is_gemini && kind != ProviderKind::Anthropic;
        let metadata = self.metadata.keys().next();
        let unknown = [
            ("user", self.user.as_ref().filter(|_| is_gemini)),
            ("metadata", metadata.filter(|_| !has_metadata)),
            ("tags", self.tags.first().filter(|_| !has_metadata)),
        ];
        for (key, at) in unknown {
            if let Some(at) = at {
                check.wrong(
                    at,
                    format!(
                        "requests to a provider of kind `{}` have no field for `{key}`; remove `{key}`, or use `headers`",
                        kind.as_str()
                    ),
                );
            }
        }
    }

    fn tags(&self, check: &mut Checker<'_>) -> Vec<CallerText> {
        if let Some(first) = self.tags.get(MAX_FIELDS) {
            check.wrong(first, format!("`tags` has at most {MAX_FIELDS} texts"));
        }
        let tags = self.tags.iter().filter_map(|tag| text(check, tag));
        tags.collect()
    }
}

/// Checks a table of texts, and gives each name the form `named`.
fn texts(
    check: &mut Checker<'_>,
    key: &str,
    written: &BTreeMap<Spanned<String>, Spanned<String>>,
    named: impl Fn(&str) -> String,
) -> BTreeMap<String, CallerText> {
    if let Some(over) = written.keys().nth(MAX_FIELDS) {
        check.wrong(over, format!("`{key}` has at most {MAX_FIELDS} entries"));
    }
    let mut texts = BTreeMap::new();
    for (name, written) in written {
        if !(1..=MAX_NAME_BYTES).contains(&name.get_ref().len()) {
            check.wrong(
                name,
                format!("a name in `{key}` has 1 to {MAX_NAME_BYTES} bytes"),
            );
        }
        if let Some(text) = text(check, written)
            && texts.insert(named(name.get_ref()), text).is_some()
        {
            check.named_twice(name, "entry", name.get_ref());
        }
    }
    texts
}

fn text(check: &mut Checker<'_>, written: &Spanned<String>) -> Option<CallerText> {
    let text = written.get_ref();
    if !(1..=MAX_TEXT_BYTES).contains(&text.len()) || text.contains(char::is_control) {
        check.wrong(
            written,
            format!("the text has 1 to {MAX_TEXT_BYTES} bytes, and no control characters"),
        );
        return None;
    }
    match CallerText::parse(text) {
        Ok(text) => Some(text),
        Err(reason) => {
            check.wrong(written, reason);
            None
        }
    }
}

fn is_header_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}
