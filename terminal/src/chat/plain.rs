//! The chat in pipes, and on terminals that can only print: whole lines, in order, without repetition.

use std::{
    collections::HashSet,
    io::{self, IsTerminal},
};

use everturn_client::{Frame, OnBusy, state::EndKind};
use everturn_supervisor::shutdown;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio_util::sync::CancellationToken;

use super::{
    questions::{self, Choice},
    session::{Answer, Happened, MODEL_WAITING, Question, Session, Wants},
    setup::{Setup, code_of},
    view::{View, outcome},
};
use crate::show;

/// Sends each line of standard input, or the single message, and prints the events.
pub(super) async fn run(
    session: Session,
    setup: Setup,
    is_json: bool,
    has_history: bool,
) -> anyhow::Result<u8> {
    let view = if has_history {
        View::default()
    } else {
        View::of_own_turns()
    };
    let mut plain = Plain {
        session,
        view,
        is_json,
        lines: BufReader::new(tokio::io::stdin()).lines(),
        has_person: io::stdin().is_terminal(),
        shutdown: shutdown::token()?,
        is_cancelling: false,
        asked: None,
        held: Vec::new(),
        turns: Vec::new(),
        noted: HashSet::new(),
        setup,
    };
    if let Some(message) = plain.setup.message.take() {
        return plain.turn(message).await.map(code_of);
    }
    plain.greet();
    let mut code = 0;
    while let Some(line) = plain.line().await? {
        if line.trim().is_empty() {
            continue;
        }
        let outcome = plain.turn(line).await?;
        // A person has seen the end of the turn. A script needs the exit code.
        if !plain.has_person {
            code = code_of(outcome);
        }
        if plain.shutdown.is_cancelled() {
            break;
        }
    }
    Ok(code)
}

struct Plain {
    session: Session,
    view: View,
    setup: Setup,
    is_json: bool,
    lines: Lines<BufReader<Stdin>>,
    /// True when a person types the lines.
    has_person: bool,
    shutdown: CancellationToken,
    is_cancelling: bool,
    /// The open question, and the choice for which the user now types a text.
    asked: Option<(Question, Option<Choice>)>,
    /// Frames whose turn is not known yet, because the message has no id yet.
    held: Vec<(Frame, Option<String>)>,
    /// Turns of this chat's messages.
    turns: Vec<String>,
    /// Calls with a printed note.
    noted: HashSet<String>,
}

impl Plain {
    fn greet(&self) {
        let id = &self.session.conversation_id;
        eprintln!(
            "conversation {id} · Ctrl-D leaves, Ctrl-C cancels the running turn and leaves; go on with --conversation {id}"
        );
    }

    /// Returns the next message.
    async fn line(&mut self) -> anyhow::Result<Option<String>> {
        if self.has_person {
            eprint!("\nyou> ");
        }
        loop {
            let happened = tokio::select! {
                line = self.lines.next_line() => return Ok(line?),
                () = self.shutdown.cancelled() => return Ok(None),
                happened = self.session.next() => happened,
            };
            self.take(happened)?;
        }
    }

    /// Sends a message, and prints its answer.
    async fn turn(&mut self, message: String) -> anyhow::Result<EndKind> {
        self.session.send(message, OnBusy::Queue);
        let mut message_id = None;
        loop {
            if let Some(ended) = message_id
                .as_deref()
                .and_then(|id| outcome(&self.session.state, id))
            {
                return Ok(ended);
            }
            let asks = self.asked.is_some();
            let happened = tokio::select! {
                happened = self.session.next() => happened,
                line = self.lines.next_line(), if asks => {
                    self.answered(line?);
                    continue;
                }
                () = self.shutdown.cancelled(), if !self.is_cancelling => {
                    self.is_cancelling = true;
                    self.session.cancel();
                    continue;
                }
            };
            if let Happened::Accepted(id) = &happened {
                message_id = Some(id.clone());
                self.turns.push(id.clone());
                self.view.show_turn(id);
            }
            self.take(happened)?;
            self.ask();
        }
    }

