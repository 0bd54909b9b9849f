//! Prints a turn on the terminal: the text as it comes, and tools as lines.

use std::io::Write;

use everturn_proto::words::EventType;

use everturn_client::Frame;

use crate::{frames::KnownFrame, show};

#[derive(Default)]
pub(super) struct Printer {
    /// What is on the terminal of the text that is being written.
    printed: String,
}

impl Printer {
    /// Prints a frame. Texts of sub-agents are left out, because several may come at once.
    pub(super) fn print(&mut self, frame: &Frame, is_own: bool) {
        let text = |key: &str| frame.data[key].as_str().unwrap_or_default().to_owned();
        match (frame.event.as_str(), frame.event_type()) {
            ("text_start", _) if is_own && text("part") == "text" => self.replace(&text("text")),
            ("text_delta", _) if is_own && text("part") == "text" => self.append(&text("text")),
            // The event has the whole text, and so also what the stream lost.
            (_, EventType::Thought) if is_own => self.end(&text("thought")),
            (_, EventType::AssistantMessage) if is_own => self.end(&text("content")),
            (
                _,
                EventType::Act
                | EventType::Observe
                | EventType::ApprovalResolved
                | EventType::ClientToolRequested
                | EventType::Error
                | EventType::Cancelled
                | EventType::SubAgentStart
                | EventType::ContextCompacted
                | EventType::ModelFallback,
            ) => {
                if let Some(line) = show::line(frame) {
                    println!("{line}");
                }
            }
            _ => {}
        }
        let _unseen = std::io::stdout().flush();
    }

    fn append(&mut self, text: &str) {
        print!("{}", show::printable(text));
        self.printed.push_str(text);
    }

    /// Prints a text that begins anew. What is on the terminal already and fits stays.
    fn replace(&mut self, text: &str) {
        let rest = text.strip_prefix(self.printed.as_str()).map(str::to_owned);
        if let Some(rest) = rest {
            self.append(&rest);
        } else {
            println!("\n(the model was asked again)");
            self.printed.clear();
            self.append(text);
        }
    }

    /// Ends the text, which is complete.
    fn end(&mut self, whole: &str) {
        if !whole.is_empty() && self.printed != whole {
            self.replace(whole);
        }
        if !self.printed.is_empty() {
            println!();
        }
        self.printed.clear();
    }
}
