//! Markdown as rows of a terminal. No I/O.
//!
//! HTML tags appear as plain text. Links show their address, because a terminal cannot show a link's target in another
//! way.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::{
    line::{Line, Style},
    table,
};

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Returns the start of the last block. The text before the last block stays unchanged when more text arrives.
pub(super) fn complete(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut last = 0;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if depth == 0 {
            last = range.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    // An indented block begins at the start of its line.
    text[..last].rfind('\n').map_or(0, |at| at + 1)
}

/// Returns the rows of a text, each at most `width` columns wide.
pub(super) fn rows(text: &str, width: usize) -> Vec<Line> {
    let mut writer = Writer {
        width,
        ..Writer::default()
    };
    for event in Parser::new_ext(text, options()) {
        writer.take(event);
    }
    writer.break_line();
    writer.rows
}

#[derive(Default)]
struct Writer {
    width: usize,
    rows: Vec<Line>,
    line: Line,
    /// The prefixes of each open list item and quotation: for the first row, and for the other rows.
    prefixes: Vec<(String, String)>,
    /// The next number of each open list; `None` for a list with bullets.
    lists: Vec<Option<u64>>,
    styles: Vec<Style>,
    links: Vec<String>,
    code: Option<String>,
    table: Option<table::Table>,
    /// True when the next block needs a blank row before it.
    wants_gap: bool,
}

impl Writer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text)
            | Event::InlineHtml(text)
            | Event::FootnoteReference(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.text(&text),
            Event::Code(text) => self.push(&text, Style::Code),
            Event::Html(text) => {
                for line in text.lines() {
                    self.push(line, Style::Plain);
                    self.break_line();
                }
            }
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.gap();
                let columns = self.width.min(40);
                self.push(&"─".repeat(columns), Style::Dim);
                self.break_line();
                self.wants_gap = true;
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.gap(),
            Tag::Heading { .. } => {
                self.gap();
                self.styles.push(Style::Heading);
            }
            Tag::BlockQuote(_) => {
                self.gap();
                self.prefixes.push(("│ ".to_owned(), "│ ".to_owned()));
            }
            Tag::CodeBlock(kind) => {
                self.gap();
                self.code = Some(String::new());
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.push(&language, Style::Dim);
                    self.break_line();
                }
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.gap();
                } else {
                    self.break_line();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let indent = " ".repeat(bullet.chars().count());
                self.prefixes.push((bullet, indent));
                self.wants_gap = false;
            }
            Tag::Table(alignments) => {
                self.gap();
                self.table = Some(table::Table::new(alignments));
            }
            Tag::Emphasis => self.styles.push(Style::Italic),
            Tag::Strong => self.styles.push(Style::Bold),
            Tag::Strikethrough => self.styles.push(Style::Dim),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.break_line();
                self.wants_gap = true;
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.break_line();
                self.wants_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.break_line();
                self.prefixes.pop();
                self.wants_gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.wants_gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.break_line();
                self.prefixes.pop();
                self.wants_gap = false;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                let room = self.width.saturating_sub(self.prefix_width());
                if let Some(table) = self.table.take() {
                    for row in table.rows(room) {
                        self.row(&row);
                    }
                }
                self.wants_gap = true;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                let url = self.links.pop().unwrap_or_default();
                if !self.line.text().ends_with(&*show_url(&url)) {
                    self.push(&format!(" ({url})"), Style::Dim);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        let style = self.styles.last().copied().unwrap_or_default();
        self.push(text, style);
    }

    fn push(&mut self, text: &str, style: Style) {
        self.line.push(text, style);
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        for line in code.trim_end_matches('\n').split('\n') {
            let line = Line::of(&format!("  {line}"), Style::Code);
            self.hard_rows(&line);
        }
        self.wants_gap = true;
    }

    /// Adds a row that must not be wrapped at blanks.
    fn hard_rows(&mut self, line: &Line) {
        let unbroken = Line(
            line.0
                .iter()
                .map(|span| super::line::Span {
                    text: span.text.replace(' ', "\u{a0}"),
                    style: span.style,
                })
                .collect(),
        );
        let from = self.rows.len();
        self.row(&unbroken);
        for span in self.rows[from..].iter_mut().flat_map(|row| &mut row.0) {
            span.text = span.text.replace('\u{a0}', " ");
        }
    }

    fn break_line(&mut self) {
        if self.line.0.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        self.row(&line);
    }

    fn row(&mut self, line: &Line) {
        let (mut first, mut next) = (Line::default(), Line::default());
        for (own, others) in &mut self.prefixes {
            first.push(own, Style::Dim);
            next.push(others, Style::Dim);
            // The bullet is the prefix of the first row only.
            own.clone_from(others);
        }
        self.rows.extend(line.wrapped(self.width, &first, &next));
    }

    fn gap(&mut self) {
        self.break_line();
        if std::mem::take(&mut self.wants_gap) && !self.rows.is_empty() {
            let mut gap = Line::default();
            for (_, others) in &self.prefixes {
                gap.push(others.trim_end(), Style::Dim);
            }
            self.rows.push(gap);
        }
    }

    fn prefix_width(&self) -> usize {
        self.prefixes
            .iter()
            .map(|(own, _)| own.chars().count())
            .sum()
    }
}

