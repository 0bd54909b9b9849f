//! Draws the live part besides the conversation: unsent messages, the question, and the input line.

use everturn_client::state::Status;

use super::{Mode, Talk};
use crate::{
    chat::{
        questions,
        view::{Line, Now, Style},
    },
    show::printable,
};

/// The most unsent messages on display.
const MAX_UNSENT: usize = 5;

impl Talk {
    /// Draws the whole screen.
    pub(super) fn draw(&mut self) -> anyhow::Result<()> {
        self.is_stale = false;
        let look = self.setup.look.clone();
        let now = Now {
            ms: chrono::Utc::now().timestamp_millis(),
            tick: self.tick,
        };
        let waits = self.waits_for_an_id();
        let mut printed = Vec::new();
        if !waits {
            printed = self.view.settle(&self.session.state, &look);
        }
        let (line, cursor) = self.line();
        let below = self.below(now);
        let room = self.height.saturating_sub(1 + below.len() + line.len());
        let (settled, mut live) = if waits {
            (Vec::new(), Vec::new())
        } else {
            self.view.live(&self.session.state, &look, now, room)
        };
        printed.extend(settled);
        printed.append(&mut self.printed);
        live.extend(below);
        let cursor = cursor.map(|(row, column)| (live.len() + row, column));
        live.extend(line);
        self.screen.draw(&printed, &live, cursor)?;
        Ok(())
    }

    /// Returns the rows between the conversation and the input line.
    fn below(&self, now: Now) -> Vec<Line> {
        let mut rows = vec![Line::default()];
        let unsent = &self.session.unsent;
        for message in unsent.iter().take(MAX_UNSENT) {
            let first = message.content.lines().next().unwrap_or_default();
            let how = match &message.message_id {
                Some(_) => "waits for its turn",
                None => "is being sent",
            };
            let row = Line::of("you> ", Style::Dim)
                .and(first, Style::Dim)
                .and(&format!("  ({how})"), Style::Dim);
            rows.push(row);
        }
        if unsent.len() > MAX_UNSENT {
            let more = unsent.len() - MAX_UNSENT;
            rows.push(Line::of(&format!("… and {more} more"), Style::Dim));
        }
        rows.extend(self.status(now));
        rows.extend(self.question());
        if let Some(hint) = &self.hint {
            rows.push(Line::of(hint, Style::Dim));
        }
        let width = self.setup.look.width;
        rows.into_iter().map(|row| row.cut(width)).collect()
    }

    fn status(&self, now: Now) -> Option<Line> {
        let spinner = format!("{} ", now.spinner());
        if !self.session.is_connected {
            return Some(Line::of(&spinner, Style::Warn).and("connecting again …", Style::Warn));
        }
        let text = match (self.is_cancelling(), self.session.state.status()) {
            (true, _) => "cancelling · Ctrl-C again leaves",
            (false, Status::Idle) => return None,
            (false, Status::Running) => match self.session.waiting() {
                Some(sentence) => {
                    let row = Line::of(&spinner, Style::Warn).and(&sentence, Style::Warn);
                    return Some(row.and(" · Ctrl-C cancels", Style::Dim));
                }
                None => match self.session.state.progress().last() {
                    Some(report) => &format!("{} · Ctrl-C cancels", printable(&report.sentence())),
                    None => "working · Ctrl-C cancels",
                },
            },
            (false, Status::Waiting) => "waiting · Ctrl-C cancels",
        };
        Some(Line::of(&spinner, Style::Heading).and(text, Style::Dim))
    }

    fn question(&self) -> Option<Line> {
        let question = self.asked.as_ref().filter(|_| self.mode == Mode::Message)?;
        let mut row = Line::of(&format!("◆ {}? ", question.tool_name), Style::Warn);
        if !self.is_focused {
            row.push("Tab, and then: ", Style::Plain);
        }
        row.push(questions::keys(question), Style::Plain);
        Some(row)
    }

    /// Returns the input line and the cursor's position.
    fn line(&self) -> (Vec<Line>, Option<(usize, usize)>) {
        let prompt = match &self.mode {
            Mode::Message if !self.has_line() => return (Vec::new(), None),
            Mode::Message => "you> ",
            Mode::Edit(_) => "arguments> ",
            Mode::Reason(_) => "reason> ",
            Mode::Result(_) => "result> ",
        };
        let prompt = Line::of(prompt, Style::Heading);
        let (rows, cursor) = self
            .editor
            .rows(&prompt, self.setup.look.width, self.height / 2);
        (rows, Some(cursor))
    }
}
