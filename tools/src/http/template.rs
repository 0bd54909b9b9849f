//! URLs with placeholders for inputs: `https://api.example.com/users/{id}?q={query}`.
//!
//! A value fills part of a path segment or of a query value, percent-encoded. The value cannot change the host, begin
//! a new segment or parameter, or leave a folder with `..`. Placeholders are only allowed where these rules hold.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Url;

/// A URL from the configuration, parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct UrlTemplate {
    /// Scheme, host and port, without placeholders.
    base: Url,
    segments: Vec<Vec<Piece>>,
    parameters: Vec<(String, Vec<Piece>)>,
}

/// Part of a path segment or of a query value.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// A literal text, which may contain percent escapes.
    Fixed(String),
    /// The placeholder of the input with this name.
    Input(String),
}

impl UrlTemplate {
    /// Parses a template. The error describes the fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rest = ["https://", "http://"]
            .into_iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or("the URL must begin with http:// or https://")?;
        if rest.contains('#') {
            return Err("a fragment (#…) is never sent; leave it out".to_owned());
        }
        let authority_end = text.len() - rest.len() + rest.find(['/', '?']).unwrap_or(rest.len());
        let (base, rest) = text.split_at(authority_end);
        if base.contains(['{', '}', '\\']) {
            return Err(
                "an input cannot be part of the host; only of the path and of query values"
                    .to_owned(),
            );
        }
        let base = Url::parse(base).map_err(|error| format!("it is no URL: {error}"))?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err("the URL must not have a user or a password; use `auth`".to_owned());
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let segments = path.split('/').map(pieces).collect::<Result<_, _>>()?;
        let parameters = query
            .split('&')
            .filter(|parameter| !parameter.is_empty())
            .map(|parameter| {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                if name.contains(['{', '}']) {
                    return Err(
                        "an input cannot be the name of a query parameter, only its value"
                            .to_owned(),
                    );
                }
                Ok((name.to_owned(), pieces(value)?))
            });
        let template = Self {
            base,
            segments,
            parameters: parameters.collect::<Result<_, _>>()?,
        };
        let is_dots = |segment: &Vec<Piece>| matches!(&segment[..], [Piece::Fixed(text)] if is_dot_segment(text));
        if template.segments.iter().any(is_dots) {
            return Err("the path must not have `.` or `..` in it".to_owned());
        }
        Ok(template)
    }

    /// Returns the inputs that the path requires.
    pub fn path_inputs(&self) -> BTreeSet<&str> {
        inputs(self.segments.iter().flatten()).collect()
    }

    /// Returns the names of all placeholders.
    pub fn inputs(&self) -> BTreeSet<&str> {
        inputs(
            self.segments
                .iter()
                .flatten()
                .chain(self.parameters.iter().flat_map(|(_, value)| value)),
        )
        .collect()
    }

    /// Returns the URL with these inputs. A query parameter with a missing input is left out. The error is for the
    /// model.
    pub fn fill(&self, values: &BTreeMap<String, String>) -> Result<Url, String> {
        let mut url = self.base.clone();
        let segments = self
            .segments
            .iter()
            .map(|segment| fill_segment(segment, values));
        url.set_path(&segments.collect::<Result<Vec<_>, _>>()?.join("/"));
        let parameters: Vec<String> = self
            .parameters
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", joined(value, values).ok()?)))
            .collect();
        url.set_query(
            (!parameters.is_empty())
                .then(|| parameters.join("&"))
                .as_deref(),
        );
        Ok(url)
    }
}

fn fill_segment(segment: &[Piece], values: &BTreeMap<String, String>) -> Result<String, String> {
    for name in inputs(segment.iter()) {
        let value = values
            .get(name)
            .ok_or_else(|| format!("`{name}` is missing: it is part of the address."))?;
        // An empty value would name a different resource: `/users/` is not one user. A value like `a/..` would leave
        // the folder at servers that decode `%2F` early.
        let is_step = value
            .split(['/', '\\'])
            .any(|part| matches!(part, "." | ".."));
        if value.is_empty() || is_step {
            return Err(format!(
                "`{name}` cannot be {value:?}: it is part of the address."
            ));
        }
    }
    let text = joined(segment, values)
        .map_err(|name| format!("`{name}` is missing: it is part of the address."))?;
    // Literal text and values may form `..` together, although no part alone does.
    if is_dot_segment(&text) {
        return Err("The inputs make up a step to another address (`.` or `..`).".to_owned());
    }
    Ok(text)
}

/// Joins the pieces into a text. The error is the name of the first missing input.
fn joined<'a>(pieces: &'a [Piece], values: &BTreeMap<String, String>) -> Result<String, &'a str> {
    let text = pieces.iter().map(|piece| match piece {
        Piece::Fixed(text) => Ok(text.clone()),
        Piece::Input(name) => values
            .get(name)
            .map(|value| encode(value))
            .ok_or(name.as_str()),
    });
    text.collect()
}

/// Returns true for a segment that URL parsers read as `.` or `..`, even with escaped dots.
fn is_dot_segment(segment: &str) -> bool {
    matches!(
        segment.to_ascii_lowercase().replace("%2e", ".").as_str(),
        "." | ".."
    )
}

