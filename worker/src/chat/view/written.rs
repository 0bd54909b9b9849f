//! Texts that models are writing now. No I/O.
//!
//! The last block of a text is shown as it is, and the blocks before it as Markdown: half of a table or of a code block has no
//! look yet. A text stays in the live part, where a later try can still replace it, as long as there is room for it.

use everturn_client::state::{Conversation, Item, ItemKind, OpenText};

use super::{
    Look, items,
    line::{Line, Style},
    markdown, note,
};

/// A text of a sub-agent is shown with so many rows, and so is what a model thinks.
const QUIET_ROWS: usize = 2;

/// What is printed for good of the text that the turn's own agent is writing.
#[derive(Debug, Default)]
pub(super) struct Written {
    printed: String,
}

impl Written {
    /// Another log has taken the place of the one whose text it was.
    pub(super) fn forget(&mut self) {
        self.printed.clear();
    }

    /// The event has come with the whole text. Returns rows that come before it, and what is not printed of it.
    pub(super) fn end(&mut self, whole: &str, look: &Look) -> (Vec<Line>, String) {
        let printed = std::mem::take(&mut self.printed);
        match whole.strip_prefix(printed.as_str()) {
            Some(rest) => (Vec::new(), rest.to_owned()),
            None => (began_anew(look), whole.to_owned()),
        }
    }

    /// The rows that can be printed for good, and those that are drawn anew. `may_print`: nothing that comes before the
    /// text waits to be printed.
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
                rows.extend(quiet(&text.text, look));
                continue;
            }
            let Some(rest) = text.text.strip_prefix(self.printed.as_str()) else {
                // A later try writes another text, or what it writes is still shorter than what is printed.
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

/// A text so far: blocks that are complete, and the last one as it is.
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
    note("the model was asked again, and its text begins anew", look)
}

/// The end of a text that is not important.
fn quiet(text: &str, look: &Look) -> Vec<Line> {
    let mut rows = items::raw(text.trim(), Style::Dim, look);
    let hidden = rows.len().saturating_sub(QUIET_ROWS);
    rows.drain(..hidden);
    rows
}

/// What the sub-agent that an item started is writing.
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
    let rows = own.flat_map(|text| quiet(&text.text, &look)).collect();
    items::indented(rows, depth + 1)
}
