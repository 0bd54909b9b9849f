//! Handles keys.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    Mode, Question, Talk,
    commands::{self, Command, HELP},
};
use crate::chat::{
    editor::Edited,
    keys,
    questions::{self, Choice},
    session::Answer,
    view::{Line, Style},
};

impl Talk {
    pub(super) fn key(&mut self, key: KeyEvent) {
        self.hint = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return self.interrupt(),
            KeyCode::Char('d') if control && self.editor.text().is_empty() => {
                if self.mode == Mode::Message {
                    return self.leave();
                }
                return self.interrupt();
            }
            KeyCode::Char('l') if control => {
                self.screen.forget();
                return;
            }
            KeyCode::Esc if self.mode != Mode::Message => return self.interrupt(),
            KeyCode::Tab if self.asked.is_some() && self.mode == Mode::Message => {
                self.is_focused = !self.is_focused;
                return;
            }
            KeyCode::Char(c) if self.answers(control) => {
                if let Some(question) = self.asked.clone()
                    && let Some(choice) = questions::of_key(&question, c)
                {
                    return self.chosen(question, choice);
                }
            }
            _ => {}
        }
        if !self.has_line() && self.mode == Mode::Message {
            return;
        }
        match self.editor.key(key) {
            Edited::Text => {
                self.last_typed = Some(Instant::now());
                if !self.editor.text().is_empty() {
                    self.is_focused = false;
                }
            }
            Edited::Ready(text) => {
                self.last_typed = None;
                self.ready(text);
            }
            Edited::No => {}
        }
    }

    /// True when a key answers the question.
    fn answers(&self, control: bool) -> bool {
        !control && self.is_focused && self.mode == Mode::Message
    }

    /// True when the user can type messages.
    pub(super) fn has_line(&self) -> bool {
        self.has_line
    }

    fn chosen(&mut self, question: Question, choice: Choice) {
        match choice {
            Choice::Answer(answer) => self.answer(&question, answer),
            Choice::Reason => self.mode = Mode::Reason(question),
            Choice::Result => self.mode = Mode::Result(question),
            Choice::Edit if keys::own_editor().is_some() => {
                self.wants_editor = Some((question.input_text.clone(), question));
            }
            Choice::Edit => {
                self.editor.set(&question.input_text);
                self.mode = Mode::Edit(question);
            }
        }
    }

    /// Handles a line after Enter.
    fn ready(&mut self, text: String) {
        match std::mem::replace(&mut self.mode, Mode::Message) {
            Mode::Message => self.message(&text),
            Mode::Edit(question) => match questions::arguments(&question, &text) {
                Ok(answer) => self.answer(&question, answer),
                Err(error) => {
                    self.hint = Some(error);
                    self.editor.set(&text);
                    self.mode = Mode::Edit(question);
                }
            },
            Mode::Reason(question) => self.answer(&question, Answer::Deny(text)),
            Mode::Result(question) => self.answer(&question, questions::result(&text)),
        }
    }

    fn message(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        self.editor.remember(text);
        match commands::read(text) {
            Command::Send(content, on_busy) => self.session.send(content, on_busy),
            Command::Stop if self.session.is_busy() => self.cancel(),
            Command::Stop => self.hint = Some("no turn runs".to_owned()),
            Command::Retry => self.session.retry(),
            Command::Help => {
                let lines = HELP
                    .iter()
                    .map(|line| Line::of(&format!("  {line}"), Style::Dim));
                self.printed
                    .extend(lines.map(|line| line.cut(self.setup.look.width)));
            }
            Command::Quit => self.leave(),
            Command::Wrong(why) => self.hint = Some(why),
        }
    }
}
