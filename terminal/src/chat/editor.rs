//! The input line of the user, and the history of earlier lines. The module draws nothing.
//!
//! rustyline implements movement and deletion by grapheme and word, and the history file. The chat does not use
//! rustyline's own loop, because the loop owns the terminal while it waits for a line. In the chat, tools and answers
//! appear above the line meanwhile.

use std::path::{Path, PathBuf};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustyline::{
    At, Word,
    history::{FileHistory, History, SearchDirection},
    line_buffer::{ChangeListener, DeleteListener, Direction, LineBuffer},
};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::view::{Line, Style};

/// The most bytes of a text: the limit of a message.
const MAX_BYTES: usize = 262_144;

/// The most lines of history.
const MAX_HISTORY: usize = 1000;

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edited {
    /// The line handled the key.
    Text,
    /// The text is complete.
    Ready(String),
    /// The line does not use the key.
    No,
}

/// The text, the cursor's position, and the history.
pub(super) struct Editor {
    buffer: LineBuffer,
    history: FileHistory,
    path: Option<PathBuf>,
    /// The index of the history line on display.
    shown: Option<usize>,
    /// The text that the user typed before the first history line was shown.
    draft: String,
}

/// Ignores rustyline's change events.
struct Nobody;

impl DeleteListener for Nobody {
    fn delete(&mut self, _: usize, _: &str, _: Direction) {}
}

impl ChangeListener for Nobody {
    fn insert_char(&mut self, _: usize, _: char) {}
    fn insert_str(&mut self, _: usize, _: &str) {}
    fn replace(&mut self, _: usize, _: &str, _: &str) {}
}

