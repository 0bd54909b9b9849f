//! Draws on the terminal: permanent rows, and below them the live rows, which are drawn again and again. Only changed
//! rows are written.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use super::view::Line;

/// The start and the end of a synchronized update (DEC mode 2026; other terminals ignore the sequences).
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?2026l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_ROW: &str = "\x1b[2K";
const CLEAR_BELOW: &str = "\x1b[J";

/// The live part of the terminal, below the permanent rows.
pub(super) struct Screen<W: Write> {
    out: W,
    has_colors: bool,
    width: usize,
    /// The live rows with their escape sequences, and their widths in columns.
    live: Vec<(String, usize)>,
    /// The row of the cursor among the live rows, and its column.
    cursor: (usize, usize),
}

impl<W: Write> Screen<W> {
    /// Returns an empty screen. The cursor must be at the beginning of a row.
    pub(super) fn new(out: W, has_colors: bool, width: usize) -> Self {
        Self {
            out,
            has_colors,
            width,
            live: Vec::new(),
            cursor: (0, 0),
        }
    }

    /// Prints permanent rows, and draws the live rows below, with the cursor in a live row or hidden. Every live row
    /// must be narrower than the terminal, and the live rows must fit the terminal's height.
    pub(super) fn draw(
        &mut self,
        printed: &[Line],
        live: &[Line],
        cursor: Option<(usize, usize)>,
    ) -> io::Result<()> {
        let live: Vec<_> = live
            .iter()
            .map(|line| (line.painted(self.has_colors), line.width()))
            .collect();
        let target = cursor.unwrap_or((live.len().saturating_sub(1), 0));
        if printed.is_empty() && live == self.live && target == self.cursor {
            return Ok(());
        }
        let mut picture = BEGIN.to_owned();
        self.to_first_row(&mut picture);
        if !printed.is_empty() {
            picture.push_str(CLEAR_BELOW);
            self.live.clear();
            for line in printed {
                picture.push_str(&line.painted(self.has_colors));
                picture.push_str("\r\n");
            }
        }
        for (at, row) in live.iter().enumerate() {
            if at > 0 {
                picture.push_str("\r\n");
            }
            if self.live.get(at) != Some(row) {
                picture.push_str(CLEAR_ROW);
                picture.push_str(&row.0);
            }
        }
        let last = live.len().saturating_sub(1);
        if self.live.len() > live.len() {
            // The last row may be unchanged, with the cursor at its end. Return to the first column.
            picture.push('\r');
            match live.last() {
                Some((_, 0)) | None => {}
                Some((_, columns)) => _ = write!(picture, "\x1b[{columns}C"),
            }
            picture.push_str(CLEAR_BELOW);
        }
        picture.push('\r');
        move_up(&mut picture, last - target.0.min(last));
        if target.1 > 0 {
            let _ = write!(picture, "\x1b[{}C", target.1);
        }
        picture.push_str(END);
        if cursor.is_some() {
            picture.push_str(SHOW_CURSOR);
        }
        self.live = live;
        self.cursor = (target.0.min(last), target.1);
        self.out.write_all(picture.as_bytes())?;
        self.out.flush()
    }

    /// Adapts to a new width of the terminal. Terminals wrap rows that are now too wide. Therefore the live rows are
    /// cleared, and drawn again with the next update.
    pub(super) fn resize(&mut self, width: usize) -> io::Result<()> {
        let width = width.max(1);
        let rows_of = |columns: usize| columns.saturating_sub(1) / width;
        let above = self.live[..self.cursor.0.min(self.live.len())].iter();
        let more: usize = above.map(|(_, columns)| rows_of(*columns)).sum();
        self.cursor.0 += more + self.cursor.1 / width;
        self.width = width;
        self.clear()
    }

    /// Clears the live rows.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        let mut picture = String::new();
        self.to_first_row(&mut picture);
        picture.push_str(CLEAR_BELOW);
        picture.push_str(SHOW_CURSOR);
        self.live.clear();
        self.cursor = (0, 0);
        self.out.write_all(picture.as_bytes())?;
        self.out.flush()
    }

    /// Forgets the terminal's content, so that the next update writes every row.
    pub(super) fn forget(&mut self) {
        for (painted, _) in &mut self.live {
            painted.clear();
        }
    }

    fn to_first_row(&self, picture: &mut String) {
        picture.push('\r');
        move_up(picture, self.cursor.0);
    }
}

fn move_up(picture: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(picture, "\x1b[{rows}A");
    }
}

#[cfg(test)]
mod tests {
    use super::{super::view::Style, *};

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts
            .iter()
            .map(|text| Line::of(text, Style::Plain))
            .collect()
    }

    fn written(screen: &mut Screen<Vec<u8>>) -> String {
        let written = String::from_utf8(std::mem::take(&mut screen.out)).unwrap();
        let written = written.replace(BEGIN, "<").replace(SHOW_CURSOR, "^");
        written.replace(END, ">").replace('\x1b', "ESC")
    }

    #[test]
    fn only_what_changed_is_written() {
        let mut screen = Screen::new(Vec::new(), true, 80);
        screen
            .draw(&lines(&["said"]), &lines(&["a", "b", "> x"]), Some((2, 3)))
            .unwrap();
        assert_eq!(
            written(&mut screen),
            "<\rESC[Jsaid\r\nESC[2Ka\r\nESC[2Kb\r\nESC[2K> x\rESC[3C>^"
        );
        screen
            .draw(&[], &lines(&["a", "c", "> x"]), Some((2, 3)))
            .unwrap();
        assert_eq!(written(&mut screen), "<\rESC[2A\r\nESC[2Kc\r\n\rESC[3C>^");
        screen
            .draw(&[], &lines(&["a", "c", "> x"]), Some((2, 3)))
            .unwrap();
        assert_eq!(written(&mut screen), "");
        screen.draw(&[], &lines(&["a"]), Some((0, 0))).unwrap();
        assert_eq!(written(&mut screen), "<\rESC[2A\rESC[1CESC[J\r>^");
        screen
            .draw(&lines(&["more"]), &lines(&["a"]), None)
            .unwrap();
        assert_eq!(written(&mut screen), "<\rESC[Jmore\r\nESC[2Ka\r>");
    }

    #[test]
    fn rows_that_the_terminal_broke_anew_are_cleared_too() {
        let mut screen = Screen::new(Vec::new(), true, 80);
        screen
            .draw(&[], &lines(&[&"a".repeat(50), "> xy"]), Some((1, 4)))
            .unwrap();
        written(&mut screen);
        screen.resize(20).unwrap();
        assert_eq!(written(&mut screen), "\rESC[3AESC[J^");
    }
}