fn inputs<'a>(pieces: impl Iterator<Item = &'a Piece>) -> impl Iterator<Item = &'a str> {
    pieces.filter_map(|piece| match piece {
        Piece::Input(name) => Some(name.as_str()),
        Piece::Fixed(_) => None,
    })
}

/// Escapes every byte except RFC 3986's unreserved characters.
pub(crate) fn encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            out.extend([
                '%',
                char::from(HEX[usize::from(byte >> 4)]),
                char::from(HEX[usize::from(byte & 15)]),
            ]);
        }
    }
    out
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((fixed, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}').ok_or("a `{` has no `}`")?;
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        {
            return Err(format!(
                "`{{{name}}}` is no name of an input: letters, digits, `_` and `-`"
            ));
        }
        pieces.extend([
            Piece::Fixed(fixed.to_owned()),
            Piece::Input(name.to_owned()),
        ]);
        rest = behind;
    }
    pieces.push(Piece::Fixed(rest.to_owned()));
    pieces.retain(|piece| *piece != Piece::Fixed(String::new()));
    if pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Fixed(text) if text.contains(['}', '\\'])))
    {
        return Err("a `}` has no `{`, or there is a `\\`".to_owned());
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEMPLATE: &str =
        "https://api.example.com:8443/v1/users/{id}/x-{part}.json?q={query}&fixed=1&n={n}";

    fn fill(template: &str, values: &[(&str, &str)]) -> Result<String, String> {
        let values = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        UrlTemplate::parse(template)
            .unwrap()
            .fill(&values)
            .map(String::from)
    }

    #[test]
    fn values_are_escaped_in_their_placeholder() {
        let url = fill(
            TEMPLATE,
            &[
                ("id", "a/b c"),
                ("part", "ü"),
                ("query", "x&y=z#f"),
                ("n", "1"),
            ],
        )
        .unwrap();
        assert_eq!(
            url,
            "https://api.example.com:8443/v1/users/a%2Fb%20c/x-%C3%BC.json?q=x%26y%3Dz%23f&fixed=1&n=1"
        );
    }

    #[test]
    fn missing_parameters_are_left_out() {
        let url = fill(TEMPLATE, &[("id", "7"), ("part", "p")]).unwrap();
        assert_eq!(
            url,
            "https://api.example.com:8443/v1/users/7/x-p.json?fixed=1"
        );
        assert!(
            fill(TEMPLATE, &[("part", "p")])
                .unwrap_err()
                .contains("`id` is missing")
        );
        assert_eq!(fill("http://h?q={q}", &[]).unwrap(), "http://h/");
    }

    #[test]
    fn steps_are_refused() {
        for bad in ["", ".", "..", "../admin", "a/../b", "..\\x"] {
            assert!(fill("http://h/{id}/y", &[("id", bad)]).is_err(), "{bad:?}");
        }
        assert!(fill("http://h/.{id}/y", &[("id", "x")]).is_ok());
        assert!(fill("http://h/%2e{id}.{other}", &[("id", "."), ("other", "x")]).is_err());
        assert!(fill("http://h/{a}{b}/y", &[("a", "."), ("b", ".")]).is_err());
    }

    #[test]
    fn templates_are_checked() {
        for (bad, expected) in [
            ("ftp://h/", "begin with http"),
            ("https://{host}/", "part of the host"),
            ("https://h:{port}/", "part of the host"),
            ("https://h\\{x}/", "part of the host"),
            ("https://user:pass@h/", "user or a password"),
            ("https://h/#f", "fragment"),
            ("https://h/?{name}=1", "name of a query parameter"),
            ("https://h/{id", "no `}`"),
            ("https://h/id}", "no `{`"),
            ("https://h/{}", "no name"),
            ("https://h/a/../b", "`..`"),
            ("https:///x", "no URL"),
        ] {
            let error = UrlTemplate::parse(bad).unwrap_err();
            assert!(error.contains(expected), "{bad}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_value_changes_nothing_but_its_placeholder(
            id in ".{0,12}", part in "[./\\\\%a-c?#@:]{0,6}", query in ".{0,12}", n in "[&=#+%0-9]{0,6}",
        ) {
            let pairs = [("id", id), ("part", part), ("query", query), ("n", n)];
            let values: BTreeMap<String, String> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            if let Ok(url) = UrlTemplate::parse(TEMPLATE).unwrap().fill(&values) {
                prop_assert_eq!(url.origin().ascii_serialization(), "https://api.example.com:8443");
                prop_assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
                let segments: Vec<_> = url.path_segments().unwrap().collect();
                prop_assert_eq!(segments.len(), 4);
                prop_assert_eq!(&segments[..2], &["v1", "users"]);
                // What a server reads is what was put in.
                let read: Vec<(String, String)> = url.query_pairs().into_owned().collect();
                let expected = [("q", &values["query"]), ("fixed", &"1".to_owned()), ("n", &values["n"])];
                prop_assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.clone())));
            }
        }
    }
}
