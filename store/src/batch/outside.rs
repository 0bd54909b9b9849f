//! Requests of tool calls to the outside, for a person's approval or for the client's result, and the answers.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use everturn_proto::{
    Json,
    event::{ApprovalRequested, ApprovalResolved, ClientToolRequested},
    turn::SaveApproval,
    words::{ApprovalBy, ApprovalState, EventType, THROUGH_ENGINE, ToolKind, ToolStatus},
};

use super::{SavedAnswer, ToolRow, builder::Builder, observe::Closing, question};
use crate::{
    api::{DefinedTool, Result},
    error::{Missing, StoreError},
};

impl Builder<'_> {
    /// Appends the requests of a thought's calls: requests for approvals, and requests to client tools.
    pub(super) fn ask_outside(&mut self) {
        for mut tool in std::mem::take(&mut self.batch.pending_tools) {
            if let Some(timeout_s) = tool.record.call.approval_timeout_s {
                self.request_person(&mut tool, timeout_s);
            } else if tool.record.call.kind() == ToolKind::Client {
                self.request_result(&mut tool);
            }
            self.batch.pending_tools.push(tool);
        }
    }

    /// Requests an approval of the call, or an answer to the question in the call's record.
    pub(super) fn request_person(&mut self, tool: &mut ToolRow, timeout_s: u32) {
        let call = &tool.record.call;
        let expires_at = self.until(timeout_s);
        let rule = call.rule();
        let request = ApprovalRequested {
            execution_id: call.execution_id.clone(),
            tool_name: call.tool_name.clone(),
            tool_input: Some(call.tool_input.clone().unwrap_or_default()),
            call_id: call.call_id.clone(),
            input_hash: call.input_hash.clone(),
            expires_at: time(expires_at),
            agent_execution_id: self.agent_execution_id(),
            step: self.step().step,
            approval_by: (rule.by() != ApprovalBy::Anyone).then_some(rule.by),
            definition_changed: rule.definition_changed.then_some(true),
            title: call.title(),
            input_text: Some(call.input_text()),
            question: tool.record.question.as_ref().map(question::shown),
        };
        self.event(EventType::ApprovalRequested, &request);
        tool.record.approval = ApprovalState::Pending;
        tool.expires_at = Some(expires_at);
    }

    fn request_result(&mut self, tool: &mut ToolRow) {
        let call = &tool.record.call;
        let expires_at = self.snapshot.clock + TimeDelta::milliseconds(i64::from(call.timeout_ms));
        let request = ClientToolRequested {
            execution_id: call.execution_id.clone(),
            tool_name: call.tool_name.clone(),
            tool_input: Some(call.tool_input.clone().unwrap_or_default()),
            call_id: call.call_id.clone(),
            expires_at: time(expires_at),
            agent_execution_id: self.agent_execution_id(),
            step: self.step().step,
            title: call.title(),
        };
        self.event(EventType::ClientToolRequested, &request);
        tool.expires_at = Some(expires_at);
    }

    /// Appends the answer to an approval. A denied or expired call gets its observe at once. The observe tells the
    /// model the reason.
    pub(super) fn approval(&mut self, answer: &SaveApproval) -> Result<()> {
        let execution_id = &answer.execution_id;
        let tool = self
            .snapshot
            .tool(execution_id)
            .ok_or_else(|| StoreError::not_found(Missing::ToolExecution, execution_id))?;
        let is_meant = tool.record.call.input_hash == answer.input_hash;
        if tool.record.approval != ApprovalState::Pending || !is_meant {
            return Ok(());
        }
        let decision = answer.decision();
        let question = tool.record.open_question();
        if let Some(question) = question.filter(|_| decision != ApprovalState::Expired) {
            self.answer_question(tool, question, answer);
            return Ok(());
        }
        self.batch.saved_answer = Some(SavedAnswer {
            execution_id: execution_id.clone(),
            decision: decision.clone(),
            answer_id: answer.answer_id.clone(),
        });
        let error = match &decision {
            ApprovalState::Approved => {
                self.approve(tool, answer);
                return Ok(());
            }
            ApprovalState::Expired if question.is_some() => {
                "no person answered the tool's question in time; the call was not finished"
                    .to_owned()
            }
            ApprovalState::Expired => {
                "no person approved the call in time; the call was not run".to_owned()
            }
            ApprovalState::Denied if answer.reason().is_empty() => {
                "a person denied this call; it was not run".to_owned()
            }
            ApprovalState::Denied => {
                let reason = answer.reason();
                format!("a person denied this call; it was not run. They said: {reason}")
            }
            ApprovalState::NotNeeded
            | ApprovalState::Pending
            | ApprovalState::Declined
            | ApprovalState::Cancelled
            | ApprovalState::Unknown(_) => {
                let message = format!("`{decision}` is no answer to an approval");
                return Err(StoreError::Conflict(message));
            }
        };
        self.approval_resolved(tool, answer, None);
        let mut tool = tool.clone();
        tool.record.approval = decision;
        let closing = Closing {
            status: ToolStatus::Failed,
            error: &error,
        };
        self.observe(&tool, &closing)
    }

    /// Lets the call run, with the canonical text of the person's edited input if given.
    fn approve(&mut self, tool: &ToolRow, answer: &SaveApproval) {
        let mut tool = tool.clone();
        let shown = tool.record.call.tool_input.clone().unwrap_or_default();
        let edited = answer.tool_input.clone();
        let edited = edited.filter(|edited| !edited.is_same_value(&shown));
        let edited = edited.map(Json::into_canonical);
        self.approval_resolved(&tool, answer, edited.as_ref());
        if let Some(input) = edited {
            let call = &mut tool.record.call;
            // The hash remains the hash of the input that the person was shown.
            call.tool_input = Some(input);
            self.edit_calls(&tool);
        }
        if remembers(&tool, answer) {
            let call = &tool.record.call;
            self.batch.granted_tool = Some(DefinedTool {
                tool_name: call.tool_name.clone(),
                definition_hash: call.definition_hash.clone(),
            });
        }
        tool.expires_at = None;
        tool.record.approval = ApprovalState::Approved;
        if tool.record.call.kind() == ToolKind::Client {
            self.request_result(&mut tool);
        }
        self.batch.approved_tool = Some(tool);
    }

    /// Writes the new input into the assistant's row, so that the model sees the input that really runs.
    fn edit_calls(&mut self, tool: &ToolRow) {
        let call = &tool.record.call;
        let Some(row) = self.snapshot.assistant(tool.step) else {
            return;
        };
        let mut calls = row.tool_calls.clone();
        let mut known = calls.iter_mut();
        if let Some(known) = known.find(|known| known.execution_id == call.execution_id) {
            known.tool_input.clone_from(&call.tool_input);
        }
        self.batch.edited_calls = Some((row.id.clone(), calls));
    }

    pub(super) fn approval_resolved(
        &mut self,
        tool: &ToolRow,
        answer: &SaveApproval,
        edited: Option<&Json>,
    ) {
        let mut call = tool.record.call.clone();
        if let Some(edited) = edited {
            call.tool_input = Some(edited.clone());
        }
        let title = call.title();
        let resolved = ApprovalResolved {
            execution_id: call.execution_id,
            tool_name: call.tool_name,
            decision: answer.decision.clone(),
            reason: answer.reason().to_owned(),
            edited: edited.is_some(),
            tool_input: call.tool_input,
            remember: remembers(tool, answer),
            resolved_by: answer.resolved_by().to_owned(),
            agent_execution_id: self.agent_execution_id(),
            step: tool.step,
            resolved_through: (answer.is_through_engine).then(|| THROUGH_ENGINE.to_owned()),
            title,
            input_text: edited.map(|edited| edited.as_str().to_owned()),
            edited_by: answer.edited_by.clone(),
            answer: answer.answer.clone(),
        };
        self.event(EventType::ApprovalResolved, &resolved);
    }

    /// Closes an act. A pending approval request is closed first.
    pub(super) fn close(&mut self, tool: &ToolRow, closing: &Closing) -> Result<()> {
        if tool.record.approval != ApprovalState::Pending {
            return self.observe(tool, closing);
        }
        let answer = SaveApproval {
            decision: ApprovalState::Cancelled.into(),
            reason: Some(closing.error.to_owned()),
            ..SaveApproval::default()
        };
        self.approval_resolved(tool, &answer, None);
        let mut tool = tool.clone();
        tool.record.approval = ApprovalState::Cancelled;
        self.observe(&tool, closing)
    }
}

/// True when later calls of the tool need no approval. Under the rule `other`, each call needs another person.
fn remembers(tool: &ToolRow, answer: &SaveApproval) -> bool {
    answer.remember && tool.record.call.rule().by() == ApprovalBy::Anyone
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
