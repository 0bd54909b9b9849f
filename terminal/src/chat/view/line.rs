//! Styled text, and its wrapping into rows of a terminal. No I/O.
//!
//! Every text of a model, a tool or another user becomes a [`Span`]. [`Span::new`] removes characters that could
//! control the terminal.

use std::{borrow::Cow, fmt::Write as _};

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::show;

/// The style of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::chat) enum Style {
    /// Normal text.
    #[default]
    Plain,
    /// Bold.
    Bold,
    /// Italic.
    Italic,
    /// Less important.
    Dim,
    /// A heading.
    Heading,
    /// Code.
    Code,
    /// A success.
    Good,
    /// A failure.
    Bad,
    /// A person must act.
    Warn,
}

/// A text of one style, without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::chat) struct Span {
    pub(in crate::chat) text: String,
    pub(in crate::chat) style: Style,
}

impl Span {
    /// Accepts any text. A character that could control the terminal becomes its number; a tab becomes spaces.
    pub(in crate::chat) fn new(text: &str, style: Style) -> Self {
        let text = show::printable(text).replace('\t', "    ");
        Self {
            text: text.replace('\n', " "),
            style,
        }
    }
}

/// A row, or a line that is not wrapped yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::chat) struct Line(pub(in crate::chat) Vec<Span>);

impl Line {
    /// Returns a line of one style.
    pub(in crate::chat) fn of(text: &str, style: Style) -> Self {
        Self(vec![Span::new(text, style)])
    }

    /// Adds a text at the end.
    #[must_use]
    pub(in crate::chat) fn and(mut self, text: &str, style: Style) -> Self {
        self.push(text, style);
        self
    }

    /// Adds a text at the end.
    pub(in crate::chat) fn push(&mut self, text: &str, style: Style) {
        if !text.is_empty() {
            self.0.push(Span::new(text, style));
        }
    }

    /// Returns the text without styles.
    pub(in crate::chat) fn text(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns the width in columns.
    pub(in crate::chat) fn width(&self) -> usize {
        self.0.iter().map(|span| span.text.width()).sum()
    }

    /// Returns the text with the escape sequences of its styles, and no other escape sequences.
    pub(in crate::chat) fn painted(&self, has_colors: bool) -> String {
        let mut painted = String::new();
        for span in &self.0 {
            let code = code(span.style, has_colors);
            if code.is_empty() {
                painted.push_str(&span.text);
            } else {
                let _never_fails = write!(painted, "\x1b[{code}m{}\x1b[0m", span.text);
            }
        }
        painted
    }

    /// Wraps the line into rows of at most `width` columns, at blanks where possible. `first` is the prefix of the
    /// first row, and `next` is the prefix of the other rows.
    pub(in crate::chat) fn wrapped(&self, width: usize, first: &Self, next: &Self) -> Vec<Self> {
        let mut rows = Vec::new();
        let mut row = first.clone();
        let mut used = row.width();
        let mut is_empty = true;
        for (word, style) in self.words() {
            let columns = word.width();
            if !is_empty && used + word.trim_end().width() > width {
                rows.push(std::mem::replace(&mut row, next.clone()).trimmed());
                used = row.width();
                is_empty = true;
            }
            if used + columns <= width || used + word.trim_end().width() <= width {
                row.append(word, style);
                used += columns;
                is_empty = false;
                continue;
            }
            // The word is longer than a row.
            for cluster in clusters(word, width.saturating_sub(next.width()).max(2)) {
                let columns = cluster.width();
                if !is_empty && used + columns > width {
                    rows.push(std::mem::replace(&mut row, next.clone()));
                    used = row.width();
                }
                row.append(cluster, style);
                used += columns;
                is_empty = false;
            }
        }
        rows.push(row.trimmed());
        rows
    }

    fn words(&self) -> impl Iterator<Item = (&str, Style)> {
        let spans = self.0.iter();
        spans.flat_map(|span| {
            let words = span.text.split_inclusive(' ');
            words.map(|word| (word, span.style))
        })
    }

    fn append(&mut self, text: &str, style: Style) {
        match self.0.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.0.push(Span {
                text: text.to_owned(),
                style,
            }),
        }
    }

    fn trimmed(mut self) -> Self {
        if let Some(last) = self.0.last_mut() {
            let end = last.text.trim_end_matches(' ').len();
            last.text.truncate(end);
        }
        self
    }

    /// Returns the line, cut to `width` columns.
    pub(in crate::chat) fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut cut = Self::default();
        'spans: for span in &self.0 {
            for cluster in span.text.graphemes(true) {
                let columns = cluster.width();
                if columns > left {
                    break 'spans;
                }
                left -= columns;
                cut.append(cluster, span.style);
            }
        }
        cut.append("…", Style::Dim);
        cut
    }
}

