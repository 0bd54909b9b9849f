//! Draws on the terminal: rows that are printed for good, and below them the live rows, which are drawn anew. Only rows that
//! have changed are written.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use super::view::Line;

/// Begins and ends a picture that the terminal shows at once, if it can (DEC mode 2026; others ignore it).
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?2026l";
const SHOW_CURSOR: &str = "\x1b[?25h";
const CLEAR_ROW: &str = "\x1b[2K";
const CLEAR_BELOW: &str = "\x1b[J";

/// What is on the terminal below what was printed for good.
pub(super) struct Screen<W: Write> {
    out: W,
    has_colors: bool,
    width: usize,
    /// The live rows: as painted, and their columns.
    live: Vec<(String, usize)>,
    /// Where the cursor is: its row among the live ones, and its column.
    cursor: (usize, usize),
}

impl<W: Write> Screen<W> {
    /// The cursor stands at the beginning of a row.
    pub(super) fn new(out: W, has_colors: bool, width: usize) -> Self {
        Self {
            out,
            has_colors,
            width,
            live: Vec::new(),
            cursor: (0, 0),
        }
    }

    /// Prints rows for good, and draws the live ones below, with the cursor in one of them or hidden. Every live row must be
    /// narrower than the terminal, and all of them must fit into it.
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
        let place = cursor.unwrap_or((live.len().saturating_sub(1), 0));
        if printed.is_empty() && live == self.live && place == self.cursor {
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
            // From the end of the last row, which may have been left as it is.
            picture.push('\r');
            match live.last() {
                Some((_, 0)) | None => {}
                Some((_, columns)) => _ = write!(picture, "\x1b[{columns}C"),
            }
            picture.push_str(CLEAR_BELOW);
        }
        picture.push('\r');
        move_up(&mut picture, last - place.0.min(last));
        if place.1 > 0 {
            let _ = write!(picture, "\x1b[{}C", place.1);
        }
        picture.push_str(END);
        if cursor.is_some() {
            picture.push_str(SHOW_CURSOR);
        }
        self.live = live;
        self.cursor = (place.0.min(last), place.1);
        self.out.write_all(picture.as_bytes())?;
        self.out.flush()
    }

    /// The terminal has another width. Its rows that are too wide now take more than one, as terminals break them anew, so
    /// the live rows are cleared, and drawn with the next picture.
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

    /// Forgets what is on the terminal, so that the next picture writes all of it.
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