/// Returns the address in its form for a line of text.
fn show_url(url: &str) -> String {
    crate::show::printable(url)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, width: usize) -> Vec<String> {
        rows(text, width).iter().map(Line::text).collect()
    }

    #[test]
    fn blocks_become_rows() {
        let text = "# Title\n\nOne **bold** and `code`\nword.\n\n- a\n- b\n  1. c\n  2. d\n\n```rust\nfn  main() {}\n\nx\n```\n\n> quoted\n\n---\n";
        assert_eq!(
            shown(text, 30),
            [
                "Title",
                "",
                "One bold and code word.",
                "",
                "• a",
                "• b",
                "  1. c",
                "  2. d",
                "",
                "rust",
                "  fn  main() {}",
                "  ",
                "  x",
                "",
                "│ quoted",
                "",
                "──────────────────────────────",
            ]
        );
    }

    #[test]
    fn rows_keep_to_the_width_and_hang() {
        assert_eq!(shown("- one two three", 9), ["• one two", "  three"]);
        assert_eq!(shown("你好世界", 4), ["你好", "世界"]);
    }

    #[test]
    fn tables_have_columns() {
        let text = "| a | number |\n|---|---:|\n| 你好 | 7 |\n";
        assert_eq!(
            shown(text, 40),
            ["a    │ number", "─────┼───────", "你好 │      7"]
        );
        assert!(shown(text, 10).iter().all(|row| row.chars().count() <= 10));
    }

    #[test]
    fn a_link_shows_where_it_leads_and_html_is_text() {
        assert_eq!(
            shown("[x](http://a.example) <http://b.example>", 80),
            ["x (http://a.example) http://b.example"]
        );
        assert_eq!(shown("<b>x</b>", 80), ["<b>x</b>"]);
    }

    #[test]
    fn what_is_complete_is_all_but_the_last_block() {
        let text = "One.\n\nTwo.\n\n```\ncode\n\nmore";
        assert_eq!(&text[..complete(text)], "One.\n\nTwo.\n\n");
        assert_eq!(complete("One."), 0);
        assert_eq!(complete(""), 0);
        assert_eq!(complete("- a\n- b"), 0, "a list may go on");
    }

    proptest! {
        /// Whatever a model writes is shown without steering the terminal, and what has been shown of a text that grows stays.
        #[test]
        fn any_markdown_becomes_rows_that_steer_nothing(
            text in "([-#>*_`~| \n\u{1b}<\\[\\]()!0-9.a-zé你]|```|---|\n\n|  \n|\\| - \\||<b>|- \\[x\\] ){0,60}", width in 1_usize..40, cut in any::<prop::sample::Index>(),
        ) {
            for row in rows(&text, width) {
                prop_assert!(!row.text().chars().any(char::is_control), "{:?}", row.text());
            }
            let complete = complete(&text);
            prop_assert!(text.is_char_boundary(complete));
            let beginning = text.floor_char_boundary(cut.index(text.len() + 1));
            prop_assert!(super::complete(&text[..beginning]) <= beginning);
        }
    }
}
