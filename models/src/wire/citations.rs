//! The sources that a reply cites: on every wire, the one list of the reply's citations.
//!
//! Providers name a source in many forms. The form tells its meaning, whatever the wire: gateways put the forms of one
//! wire into frames of another.

use everturn_proto::{
    limits::{MAX_CITATIONS, MAX_CITED_BYTES},
    turn::Citation,
};
use reqwest::Url;
use serde_json::Value;

use super::hearing::without_nul;

/// The fields around a source: OpenAI's `url_citation`, and Gemini's kinds of a grounding chunk.
const WRAPPERS: &[&str] = &[
    "url_citation",
    "file_citation",
    "web",
    "retrievedContext",
    "retrieved_context",
    "maps",
];
/// The fields with the address of a source.
const ADDRESSES: &[&str] = &["url", "uri", "source"];
/// The fields with the title of a source, the best first.
const TITLES: &[&str] = &[
    "title",
    "document_title",
    "filename",
    "filepath",
    "file_id",
    "source",
];
/// The fields with the cited passage.
const PASSAGES: &[&str] = &["cited_text", "content", "snippet", "quote", "text"];

/// The citations of a reply, in the order in which the provider named the sources first.
#[derive(Debug, Default)]
pub(crate) struct Citations {
    list: Vec<Citation>,
    has_warned: bool,
}

impl Citations {
    /// Takes a list of citations, in any known form. Another value is no list.
    pub(crate) fn hear_list(&mut self, list: &Value) {
        for value in list.as_array().into_iter().flatten() {
            self.hear(value);
        }
    }

    /// Takes a citation. A source that the list has already only adds its missing fields, because some providers repeat
    /// the list in each frame. A value without title and address is no citation.
    pub(crate) fn hear(&mut self, value: &Value) {
        let Some(citation) = citation(value) else {
            return;
        };
        let is_known = |known: &&mut Citation| {
            if citation.url.is_empty() {
                known.url.is_empty() && known.title == citation.title && known.text == citation.text
            } else {
                known.url == citation.url
            }
        };
        if let Some(known) = self.list.iter_mut().find(is_known) {
            for (kept, new) in [
                (&mut known.title, citation.title),
                (&mut known.text, citation.text),
            ] {
                if kept.is_empty() {
                    *kept = new;
                }
            }
            return;
        }
        if self.list.len() < MAX_CITATIONS {
            self.list.push(citation);
        } else if !self.has_warned {
            self.has_warned = true;
            tracing::warn!(
                limit = MAX_CITATIONS,
                "a reply cites more sources than are kept"
            );
        }
    }

    /// Returns the citations.
    pub(crate) fn finish(self) -> Vec<Citation> {
        self.list
    }
}

/// Returns the citation in a value.
fn citation(value: &Value) -> Option<Citation> {
    // Perplexity and xAI send bare addresses.
    if let Some(address) = value.as_str() {
        let url = url(address)?;
        return Some(Citation {
            url,
            ..Citation::default()
        });
    }
    let mut inner = WRAPPERS.iter().map(|name| &value[name]);
    let value = inner.rfind(|inner| inner.is_object()).unwrap_or(value);
    let texts = |names: &'static [&str]| {
        let texts = names.iter().filter_map(|name| value[name].as_str());
        texts.map(str::trim).filter(|text| !text.is_empty())
    };
    let first = |names| texts(names).next().map(bounded).unwrap_or_default();
    let citation = Citation {
        url: texts(ADDRESSES).find_map(url).unwrap_or_default(),
        title: first(TITLES),
        text: first(PASSAGES),
    };
    (!citation.url.is_empty() || !citation.title.is_empty()).then_some(citation)
}

/// Returns an address that a reader may follow. A page makes a link of the address, so other schemes than `http` and
/// `https` are left out.
fn url(address: &str) -> Option<String> {
    let is_short = address.len() <= MAX_CITED_BYTES;
    let url = Url::parse(address).ok().filter(|_| is_short)?;
    matches!(url.scheme(), "http" | "https").then(|| url.into())
}

/// Returns the text without NUL, cut at the limit.
fn bounded(text: &str) -> String {
    without_nul(&text[..text.floor_char_boundary(MAX_CITED_BYTES)])
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::wire::tests::values;

    fn heard(values: &[Value]) -> Vec<[String; 3]> {
        let mut citations = Citations::default();
        for value in values {
            citations.hear(value);
        }
        let list = citations.finish().into_iter();
        list.map(|it| [it.url, it.title, it.text]).collect()
    }

    #[test]
    fn a_source_is_found_in_every_form() {
        for (value, expected) in [
            (
                json!("https://a.example/x"),
                ["https://a.example/x", "", ""],
            ),
            (
                json!({"type": "url_citation", "url_citation": {"url": "https://a.example/", "title": "A", "content": "c"}}),
                ["https://a.example/", "A", "c"],
            ),
            (
                json!({"type": "url_citation", "url": "https://a.example/", "title": "A", "start_index": 1}),
                ["https://a.example/", "A", ""],
            ),
            (
                json!({"type": "file_citation", "file_id": "file_1", "filename": "a.pdf"}),
                ["", "a.pdf", ""],
            ),
            (
                json!({"type": "char_location", "document_title": "Report", "cited_text": "It rains."}),
                ["", "Report", "It rains."],
            ),
            (
                json!({"type": "search_result_location", "source": "doc 7", "title": null, "cited_text": "x"}),
                ["", "doc 7", "x"],
            ),
            (
                json!({"web": {"uri": "https://a.example/", "title": "a.example"}}),
                ["https://a.example/", "a.example", ""],
            ),
            (
                json!({"url": "javascript:alert(1)", "title": "A"}),
                ["", "A", ""],
            ),
        ] {
            assert_eq!(
                heard(from_ref(&value)),
                [expected.map(str::to_owned)],
                "{value}"
            );
        }
        for value in [
            json!(null),
            json!(7),
            json!("a"),
            json!({}),
            json!({"text": "x"}),
        ] {
            assert!(heard(from_ref(&value)).is_empty(), "{value}");
        }
    }

    #[test]
    fn a_repeated_source_adds_its_missing_fields_and_the_list_has_a_limit() {
        let sources = [
            json!("https://a.example/"),
            json!("https://b.example/"),
            json!({"url": "https://a.example/", "title": "A"}),
            json!({"url": "https://a.example/", "title": "Another"}),
        ];
        let expected = [
            ["https://a.example/", "A", ""],
            ["https://b.example/", "", ""],
        ];
        assert_eq!(heard(&sources), expected.map(|it| it.map(str::to_owned)));

        let many: Vec<Value> = (0..300)
            .map(|n| json!(format!("https://a.example/{n}")))
            .collect();
        assert_eq!(heard(&many).len(), MAX_CITATIONS);
        let long = json!({"title": "é".repeat(MAX_CITED_BYTES), "url": "https://a.example/".repeat(MAX_CITED_BYTES)});
        let [[url, title, _]] = &heard(&[long])[..] else {
            panic!("one citation");
        };
        assert!(
            url.is_empty() && title.len() <= MAX_CITED_BYTES && title.len() > MAX_CITED_BYTES - 2
        );
    }

    proptest! {
        #[test]
        fn no_value_breaks_the_list(list in values(&["url", "title", "source", "web", "text"], &["https://a.example", "a"])) {
            let mut citations = Citations::default();
            citations.hear_list(&list);
            citations.hear(&list);
            for it in citations.finish() {
                prop_assert!(it.url.is_empty() || it.url.starts_with("http"));
                prop_assert!(!it.url.is_empty() || !it.title.is_empty());
            }
        }
    }
}
