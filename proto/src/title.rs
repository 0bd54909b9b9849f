//! Titles of tool calls for people: a template of the call's input, like `Search the web for {query}`. Pure.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::{
    Json,
    limits::{MAX_TITLE_CHARS, MAX_TITLE_TEMPLATE_CHARS, MAX_TITLE_VALUE_CHARS},
};

/// The template of a title: text, and names of inputs in braces. `{{` and `}}` are the signs alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitleTemplate(Vec<Piece>);

/// Part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Fixed(String),
    /// The placeholder of the input with this name.
    Input(String),
}

impl TitleTemplate {
    /// Parses a template. The error describes the fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() > MAX_TITLE_TEMPLATE_CHARS {
            return Err(format!(
                "a title has at most {MAX_TITLE_TEMPLATE_CHARS} characters"
            ));
        }
        let mut pieces = Vec::new();
        let mut fixed = String::new();
        let mut chars = text.chars().peekable();
        while let Some(next) = chars.next() {
            match next {
                '{' | '}' if chars.next_if_eq(&next).is_some() => fixed.push(next),
                '{' => {
                    pieces.push(Piece::Fixed(std::mem::take(&mut fixed)));
                    pieces.push(Piece::Input(name_in(&mut chars)?));
                }
                '}' => {
                    return Err("a `}` has no `{`; write `}}` for the sign alone".to_owned());
                }
                next => fixed.push(next),
            }
        }
        pieces.push(Piece::Fixed(fixed));
        pieces.retain(|piece| !matches!(piece, Piece::Fixed(text) if text.is_empty()));
        let is_blank =
            |piece: &Piece| matches!(piece, Piece::Fixed(text) if one_line(text).is_empty());
        if pieces.iter().all(is_blank) {
            return Err("a title needs a text".to_owned());
        }
        Ok(Self(pieces))
    }

    /// Returns the template for a text without placeholders, like the title that an MCP server gives its tool; `None`
    /// for a blank text. A long text is cut, so that the template has room for doubled braces.
    pub fn literal(text: &str) -> Option<String> {
        let text = cut(&one_line(text), MAX_TITLE_TEMPLATE_CHARS / 2);
        let text = text.replace('{', "{{").replace('}', "}}");
        (!text.is_empty()).then_some(text)
    }

    /// Returns the names of the inputs in the template.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Input(name) => Some(name.as_str()),
            Piece::Fixed(_) => None,
        })
    }

    /// Returns the title of a call with this input: one line of plain text, of bounded length. `None` when an input of
    /// the template is missing, blank, or not a text, number or truth value: people then see the name of the tool.
    pub fn render(&self, input: &Json) -> Option<String> {
        let fields: BTreeMap<String, Box<RawValue>> = match self.inputs().next() {
            Some(_) => input.decode().ok()?,
            None => BTreeMap::new(),
        };
        let mut title = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Fixed(text) => title.push_str(text),
                Piece::Input(name) => title.push_str(&shown(fields.get(name)?)?),
            }
        }
        Some(cut(&one_line(&title), MAX_TITLE_CHARS))
    }
}

/// Reads the name of an input, up to the closing brace.
fn name_in(chars: &mut impl Iterator<Item = char>) -> Result<String, String> {
    let mut name = String::new();
    loop {
        match chars.next() {
            Some('}') if name.is_empty() => return Err("`{}` names no input".to_owned()),
            Some('}') => return Ok(name),
            Some('{') | None => {
                return Err("a `{` has no `}`; write `{{` for the sign alone".to_owned());
            }
            Some(next) => name.push(next),
        }
    }
}

/// Returns the text of a value in a title; `None` for an object, a list, `null` and a blank text.
fn shown(value: &RawValue) -> Option<String> {
    let text = match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok()?,
        b'{' | b'[' | b'n' => return None,
        _ => value.get().to_owned(),
    };
    let text = cut(&one_line(&text), MAX_TITLE_VALUE_CHARS);
    (!text.is_empty()).then_some(text)
}

