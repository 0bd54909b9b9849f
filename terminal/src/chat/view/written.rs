//! Live texts of models. No I/O.
//!
//! The last block of a text is shown as plain text, and the blocks before it as Markdown, because half a table or code
//! block cannot be rendered. A text stays in the live part as long as it fits, because a new attempt may still replace
//! a live text.

use everturn_client::state::{Conversation, Item, ItemKind, OpenText};

use super::{
    items::{self, note},
    line::{Line, Style},
    look::Look,
    markdown,
};

/// The most rows of a sub-agent's text or of a reasoning.
const QUIET_ROWS: usize = 2;

/// The permanently printed part of the live text of the turn's own agent.
#[derive(Debug, Default)]
pub(super) struct Written {
    printed: String,
}

impl Written {
    /// Forgets the printed part, because another log has replaced the text's log.
    pub(super) fn forget(&mut self) {
        self.printed.clear();
    }

    /// Ends the live text after the event with the whole text. Returns rows that come before the text, and the
    /// unprinted rest of the text.
    pub(super) fn end(&mut self, whole: &str, look: &Look) -> (Vec<Line>, String) {
        let printed = std::mem::take(&mut self.printed);
        match whole.strip_prefix(printed.as_str()) {
            Some(rest) => (Vec::new(), rest.to_owned()),
            None => (began_anew(look), whole.to_owned()),
        }
    }

    /// Returns the permanent rows and the live rows. `may_print` is true when nothing before the text waits to be
    /// printed.
    pub(super) fn live(
        &mut self,
        state: &Conversation,
        look: &Look,
        room: usize,
        may_print: bool,
    ) -> (Vec<Line>, Vec<Line>) {
        let own = |text: &&OpenText| text.parent_tool_call_id.is_none();
        let mut settled = Vec::new();
        let mut rows = Vec::new();
        for text in state.texts().iter().filter(own) {
            if text.part != "text" {
                rows.extend(aside(text, look));
                continue;
            }
            let Some(rest) = text.text.strip_prefix(self.printed.as_str()) else {
                // A new attempt writes another text, or its text is still shorter than the printed part.
                if !self.printed.starts_with(text.text.as_str()) {
                    settled.extend(began_anew(look));
                    self.printed.clear();
                }
                rows.extend(drawn(&text.text, look));
                continue;
            };
            let drawn = drawn(rest, look);
            let complete = markdown::complete(rest);
            if drawn.len() > room && may_print && complete > 0 {
                settled.extend(items::answer(&rest[..complete], look));
                settled.push(Line::default());
                self.printed.push_str(&rest[..complete]);
                rows.extend(items::raw(&rest[complete..], Style::Plain, look));
            } else {
                rows.extend(drawn);
            }
        }
        (settled, rows)
    }
}

/// Returns the rows of a live text: complete blocks as Markdown, and the last block as plain text.
fn drawn(text: &str, look: &Look) -> Vec<Line> {
    let complete = markdown::complete(text);
    let mut rows = Vec::new();
    if complete > 0 {
        rows.extend(items::answer(&text[..complete], look));
        rows.push(Line::default());
    }
    if text.len() > complete {
        rows.extend(items::raw(&text[complete..], Style::Plain, look));
    }
    rows
}

fn began_anew(look: &Look) -> Vec<Line> {
    items::note("the model was asked again, and its text begins anew", look)
}

/// Returns the rows of a text beside the answer. A tool call has a row with the tool and the size of the arguments so far.
fn aside(text: &OpenText, look: &Look) -> Vec<Line> {
    let Some((tool, arguments)) = text.written_call() else {
        return quiet(&text.text, look);
    };
    if tool.is_empty() {
        return Vec::new();
    }
    let bytes = arguments.len();
    let mut rows = note(&format!("{tool} is being written, {bytes} bytes"), look);
    rows.extend(quiet(arguments, look));
    rows
}

/// Returns the last rows of a less important text.
fn quiet(text: &str, look: &Look) -> Vec<Line> {
    let mut rows = items::raw(text.trim(), Style::Dim, look);
    let hidden = rows.len().saturating_sub(QUIET_ROWS);
    rows.drain(..hidden);
    rows
}

/// Returns the live text of the sub-agent that an item started.
pub(super) fn of_sub_agent(
    item: &Item,
    depth: usize,
    state: &Conversation,
    look: &Look,
) -> Vec<Line> {
    let ItemKind::ToolCall(call) = &item.kind else {
        return Vec::new();
    };
    let Some(agent) = &call.sub_agent else {
        return Vec::new();
    };
    let texts = state.texts().iter();
    let own = texts.filter(|text| text.agent_execution_id == agent.agent_execution_id);
    let look = look.inner(depth + 1);
    let rows = own.flat_map(|text| aside(text, &look)).collect();
    items::indented(rows, depth + 1)
}
