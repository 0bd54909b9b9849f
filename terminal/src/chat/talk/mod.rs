//! A conversation on a terminal: waits for keys, events and signals, and draws.
//!
//! - `typed`: handles keys
//! - `commands`: parses lines
//! - `draw`: draws the live part besides the conversation

mod commands;
mod draw;
mod typed;

use std::{
    collections::HashSet,
    env,
    io::{self, Stdout},
    path::PathBuf,
    time::{Duration, Instant},
};

use crossterm::event::{Event, EventStream, KeyEventKind};
use everturn_client::OnBusy;
use futures::StreamExt;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{MissedTickBehavior, interval, sleep_until},
};

use super::{
    editor::Editor,
    keys::{self, Raw},
    questions,
    screen::Screen,
    session::{Answer, Happened, Question, Session, Wants},
    setup::{INTERRUPTED, Setup, code_of},
    view::{Line, Style, View, note, outcome},
};

/// The time between two frames of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// The shortest time between two updates of the screen during a streamed answer.
const FRAME: Duration = Duration::from_millis(30);

/// The purpose of the input line.
#[derive(Debug, Clone, PartialEq)]
enum Mode {
    Message,
    Edit(Question),
    Reason(Question),
    Result(Question),
}

/// The target of the last cancel.
#[derive(Debug, Clone, PartialEq)]
enum Cancelled {
    Nothing,
    /// A message that has no turn yet.
    Waiting,
    Turn(String),
}

/// The state behind the terminal's content.
struct Talk {
    session: Session,
    view: View,
    setup: Setup,
    screen: Screen<Stdout>,
    height: usize,
    editor: Editor,
    mode: Mode,
    /// Permanent rows for the next update.
    printed: Vec<Line>,
    /// A hint to the user, until the next key.
    hint: Option<String>,
    tick: usize,
    /// The question on display.
    asked: Option<Question>,
    /// Questions whose whole input was printed.
    shown: HashSet<String>,
    /// True when keys answer the question instead of editing the line.
    is_focused: bool,
    last_typed: Option<Instant>,
    /// The target of the last cancel. A second Ctrl-C leaves the chat.
    cancelled: Cancelled,
    /// The turn of the single message.
    turn: Option<String>,
    /// A text for the user's own editor, and its question.
    wants_editor: Option<(String, Question)>,
    /// The exit code, after the end of the chat.
    exit: Option<u8>,
    /// True when the user can type messages. The chat of a single message has no line.
    has_line: bool,
    /// True after a change since the last update of the screen.
    is_stale: bool,
}

/// The chat's signals.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }
}

/// Runs the chat until the user leaves, or the single turn has ended. Returns the exit code.
pub(super) async fn run(session: Session, setup: Setup, history: PathBuf) -> anyhow::Result<u8> {
    let raw = Raw::begin()?;
    let (columns, rows) = crossterm::terminal::size()?;
    let has_colors = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let is_one_turn = setup.message.is_some();
    let mut talk = Talk {
        view: if is_one_turn {
            View::of_own_turns()
        } else {
            View::default()
        },
        screen: Screen::new(io::stdout(), has_colors, usize::from(columns)),
        height: usize::from(rows),
        editor: Editor::new((!is_one_turn).then_some(history)),
        mode: Mode::Message,
        printed: Vec::new(),
        hint: None,
        tick: 0,
        asked: None,
        shown: HashSet::new(),
        is_focused: false,
        last_typed: None,
        cancelled: Cancelled::Nothing,
        turn: None,
        wants_editor: None,
        exit: None,
        has_line: !is_one_turn,
        is_stale: true,
        session,
        setup,
    };
    talk.fit(usize::from(columns), usize::from(rows));
    talk.begin();
    let ended = talk.run(raw).await;
    let unsent = talk
        .session
        .unsent
        .iter()
        .filter(|unsent| unsent.message_id.is_none());
    let count = unsent.count();
    if count > 0 {
        eprintln!("the gateway has not confirmed {count} of your messages");
    }
    if !is_one_turn {
        let id = &talk.session.conversation_id;
        println!("go on with: everturn chat --conversation {id}");
    }
    ended
}