impl Editor {
    /// Returns an empty line with the history of this file.
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        let mut history = FileHistory::new();
        let _memory_only = history.set_max_len(MAX_HISTORY);
        let _memory_only = history.ignore_dups(true);
        if let Some(path) = &path
            && let Err(error) = history.load(path)
            && path.exists()
        {
            tracing::warn!(%error, path = %path.display(), "the lines of before cannot be read");
        }
        Self {
            buffer: LineBuffer::with_capacity(MAX_BYTES),
            history,
            path,
            shown: None,
            draft: String::new(),
        }
    }

    pub(super) fn text(&self) -> &str {
        self.buffer.as_str()
    }

    pub(super) fn set(&mut self, text: &str) {
        let end = floor(text, MAX_BYTES);
        self.buffer.update(&text[..end], end, &mut Nobody);
        self.shown = None;
    }

    /// Inserts pasted text with its line breaks.
    pub(super) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_text = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        let text: String = text.chars().filter(is_text).collect();
        let room = MAX_BYTES.saturating_sub(self.buffer.len());
        let end = floor(&text, room);
        if end > 0 {
            self.buffer.yank(&text[..end], 1, &mut Nobody);
        }
    }

    /// Adds a line to the history and to the history file, which only this user can read.
    pub(super) fn remember(&mut self, line: &str) {
        let is_new = self.history.add(line).unwrap_or_default();
        let Some(path) = self.path.as_deref().filter(|_| is_new) else {
            return;
        };
        if let Err(error) = append(&mut self.history, path) {
            tracing::warn!(%error, path = %path.display(), "the line cannot be kept");
            self.path = None;
        }
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: KeyEvent) -> Edited {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if alt || shift => self.insert('\n'),
            KeyCode::Enter => {
                let text = self.text().to_owned();
                self.set("");
                return Edited::Ready(text);
            }
            KeyCode::Char(c) if control => return self.control(c),
            KeyCode::Char('b') if alt => _ = self.buffer.move_to_prev_word(Word::Emacs, 1),
            KeyCode::Char('f') if alt => {
                _ = self.buffer.move_to_next_word(At::AfterEnd, Word::Emacs, 1);
            }
            KeyCode::Char(c) => self.insert(c),
            KeyCode::Backspace if alt => self.delete_word(),
            KeyCode::Backspace => _ = self.buffer.backspace(1, &mut Nobody),
            KeyCode::Delete => _ = self.buffer.delete(1, &mut Nobody),
            KeyCode::Left if control || alt => {
                _ = self.buffer.move_to_prev_word(Word::Emacs, 1);
            }
            KeyCode::Right if control || alt => {
                _ = self.buffer.move_to_next_word(At::AfterEnd, Word::Emacs, 1);
            }
            KeyCode::Left => _ = self.buffer.move_backward(1),
            KeyCode::Right => _ = self.buffer.move_forward(1),
            KeyCode::Home => _ = self.buffer.move_home(),
            KeyCode::End => _ = self.buffer.move_end(),
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            _ => return Edited::No,
        }
        Edited::Text
    }

    fn control(&mut self, c: char) -> Edited {
        match c {
            'a' => _ = self.buffer.move_home(),
            'e' => _ = self.buffer.move_end(),
            'b' => _ = self.buffer.move_backward(1),
            'f' => _ = self.buffer.move_forward(1),
            'h' => _ = self.buffer.backspace(1, &mut Nobody),
            'd' if !self.text().is_empty() => _ = self.buffer.delete(1, &mut Nobody),
            'k' => _ = self.buffer.kill_line(&mut Nobody),
            'u' => _ = self.buffer.discard_line(&mut Nobody),
            'w' => self.delete_word(),
            'j' => self.insert('\n'),
            'p' => self.up(),
            'n' => self.down(),
            _ => return Edited::No,
        }
        Edited::Text
    }

    fn insert(&mut self, c: char) {
        if self.buffer.len() + c.len_utf8() <= MAX_BYTES {
            self.buffer.insert(c, 1, &mut Nobody);
        }
    }

    fn delete_word(&mut self) {
        self.buffer.delete_prev_word(Word::Big, 1, &mut Nobody);
    }

    fn up(&mut self) {
        let before = &self.text()[..self.buffer.pos()];
        if before.contains('\n') && self.shown.is_none() {
            let column = graphemes(before.rsplit('\n').next().unwrap_or_default());
            let line = before.rfind('\n').unwrap_or_default();
            let start = before[..line].rfind('\n').map_or(0, |at| at + 1);
            self.buffer
                .set_pos(start + bytes_of(&before[start..line], column));
            return;
        }
        let next = self.shown.map_or(self.history.len(), |shown| shown);
        self.show(next.checked_sub(1));
    }

    fn down(&mut self) {
        let (pos, text) = (self.buffer.pos(), self.text());
        if let (Some(end), None) = (text[pos..].find('\n'), self.shown) {
            let column = graphemes(text[..pos].rsplit('\n').next().unwrap_or_default());
            let start = pos + end + 1;
            let line = text[start..].split('\n').next().unwrap_or_default();
            self.buffer.set_pos(start + bytes_of(line, column));
            return;
        }
        let Some(shown) = self.shown else {
            return;
        };
        if shown + 1 < self.history.len() {
            self.show(Some(shown + 1));
        } else {
            let draft = std::mem::take(&mut self.draft);
            self.set(&draft);
        }
    }

    fn show(&mut self, at: Option<usize>) {
        let Some(at) = at else { return };
        let found = self.history.get(at, SearchDirection::Forward);
        let Ok(Some(line)) = found.map(|found| found.map(|found| found.entry.into_owned())) else {
            return;
        };
        if self.shown.is_none() {
            self.draft = self.text().to_owned();
        }
        self.set(&line);
        self.shown = Some(at);
    }

    /// Returns the rows of the line behind a prompt, and the row and the column of the cursor. At most `height` rows
    /// are returned; rows far from the cursor are left out first.
    pub(super) fn rows(
        &self,
        prompt: &Line,
        width: usize,
        height: usize,
    ) -> (Vec<Line>, (usize, usize)) {
        let indent = Line::of(&" ".repeat(prompt.width()), Style::Plain);
        let mut rows = vec![prompt.clone()];
        let mut used = prompt.width();
        let mut cursor = None;
        for (at, cluster) in self.text().grapheme_indices(true) {
            let shown = super::view::Line::of(cluster, Style::Plain);
            let columns = if cluster == "\n" { 0 } else { shown.width() };
            if used + columns > width {
                rows.push(indent.clone());
                used = indent.width();
            }
            if at == self.buffer.pos() {
                cursor = Some((rows.len() - 1, used));
            }
            if cluster == "\n" {
                rows.push(indent.clone());
                used = indent.width();
            } else if let Some(row) = rows.last_mut() {
                row.0.extend(shown.0);
                used += columns;
            }
        }
        if cursor.is_none() && used >= width {
            rows.push(indent.clone());
            used = indent.width();
        }
        let (row, column) = cursor.unwrap_or((rows.len() - 1, used));
        let from = (row + 1).saturating_sub(height.max(1));
        let to = rows.len().min(from + height.max(1));
        (rows[from..to].to_vec(), (row - from, column))
    }
}

fn append(history: &mut FileHistory, path: &Path) -> Result<(), rustyline::error::ReadlineError> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    history.append(path)
}

fn graphemes(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// Returns the number of bytes before a column.
fn bytes_of(text: &str, column: usize) -> usize {
    let mut used = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        if used >= column {
            return at;
        }
        used += cluster.width();
    }
    text.len()
}

