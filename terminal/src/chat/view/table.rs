//! A Markdown table as rows of a terminal. No I/O.

use pulldown_cmark::Alignment;

use super::line::{Line, Style};

/// A table that is built cell by cell. The first row is its header.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Line>>,
    row: Vec<Line>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub(super) fn cell(&mut self, cell: Line) {
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Returns the rows, at most `room` columns wide. Cells that do not fit are cut.
    pub(super) fn rows(self, room: usize) -> Vec<Line> {
        let widths = self.widths(room);
        let mut drawn = Vec::new();
        for (number, row) in self.rows.into_iter().enumerate() {
            let mut line = Line::default();
            for (at, width) in widths.iter().enumerate() {
                if at > 0 {
                    line.push(" │ ", Style::Dim);
                }
                let cell = row.get(at).cloned().unwrap_or_default().cut(*width);
                let free = width.saturating_sub(cell.width());
                let alignment = self.alignments.get(at).copied();
                let before = blanks_before(alignment.unwrap_or(Alignment::None), free);
                line.push(&" ".repeat(before), Style::Plain);
                for mut span in cell.0 {
                    if number == 0 {
                        span.style = Style::Bold;
                    }
                    line.0.push(span);
                }
                let is_last = at + 1 == widths.len();
                if !is_last {
                    line.push(&" ".repeat(free - before), Style::Plain);
                }
            }
            drawn.push(line);
            if number == 0 {
                let rules: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                drawn.push(Line::of(&rules.join("─┼─"), Style::Dim));
            }
        }
        drawn
    }

    /// Returns the widths of the columns. Without enough space, the widest columns shrink.
    fn widths(&self, room: usize) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.map(Line::width).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<_> = (0..count).map(width).collect();
        let room = room.saturating_sub(3 * count.saturating_sub(1)).max(count);
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = widths.iter_mut().max() else {
                break;
            };
            *widest -= 1;
        }
        widths
    }
}

/// Returns the number of blanks before a cell, of `free` blanks in total.
fn blanks_before(alignment: Alignment, free: usize) -> usize {
    match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => free / 2,
        Alignment::Right => free,
    }
}