impl Talk {
    fn begin(&mut self) {
        if let Some(message) = self.setup.message.take() {
            self.session.send(message, OnBusy::Queue);
            return;
        }
        let greeting = format!("conversation {}", self.session.conversation_id);
        self.say(&greeting);
        self.say("/help says what can be typed, and Ctrl-D leaves");
    }

    fn is_one_turn(&self) -> bool {
        !self.has_line
    }

    async fn run(&mut self, raw: Raw) -> anyhow::Result<u8> {
        let mut raw = Some(raw);
        let mut keys = EventStream::new();
        let mut signals = Signals::new()?;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut drawn = Instant::now();
        self.draw()?;
        while self.exit.is_none() {
            tokio::select! {
                happened = self.session.next() => self.happened(happened)?,
                key = keys.next() => match key {
                    Some(key) => {
                        self.event(key?)?;
                        self.draw()?;
                        drawn = Instant::now();
                    }
                    // The terminal was closed.
                    None => self.leave(),
                },
                _ = signals.interrupt.recv() => self.interrupt(),
                _ = signals.terminate.recv() => self.leave(),
                _ = signals.hang_up.recv() => self.leave(),
                _ = ticks.tick(), if self.is_moving() => {
                    self.tick += 1;
                    self.is_stale = true;
                }
                () = sleep_until((drawn + FRAME).into()), if self.is_stale => {
                    self.draw()?;
                    drawn = Instant::now();
                }
            }
            if let Some((text, question)) = self.wants_editor.take() {
                self.screen.clear()?;
                drop(keys);
                drop(raw.take());
                self.edit_outside(&text, question).await;
                raw = Some(Raw::begin()?);
                keys = EventStream::new();
                // Ctrl-C in the editor was for the editor.
                signals = Signals::new()?;
                self.draw()?;
            }
        }
        self.finish()?;
        drop(raw);
        Ok(self.exit.unwrap_or_default())
    }

    /// Draws the last permanent rows, and removes the live part.
    fn finish(&mut self) -> anyhow::Result<()> {
        let mut printed = std::mem::take(&mut self.printed);
        if !self.waits_for_an_id() {
            printed.extend(self.view.settle(&self.session.state, &self.setup.look));
        }
        self.screen.draw(&printed, &[], None)?;
        self.screen.clear()?;
        Ok(())
    }

    fn happened(&mut self, happened: Happened) -> anyhow::Result<()> {
        self.is_stale = true;
        match happened {
            Happened::Frame(frame) => {
                if frame.event == "reset" {
                    let from = frame.data["from_sequence"].as_u64().unwrap_or(1);
                    self.view.reset(from);
                    self.say(&format!(
                        "the database has lost events: new events replace the events from {from} on"
                    ));
                }
            }
            Happened::Lost => self.say("the connection is lost; connecting again"),
            Happened::Back => self.say("the connection is back"),
            Happened::Over(why) => {
                self.finish()?;
                anyhow::bail!("{why}");
            }
            Happened::Accepted(id) => {
                if self.is_one_turn() {
                    self.view.show_turn(&id);
                    self.turn = Some(id);
                }
            }
            Happened::NotAccepted(content, why) => {
                self.say(&format!("the message was not taken: {why}"));
                if self.is_one_turn() {
                    self.exit = Some(1);
                } else if self.editor.text().is_empty() && self.mode == Mode::Message {
                    self.editor.set(&content);
                }
            }
            Happened::Note(note) => self.say(&note),
        }
        if !self.session.is_busy() || !self.is_cancelling() {
            self.cancelled = Cancelled::Nothing;
        }
        let turn = self.turn.as_deref();
        if let Some(ended) = turn.and_then(|turn| outcome(&self.session.state, turn)) {
            self.exit = Some(code_of(ended));
        }
        self.ask();
        Ok(())
    }

