//! The string literals in code: messages, descriptions and answers, without comments and tests.

use std::{iter::Peekable, str::CharIndices};

use crate::repository::without_tests;

/// The texts of the string literals of a file, each with the line in which the literal begins. A placeholder of
/// `format!` becomes `X`. Raw strings are left out: they contain code, for example SQL.
pub(crate) fn literals(code: &str) -> Vec<(usize, String)> {
    let code = without_tests(code);
    let mut chars = code.char_indices().peekable();
    let (mut found, mut before) = (Vec::new(), ' ');
    while let Some((at, c)) = chars.next() {
        match c {
            '/' if code[at..].starts_with("//") => {
                while chars.next_if(|(_, c)| *c != '\n').is_some() {}
            }
            '\'' => skip_char(&code[at..], &mut chars),
            'r' if before == 'b' || !(before.is_alphanumeric() || before == '_') => {
                skip_raw(&code[at..], &mut chars);
            }
            '"' => {
                let line = code[..at].matches('\n').count() + 1;
                found.push((line, without_placeholders(&literal(&mut chars))));
            }
            _ => {}
        }
        before = c;
    }
    found
}

/// Reads a literal behind its quote.
fn literal(chars: &mut Peekable<CharIndices<'_>>) -> String {
    let mut text = String::new();
    while let Some((_, c)) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                // The line goes on behind the indentation of the next line.
                Some((_, '\n')) => while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                Some((_, 'n' | 't')) => text.push(' '),
                Some((_, escaped)) => text.push(escaped),
                None => {}
            },
            c => text.push(c),
        }
    }
    text
}

/// Skips a character literal; the quote of a lifetime begins none.
fn skip_char(code: &str, chars: &mut Peekable<CharIndices<'_>>) {
    let content: Vec<_> = code.chars().skip(1).take(2).collect();
    match content[..] {
        ['\\', _] => {
            chars.nth(1);
            while chars.next_if(|(_, c)| *c != '\'').is_some() {}
        }
        [_, '\''] => {
            chars.next();
        }
        _ => return,
    }
    chars.next();
}

/// Skips a raw string. An `r` that begins no raw string is a name or a part of a name.
fn skip_raw(code: &str, chars: &mut Peekable<CharIndices<'_>>) {
    let behind_hashes = code[1..].trim_start_matches('#');
    let hashes = &code[1..code.len() - behind_hashes.len()];
    let Some(content) = behind_hashes.strip_prefix('"') else {
        return;
    };
    let end = format!("\"{hashes}");
    let content = content
        .split_once(&end)
        .map_or(content, |(content, _)| content);
    let length = hashes.len() + 1 + content.chars().count() + end.len();
    chars.nth(length - 1);
}

/// A text with `X` for each `{placeholder}`.
fn without_placeholders(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        plain.push_str(before);
        plain.push('X');
        rest = behind.split_once('}').map_or("", |(_, after)| after);
    }
    plain + rest
}

#[test]
fn literals_are_found_and_comments_tests_and_raw_strings_are_not() {
    let code = r##"
// A "comment".
fn error<'a>(name: &'a str) -> String {
    let quotes = ('"', '\'', b'\\');
    let raw = (r#"a "raw" string"#, br"\");
    let our = "our";
    format!("tool `{name}` \"has\" no \
             schema in {}", line!())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    const NAME: &str = "a test";
}
"##;
    let expected = [
        (6, "our".to_owned()),
        (7, "tool `X` \"has\" no schema in X".to_owned()),
    ];
    assert_eq!(literals(code), expected);
}
