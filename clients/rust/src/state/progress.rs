//! The progress of running tools: rule 11 of `clients/transcripts/README.md`.

use serde::Serialize;
use serde_json::{Number, Value};

use super::fields::Fields;

/// The most reports. Beyond the limit, the oldest is dropped.
const MAX_REPORTS: usize = 256;

/// A report of a running tool: its progress, or a line of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolProgress {
    /// The tool execution.
    pub execution_id: String,
    /// The agent execution of the call.
    pub agent_execution_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The amount of work that is done, in the tool's own unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Number>,
    /// The whole amount of work, in the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
    /// The tool's words; empty without words.
    pub message: String,
    /// The level of a line of the tool's log; `None` for progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The message id of the turn.
    pub message_id: String,
}

impl ToolProgress {
    /// Returns a sentence for people, like `copy: 3/10 copying`.
    pub fn sentence(&self) -> String {
        let amounts = match (&self.progress, &self.total) {
            (Some(done), Some(total)) => format!("{done}/{total}"),
            (Some(done), None) => done.to_string(),
            (None, _) => String::new(),
        };
        let words = [amounts.as_str(), self.message.as_str()];
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        format!("{}: {}", self.tool_name, words.join(" "))
    }
}

/// The latest reports of running tools: of each tool execution at most one step and one line.
#[derive(Debug, Default)]
pub(super) struct Reports(pub(super) Vec<ToolProgress>);

impl Reports {
    /// Takes a report. Returns true when the reports changed.
    pub(super) fn apply(&mut self, data: Fields<'_>) -> bool {
        let execution_id = data.text("execution_id");
        if execution_id.is_empty() {
            return false;
        }
        let number = |name| match data.get(name) {
            Some(Value::Number(number)) => Some(number.clone()),
            _ => None,
        };
        let level = Some(data.text("level")).filter(|level| !level.is_empty());
        let report = ToolProgress {
            execution_id: execution_id.to_owned(),
            agent_execution_id: data.text("agent_execution_id").to_owned(),
            tool_name: data.text("tool_name").to_owned(),
            progress: number("progress"),
            total: number("total"),
            message: data.text("message").to_owned(),
            level: level.map(str::to_owned),
            message_id: data.text("message_id").to_owned(),
        };
        self.0.retain(|other| {
            other.execution_id != report.execution_id || other.level.is_some() != level.is_some()
        });
        self.0.push(report);
        let excess = self.0.len().saturating_sub(MAX_REPORTS);
        self.0.drain(..excess);
        true
    }

    /// Drops the reports of a tool execution that has ended.
    pub(super) fn drop_of(&mut self, execution_id: &str) {
        self.0.retain(|report| report.execution_id != execution_id);
    }

    /// Drops the reports of an agent execution that has ended.
    pub(super) fn drop_of_agent(&mut self, agent_execution_id: &str) {
        self.0
            .retain(|report| report.agent_execution_id != agent_execution_id);
    }

    /// Drops every report. Returns true when the list was not empty.
    pub(super) fn clear(&mut self) -> bool {
        let had = !self.0.is_empty();
        self.0.clear();
        had
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::state::Conversation;

    #[test]
    fn progress_lasts_until_the_result() {
        let mut state = Conversation::default();
        let report = |execution: &str, message: &str, level: Option<&str>| {
            let mut data = json!({
                "type": "tool_progress", "message_id": "m", "agent_execution_id": "run_1",
                "execution_id": execution, "tool_name": "copy", "progress": 0.5, "message": message,
            });
            if let Some(level) = level {
                data["level"] = level.into();
            }
            data
        };
        for (execution, message, level) in [
            ("exec_1", "one", None),
            ("exec_2", "other", None),
            ("exec_1", "a line", Some("info")),
            ("exec_1", "two", None),
        ] {
            assert!(state.apply(None, report(execution, message, level)));
        }
        assert!(!state.apply(None, report("", "no execution", None)));
        let shown = |state: &Conversation| -> Vec<_> {
            let messages = state.progress().iter().map(|report| report.message.clone());
            messages.collect()
        };
        assert_eq!(shown(&state), ["other", "a line", "two"]);
        assert_eq!(state.progress()[2].sentence(), "copy: 0.5 two");
        let observe = json!({
            "type": "observe", "sequence_number": 1, "message_id": "m", "agent_execution_id": "run_1",
            "execution_id": "exec_1", "tool_name": "copy", "result": 1,
        });
        assert!(state.apply(None, observe));
        assert_eq!(shown(&state), ["other"]);
        assert!(state.apply(None, json!({"type": "replay"})));
        assert!(state.progress().is_empty());
    }
}