/// Returns the text in one line: without control characters, and without the characters that change the direction of
/// the text behind them, because a model's input could show a person another title than the real title.
fn one_line(text: &str) -> String {
    let turns = |c: &char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain: String = text
        .chars()
        .filter(|c| !turns(c))
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the text with at most this many characters. The last character of a cut text is `…`.
fn cut(text: &str, max_chars: usize) -> String {
    if text.char_indices().nth(max_chars).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max_chars.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn title(template: &str, input: &str) -> Option<String> {
        let template = TitleTemplate::parse(template).unwrap();
        template.render(&Json::parse(input).unwrap())
    }

    #[test]
    fn a_title_has_the_values_of_the_input() {
        for (template, input, expected) in [
            (
                "Search for {query}",
                r#"{"query":"cats"}"#,
                "Search for cats",
            ),
            (
                "{n} of {all}: {yes}",
                r#"{"n":9007199254740993,"all":1e3,"yes":true}"#,
                "9007199254740993 of 1e3: true",
            ),
            ("{a}{a}", r#"{"a":"x"}"#, "xx"),
            ("A {{brace}}", "null", "A {brace}"),
            (
                "Say {text}",
                r#"{"text":" two\nlines\t\u0000<b> \u202e"}"#,
                "Say two lines <b>",
            ),
        ] {
            assert_eq!(
                title(template, input).as_deref(),
                Some(expected),
                "{template}"
            );
        }
        let long = format!(r#"{{"a":"{0}","b":"{0}","c":"{0}"}}"#, "ü".repeat(1000));
        let title = title("{a} and {b} and {c}", &long).unwrap();
        assert_eq!(title.chars().count(), MAX_TITLE_CHARS);
        assert!(title.contains("ü… and ü") && title.ends_with('…'));
    }

    #[test]
    fn without_a_value_the_call_has_no_title() {
        for input in [
            "{}",
            r#"{"q":null}"#,
            r#"{"q":" \n"}"#,
            r#"{"q":["x"]}"#,
            r#"{"q":{"q":"x"}}"#,
            r#""no object""#,
        ] {
            assert_eq!(title("Search for {q}", input), None, "{input}");
        }
    }

    #[test]
    fn a_wrong_template_is_refused_with_the_reason() {
        let long = "x".repeat(MAX_TITLE_TEMPLATE_CHARS + 1);
        for (template, reason) in [
            ("Search {query", "a `{` has no `}`"),
            ("Search {a{b}", "a `{` has no `}`"),
            ("Search query}", "a `}` has no `{`"),
            ("Search {}", "`{}` names no input"),
            ("", "a title needs a text"),
            (" \n", "a title needs a text"),
            (long.as_str(), "a title has at most 200 characters"),
        ] {
            let refused = TitleTemplate::parse(template).unwrap_err();
            assert!(refused.starts_with(reason), "{template}: {refused}");
        }
    }

    proptest! {
        /// Any template is refused or gives a title within the limit, whatever the input is.
        #[test]
        fn any_title_is_one_bounded_line(
            template in "[{}a \\PC\n]{0,30}|(\\{[ab]\\}|x{0,90}){0,9}",
            text in "\\PC{0,300}|[\\u{202a}-\\u{202e}\n]{0,5}",
        ) {
            let input = Json::of(&serde_json::json!({"a": text, "b": 7}));
            if let Ok(template) = TitleTemplate::parse(&template)
                && let Some(title) = template.render(&input)
            {
                prop_assert!(title.chars().count() <= MAX_TITLE_CHARS);
                prop_assert_eq!(&title, &one_line(&title));
            }
            let literal = TitleTemplate::literal(&text);
            if let Some(literal) = literal {
                let template = TitleTemplate::parse(&literal).unwrap();
                prop_assert_eq!(template.inputs().count(), 0);
                prop_assert_eq!(template.render(&Json::default()).unwrap(), cut(&one_line(&text), MAX_TITLE_TEMPLATE_CHARS / 2));
            }
        }
    }
}