    /// Handles waiting calls: answers according to the options, and shows the oldest open question.
    fn ask(&mut self) {
        let mut open = self.session.questions();
        open.retain(|question| {
            let answer = match question.wants {
                Wants::Approval if self.setup.approves_all => Answer::Approve {
                    input: None,
                    remember: false,
                },
                Wants::Consent { is_old: false } if self.setup.runs_tools => Answer::Run,
                _ => return true,
            };
            self.session.answer(question, answer);
            false
        });
        if let Some(asked) = self.asked.take() {
            if open.contains(&asked) {
                self.asked = Some(asked);
                return;
            }
            self.drop_question(&asked);
        }
        let Some(question) = open.into_iter().next() else {
            return;
        };
        if self
            .shown
            .insert(format!("{} {:?}", question.execution_id, question.wants))
        {
            let command = self.session.command(&question.tool_name);
            let width = self.setup.look.width;
            let indent = Line::of("    ", Style::Plain);
            for line in questions::asked(&question, command) {
                self.printed
                    .extend(line.wrapped(width, &Line::default(), &indent));
            }
        }
        // The next letter of a half-typed word must not answer a question.
        let types = self
            .last_typed
            .is_some_and(|at| at.elapsed() < Duration::from_secs(1));
        self.is_focused = !types && self.editor.text().is_empty();
        self.asked = Some(question);
    }

    /// Removes a question that was closed without an answer from this chat.
    fn drop_question(&mut self, asked: &Question) {
        if self.session.state.turn().is_some() {
            self.say(&format!("{} was answered elsewhere", asked.tool_name));
        }
        self.is_focused = false;
        let of_mode = match &self.mode {
            Mode::Edit(question) | Mode::Reason(question) | Mode::Result(question) => question,
            Mode::Message => return,
        };
        if of_mode == asked {
            self.mode = Mode::Message;
            self.editor.set("");
        }
    }

    fn answer(&mut self, question: &Question, answer: Answer) {
        self.session.answer(question, answer);
        self.asked = None;
        self.is_focused = false;
        self.ask();
    }

    async fn edit_outside(&mut self, text: &str, question: Question) {
        let Some(editor) = keys::own_editor() else {
            return;
        };
        let edited = keys::edited(&editor, text).await;
        let edited = edited.map_err(|error| format!("{error:#}"));
        match edited.and_then(|text| questions::arguments(&question, &text)) {
            Ok(answer) => self.answer(&question, answer),
            Err(error) => self.say(&error),
        }
    }

    /// Handles an event of the terminal.
    fn event(&mut self, event: Event) -> anyhow::Result<()> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            Event::Paste(text) if self.has_line() || self.mode != Mode::Message => {
                self.is_focused = false;
                self.last_typed = Some(Instant::now());
                self.editor.paste(&text);
            }
            Event::Resize(columns, rows) => {
                self.screen.resize(usize::from(columns))?;
                self.fit(usize::from(columns), usize::from(rows));
            }
            _ => {}
        }
        Ok(())
    }

    fn fit(&mut self, columns: usize, rows: usize) {
        // The last column stays free, because terminals differ in wrapping a row that ends there.
        self.setup.look.width = columns.saturating_sub(1).max(10);
        self.height = rows.max(3);
    }

    fn is_moving(&self) -> bool {
        self.session.is_busy() || !self.session.is_connected
    }

    /// True while the id of the single message is unknown. Until then, the chat cannot know its turn's events.
    fn waits_for_an_id(&self) -> bool {
        self.is_one_turn() && self.turn.is_none()
    }

    fn say(&mut self, text: &str) {
        let rows = note(text, &self.setup.look);
        self.printed.extend(rows);
        self.is_stale = true;
    }

    /// Cancels the running turn, or leaves after a previous cancel.
    fn interrupt(&mut self) {
        self.is_stale = true;
        if self.mode != Mode::Message {
            self.mode = Mode::Message;
            self.editor.set("");
        } else if self.is_cancelling() {
            self.exit = Some(INTERRUPTED);
        } else if self.has_line() && !self.editor.text().is_empty() {
            self.editor.set("");
        } else if self.session.is_busy() {
            self.cancel();
        } else {
            self.hint = Some("Ctrl-D leaves".to_owned());
        }
    }

    fn cancel(&mut self) {
        self.cancelled = match self.session.state.turn() {
            Some(turn) => Cancelled::Turn(turn.to_owned()),
            None => Cancelled::Waiting,
        };
        self.session.cancel();
    }

    /// True when the running turn was asked to end.
    fn is_cancelling(&self) -> bool {
        match (&self.cancelled, self.session.state.turn()) {
            (Cancelled::Turn(cancelled), Some(running)) => cancelled == running,
            (Cancelled::Waiting, None) => true,
            _ => false,
        }
    }

    fn leave(&mut self) {
        let code = if self.is_one_turn() { INTERRUPTED } else { 0 };
        self.exit = Some(code);
    }
}