/// Returns the largest position up to `at` at which the text can be cut.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;

    fn press(editor: &mut Editor, codes: &[KeyCode]) {
        for code in codes {
            editor.key((*code).into());
        }
    }

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::new(None);
        for c in text.chars() {
            editor.key(KeyCode::Char(c).into());
        }
        editor
    }

    fn shown(editor: &Editor, width: usize, height: usize) -> (Vec<String>, (usize, usize)) {
        let (rows, cursor) = editor.rows(&Line::of("you> ", Style::Heading), width, height);
        (rows.iter().map(Line::text).collect(), cursor)
    }

    #[test]
    fn wide_characters_are_moved_over_and_deleted_whole() {
        let mut editor = typed("你好👩‍👩‍👧x");
        assert_eq!(
            shown(&editor, 40, 5),
            (vec!["you> 你好👩‍👩‍👧x".to_owned()], (0, 12))
        );
        press(&mut editor, &[KeyCode::Left, KeyCode::Left]);
        assert_eq!(shown(&editor, 40, 5).1, (0, 9));
        press(&mut editor, &[KeyCode::Delete, KeyCode::Backspace]);
        assert_eq!(editor.text(), "你x");
    }

    #[test]
    fn a_line_goes_on_in_the_next_row() {
        let mut editor = typed("你好世");
        assert_eq!(
            shown(&editor, 10, 5),
            (vec!["you> 你好".into(), "     世".into()], (1, 7))
        );
        editor.paste("\r\na\u{1b}[31m\tb");
        assert_eq!(editor.text(), "你好世\na[31m\tb");
        let (rows, cursor) = shown(&editor, 40, 5);
        assert_eq!(rows, ["you> 你好世", "     a[31m    b"]);
        assert_eq!(cursor, (1, 15));
        assert_eq!(shown(&editor, 40, 1).0, ["     a[31m    b"]);
        press(&mut editor, &[KeyCode::Up]);
        assert_eq!(shown(&editor, 40, 5).1.0, 0);
        press(&mut editor, &[KeyCode::Down]);
        assert_eq!(shown(&editor, 40, 5).1.0, 1);
    }

    #[test]
    fn lines_of_before_come_back_and_the_file_is_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new").join("lines");
        let mut editor = Editor::new(Some(path.clone()));
        editor.remember("one");
        editor.remember("two\nlines");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let mut editor = Editor::new(Some(path));
        editor.paste("draft");
        press(&mut editor, &[KeyCode::Up]);
        assert_eq!(editor.text(), "two\nlines");
        press(&mut editor, &[KeyCode::Up, KeyCode::Up]);
        assert_eq!(editor.text(), "one");
        press(&mut editor, &[KeyCode::Down, KeyCode::Down]);
        assert_eq!(editor.text(), "draft");
        assert_eq!(
            editor.key(KeyCode::Enter.into()),
            Edited::Ready("draft".into())
        );
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn a_text_has_a_limit() {
        let mut editor = Editor::new(None);
        editor.paste(&"é".repeat(MAX_BYTES));
        assert_eq!(editor.text().len(), MAX_BYTES);
        press(&mut editor, &[KeyCode::Char('x')]);
        assert_eq!(editor.text().len(), MAX_BYTES);
    }

    /// Keys and pastes, in any order.
    fn keys() -> impl Strategy<Value = Result<KeyEvent, String>> {
        use KeyCode::{Backspace, Char, Delete, Down, End, Enter, Home, Left, Right, Up};
        let codes = [
            Enter,
            Backspace,
            Delete,
            Left,
            Right,
            Home,
            End,
            Up,
            Down,
            Char('你'),
            Char('\u{301}'),
        ];
        let code = prop_oneof![1 => prop::sample::select(codes.to_vec()), 2 => any::<char>().prop_map(Char), 2 => "[abdefhjknpuw]".prop_map(|c| Char(c.chars().next().unwrap_or('a')))];
        let modifiers = prop_oneof![
            Just(KeyModifiers::NONE),
            Just(KeyModifiers::CONTROL),
            Just(KeyModifiers::ALT)
        ];
        prop_oneof![
            6 => (code, modifiers).prop_map(|(code, modifiers)| Ok(KeyEvent::new(code, modifiers))),
            1 => any::<String>().prop_map(Err),
            1 => "[a\r\n\t\u{1b} 你👩]{0,20}".prop_map(Err),
        ]
    }

    proptest! {
        #[test]
        fn any_keys_and_pastes_leave_a_line_that_can_be_shown(keys in prop::collection::vec(keys(), 0..40), width in 4_usize..20, height in 0_usize..4) {
            let mut editor = Editor::new(None);
            for key in keys {
                match key {
                    Ok(key) => {
                        if let Edited::Ready(line) = editor.key(key) {
                            editor.remember(&line);
                        }
                    }
                    Err(pasted) => editor.paste(&pasted),
                }
                let (rows, (row, _)) = editor.rows(&Line::of("> ", Style::Plain), width, height);
                prop_assert!(rows.len() <= height.max(1) && row < rows.len());
                let is_steered = rows.iter().any(|row| row.text().chars().any(char::is_control));
                prop_assert!(!is_steered, "{:?}", editor.text());
            }
        }
    }
}