/// Returns the graphemes of a word. A grapheme wider than a row is split into characters, because a grapheme with
/// combining marks of their own width can have any length.
fn clusters(word: &str, width: usize) -> impl Iterator<Item = &str> {
    word.graphemes(true).flat_map(move |cluster| {
        let ends = cluster
            .char_indices()
            .map(|(at, c)| (at, at + c.len_utf8()));
        let is_whole = cluster.width() <= width;
        let whole = is_whole.then_some((0, cluster.len()));
        let parts = whole.into_iter().chain(ends.filter(move |_| !is_whole));
        parts.map(move |(from, to)| &cluster[from..to])
    })
}

/// Returns the parameters of a style's escape sequence. Without colours, bold and italic remain.
fn code(style: Style, has_colors: bool) -> Cow<'static, str> {
    let (plain, color) = match style {
        Style::Plain => ("", ""),
        Style::Bold => ("1", ""),
        Style::Italic => ("3", ""),
        Style::Dim => ("2", ""),
        Style::Heading => ("1", "36"),
        Style::Code => ("", "33"),
        Style::Good => ("", "32"),
        Style::Bad => ("1", "31"),
        Style::Warn => ("1", "33"),
    };
    match (plain, color) {
        (plain, color) if !has_colors || color.is_empty() => plain.into(),
        ("", color) => color.into(),
        (plain, color) => format!("{plain};{color}").into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str, width: usize) -> Vec<String> {
        let empty = Line::default();
        let indent = Line::of("  ", Style::Plain);
        let rows = Line::of(text, Style::Plain).wrapped(width, &empty, &indent);
        rows.iter().map(Line::text).collect()
    }

    #[test]
    fn lines_break_at_blanks_and_wide_characters_count_twice() {
        assert_eq!(rows("one two three", 8), ["one two", "  three"]);
        assert_eq!(rows("abcdefghij", 4), ["abcd", "  ef", "  gh", "  ij"]);
        assert_eq!(rows("你好世界", 5), ["你好", "  世", "  界"]);
        assert_eq!(rows("", 5), [""]);
        assert_eq!(rows("a👩‍👩‍👧b", 3), ["a👩‍👩‍👧", "  b"], "a cluster stays whole");
        let marks = format!("a{}", "\u{b4b}".repeat(100));
        assert!(rows(&marks, 10).len() > 10, "unless it is wider than a row");
    }

    #[test]
    fn nothing_in_a_text_steers_the_terminal() {
        let hostile = "a\u{1b}[2J\u{1b}]0;title\u{7}\r\u{8}\u{9b}31m\u{202e}x\u{2066}\u{200f}\tb";
        let line = Line::of(hostile, Style::Plain);
        let shown = line.text();
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        for bidi in ['\u{202e}', '\u{2066}', '\u{200f}'] {
            assert!(!shown.contains(bidi), "{shown:?}");
        }
        assert_eq!(
            shown,
            "a⟨1B⟩[2J⟨1B⟩]0;title⟨7⟩⟨D⟩⟨8⟩⟨9B⟩31m⟨202E⟩x⟨2066⟩⟨200F⟩    b"
        );
        assert_eq!(line.painted(true), shown);
    }

    #[test]
    fn without_colours_only_weight_is_left() {
        let line = Line::of("x", Style::Bad);
        assert_eq!(line.painted(true), "\x1b[1;31mx\x1b[0m");
        assert_eq!(line.painted(false), "\x1b[1mx\x1b[0m");
    }

    #[test]
    fn a_line_that_is_too_wide_is_cut() {
        assert_eq!(Line::of("你好世界", Style::Plain).cut(6).text(), "你好…");
        assert_eq!(Line::of("你好", Style::Plain).cut(4).text(), "你好");
    }

    proptest! {
        /// Whatever a model, a tool or another user wrote, its rows are what they say, no wider than the terminal, and hold
        /// no control character but those of the styles.
        #[test]
        fn any_text_becomes_rows_that_steer_nothing(
            text in any::<String>(), hostile in "[a \u{1b}\u{9b}\u{7}\r\n\t\\[\\]0-9;mJ\u{202e}\u{301}你👩\u{200d}]{0,40}", width in 2_usize..30,
        ) {
            for text in [text, hostile] {
                let line = Line::of(&text, Style::Bold);
                let painted = line.painted(true);
                let inner = painted.strip_prefix("\x1b[1m").and_then(|rest| rest.strip_suffix("\x1b[0m"));
                let inner = inner.unwrap_or_else(|| panic!("{painted:?}"));
                prop_assert!(!inner.chars().any(char::is_control), "{:?}", inner);
                let rows = line.wrapped(width, &Line::default(), &Line::default());
                for row in &rows {
                    prop_assert!(row.width() <= width, "{:?}", row.text());
                }
                let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
                let shown: String = rows.iter().map(Line::text).collect();
                prop_assert_eq!(letters(&shown), letters(&line.text()));
                prop_assert!(line.cut(width).width() <= width);
            }
        }
    }
}