    fn take(&mut self, happened: Happened) -> anyhow::Result<()> {
        match happened {
            Happened::Frame(frame) => {
                if frame.event == "reset" {
                    let from = frame.data["from_sequence"].as_u64().unwrap_or(1);
                    self.view.reset(from);
                    eprintln!(
                        "the database has lost events: new events replace the events from {from} on"
                    );
                }
                if frame.event == MODEL_WAITING
                    && let Some(sentence) = self.session.waiting()
                {
                    eprintln!("{sentence}");
                }
                if self.is_json && (frame.id.is_some() || frame.event == "reset") {
                    let turn = self.session.state.turn().map(str::to_owned);
                    self.held.push((frame, turn));
                }
            }
            Happened::Lost => eprintln!("the connection is lost; connecting again"),
            Happened::Back => eprintln!("the connection is back"),
            Happened::Over(why) => anyhow::bail!("{why}"),
            Happened::NotAccepted(_, why) => anyhow::bail!("the message was not taken: {why}"),
            Happened::Note(note) => eprintln!("{}", show::printable(&note)),
            Happened::Accepted(_) => {}
        }
        self.print();
        Ok(())
    }

    fn print(&mut self) {
        // The message's id decides whether an event is shown. The id comes with the gateway's response.
        let mut unsent = self.session.unsent.iter();
        if unsent.any(|unsent| unsent.message_id.is_none()) {
            return;
        }
        if !self.is_json {
            for line in self.view.settle(&self.session.state, &self.setup.look) {
                println!("{}", line.text());
            }
            return;
        }
        for (frame, turn) in self.held.drain(..) {
            let is_own =
                |id: &String| turn.as_ref() == Some(id) || frame.data["message_id"] == id.as_str();
            if frame.event == "reset" || self.turns.iter().any(is_own) {
                println!("{}", frame.data);
            }
        }
    }

    /// Asks about waiting calls, or answers according to the options.
    fn ask(&mut self) {
        if self.is_cancelling {
            return;
        }
        let questions = self.session.questions();
        if let Some((asked, _)) = &self.asked
            && !questions.contains(asked)
        {
            eprintln!(
                "{} was answered elsewhere",
                show::printable(&asked.tool_name)
            );
            self.asked = None;
        }
        for question in questions {
            let answer = match question.wants {
                Wants::Approval if self.setup.approves_all => Answer::Approve {
                    input: None,
                    remember: false,
                },
                Wants::Consent { is_old: false } if self.setup.runs_tools => Answer::Run,
                _ if self.has_person => {
                    if self.asked.is_none() {
                        self.show(question);
                    }
                    continue;
                }
                Wants::Approval => {
                    Answer::Deny("no person was present to approve the call".to_owned())
                }
                Wants::Answer(_) => {
                    Answer::Deny("no person was present to answer the question".to_owned())
                }
                Wants::Consent { .. } => Answer::Deny(
                    "no person was present to allow the call; with --yes-tools, the call runs"
                        .to_owned(),
                ),
                // Another client may offer the tool.
                Wants::Result => {
                    if self.noted.insert(question.execution_id) {
                        let tool = show::printable(&question.tool_name);
                        eprintln!(
                            "{tool} waits for a client with this tool, for example with --tool"
                        );
                    }
                    continue;
                }
            };
            self.session.answer(&question, answer);
        }
    }

    fn show(&mut self, question: Question) {
        let command = self.session.command(&question.tool_name);
        for line in questions::asked(&question, command) {
            eprintln!("{}", line.text());
        }
        eprint!("{}> ", questions::keys(&question));
        self.asked = Some((question, None));
    }

    /// Handles the line that answers a question.
    fn answered(&mut self, line: Option<String>) {
        let Some((question, chosen)) = self.asked.take() else {
            return;
        };
        let Some(line) = line else {
            let closed = Answer::Deny("the terminal was closed".to_owned());
            self.session.answer(&question, closed);
            return;
        };
        let choice = match chosen {
            None => questions::of_line(&question, &line),
            Some(Choice::Edit) => match questions::arguments(&question, &line) {
                Ok(answer) => Some(Choice::Answer(answer)),
                Err(error) => {
                    eprintln!("{error}");
                    None
                }
            },
            Some(Choice::Reason) => Some(Choice::Answer(Answer::Deny(line))),
            Some(Choice::Result | Choice::Answer(_)) => {
                Some(Choice::Answer(questions::result(&line)))
            }
        };
        match choice {
            Some(Choice::Answer(answer)) => {
                self.session.answer(&question, answer);
                self.ask();
            }
            Some(choice) => {
                let what = match choice {
                    Choice::Edit if matches!(question.wants, Wants::Answer(_)) => "answer as JSON",
                    Choice::Edit => "arguments",
                    Choice::Reason => "reason",
                    Choice::Result | Choice::Answer(_) => "result",
                };
                eprint!("{what}> ");
                self.asked = Some((question, Some(choice)));
            }
            None => {
                eprint!("{}> ", questions::keys(&question));
                self.asked = Some((question, None));
            }
        }
    }
}
