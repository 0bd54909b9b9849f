//! A provider's text for a message: one line without control characters, and with a limit.

/// The most characters of a provider's text that a message shows.
pub(super) const MAX_DETAIL_CHARS: usize = 500;
/// The most characters of a text that are read.
const MAX_READ_CHARS: usize = 16 * MAX_DETAIL_CHARS;

/// Returns the beginning of a provider's text, in one line.
pub(crate) fn short(text: &str) -> String {
    beginning(text, MAX_DETAIL_CHARS)
}

/// Returns up to `chars` characters of a text, in one line.
pub(super) fn beginning(text: &str, chars: usize) -> String {
    let text = text.chars().take(MAX_READ_CHARS);
    let text: String = text.map(|c| if is_unseen(c) { ' ' } else { c }).collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(chars).collect();
    line.trim_end().to_owned()
}

/// True for characters that a reader does not see, and that can change the look of the text around them.
fn is_unseen(c: char) -> bool {
    let is_mark = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || is_mark
}

/// True for the text of a web page, or another text with tags.
pub(super) fn is_page(text: &str) -> bool {
    let tag = text.strip_prefix('<');
    let is_tag =
        |tag: &str| tag.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '!' | '?'));
    tag.is_some_and(is_tag) && (text.contains("</") || text.contains("<!"))
}

/// Returns the title of a web page, or the page's text when the page has no title.
pub(super) fn title(page: &str) -> String {
    let titled = ["title", "h1"].iter().find_map(|tag| {
        let title = without_tags(element(page, tag)?);
        (!title.is_empty()).then_some(title)
    });
    titled.unwrap_or_else(|| without_tags(page))
}

/// Returns the content of the first element with the tag.
fn element<'a>(page: &'a str, tag: &str) -> Option<&'a str> {
    // ASCII letters alone change, so positions in both texts are equal.
    let small = page.to_ascii_lowercase();
    let mut from = 0;
    loop {
        let start = from + small[from..].find(&format!("<{tag}"))? + 1 + tag.len();
        from = start;
        if small[start..].starts_with(|c: char| c == '>' || c.is_ascii_whitespace()) {
            let start = start + small[start..].find('>')? + 1;
            let end = small[start..].find(&format!("</{tag}"))?;
            return Some(&page[start..start + end]);
        }
    }
}

/// Returns the text of a page without tags, styles, scripts and the commonest entities.
fn without_tags(page: &str) -> String {
    let (mut text, mut rest) = (String::new(), page);
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let small = tag.get(..6).unwrap_or(tag).to_ascii_lowercase();
        let end = ["script", "style"]
            .iter()
            .find(|name| small.starts_with(**name))
            .map_or(">".to_owned(), |name| format!("</{name}>"));
        rest = tag.split_once(end.as_str()).map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let entities = [
        ("&nbsp;", " "),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#124;", "|"),
        ("&amp;", "&"),
    ];
    let text = entities
        .iter()
        .fold(text, |text, (entity, c)| text.replace(entity, c));
    short(&text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_one_short_line() {
        assert_eq!(short(" a\n\tb\u{0} c\u{202e} "), "a b c");
        assert_eq!(short(&"é".repeat(2000)).chars().count(), MAX_DETAIL_CHARS);
        assert_eq!(short(""), "");
    }

    #[test]
    fn a_page_is_its_title() {
        for (page, expected) in [
            (
                "<html><head><TITLE lang=en>502 Bad\n Gateway</TITLE></head><body>x</body></html>",
                "502 Bad Gateway",
            ),
            (
                "<title>Attention Required! | Cloudflare</title>",
                "Attention Required! | Cloudflare",
            ),
            ("<title></title><h1>Not <b>here</b></h1>", "Not here"),
            (
                "<html><style>p{}</style><body>502 Bad&nbsp;Gateway<script>f()</script></body></html>",
                "502 Bad Gateway",
            ),
            ("<titles>x</titles><p>a &amp; b</p>", "x a & b"),
            (
                "<Error><Code>AccessDenied</Code><Message>No.</Message></Error>",
                "AccessDenied No.",
            ),
            ("<", ""),
        ] {
            assert_eq!(title(page), expected, "{page}");
        }
        for text in [
            "<400> a < b",
            "<|tool|>",
            "<function=x{}",
            "< a </b>",
            "a <b></b>",
            "",
        ] {
            assert!(!is_page(text), "{text}");
        }
        assert!(is_page("<!doctype html>") && is_page("<h1>x</h1>"));
    }

    proptest! {
        #[test]
        fn any_page_has_a_short_title(page in "(<|>|/|title|h1|script|style|é|İ| ){0,30}") {
            prop_assert!(title(&page).chars().count() <= MAX_DETAIL_CHARS);
        }
    }
}
