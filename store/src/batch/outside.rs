//! What a tool call asks of someone outside: a person's approval, the client's result; and their answers.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use everturn_proto::{
    event::{ApprovalRequested, ApprovalResolved, ClientToolRequested},
    ids,
    turn::SaveApproval,
    words::{approval, event_type, tool_kind},
};

use super::{
    ToolRow,
    builder::{Builder, Closing},
};
use crate::api::Result;

impl Builder<'_> {
    /// For the calls of a thought: asks for the approvals they need, and the client for what it runs.
    pub(super) fn ask_outside(&mut self) {
        for mut tool in std::mem::take(&mut self.batch.pending_tools) {
            if tool.record.call.approval_timeout_s.is_some() {
                self.request_approval(&mut tool);
            } else if tool.record.call.kind == tool_kind::CLIENT {
                self.request_result(&mut tool);
            }
            self.batch.pending_tools.push(tool);
        }
    }

    fn request_approval(&mut self, tool: &mut ToolRow) {
        let call = &tool.record.call;
        let expires_at = self.snapshot.now
            + TimeDelta::seconds(i64::from(call.approval_timeout_s.unwrap_or_default()));
        let (agent_execution_id, step) = self.place();
        let request = ApprovalRequested {
            execution_id: call.execution_id.clone(),
            tool_name: call.tool_name.clone(),
            tool_input: Some(call.tool_input.clone().unwrap_or_default()),
            call_id: call.call_id.clone(),
            input_hash: call.input_hash.clone(),
            expires_at: time(expires_at),
            agent_execution_id,
            step,
        };
        self.event(event_type::APPROVAL_REQUESTED, &request);
        approval::PENDING.clone_into(&mut tool.record.approval);
        tool.expires_at = Some(expires_at);
    }

    fn request_result(&mut self, tool: &mut ToolRow) {
        let call = &tool.record.call;
        let expires_at = self.snapshot.now + TimeDelta::milliseconds(i64::from(call.timeout_ms));
        let (agent_execution_id, step) = self.place();
        let request = ClientToolRequested {
            execution_id: call.execution_id.clone(),
            tool_name: call.tool_name.clone(),
            tool_input: Some(call.tool_input.clone().unwrap_or_default()),
            call_id: call.call_id.clone(),
            expires_at: time(expires_at),
            agent_execution_id,
            step,
        };
        self.event(event_type::CLIENT_TOOL_REQUESTED, &request);
        tool.expires_at = Some(expires_at);
    }

    /// The call may run, with the input that the person gave when they gave one.
    pub(super) fn approve(&mut self, tool: &ToolRow, answer: &SaveApproval) {
        let mut tool = tool.clone();
        let edited = answer
            .tool_input
            .as_ref()
            .filter(|input| tool.record.call.tool_input.as_ref() != Some(*input));
        self.approval_resolved(&tool, answer, edited.is_some());
        if let Some(input) = edited {
            let call = &mut tool.record.call;
            call.input_hash = ids::input_hash(&call.tool_name, input.as_str());
            call.tool_input = Some(input.clone());
            self.edit_calls(&tool);
        }
        if answer.remember {
            self.batch.granted_tool = Some(tool.record.call.tool_name.clone());
        }
        tool.expires_at = None;
        approval::APPROVED.clone_into(&mut tool.record.approval);
        if tool.record.call.kind == tool_kind::CLIENT {
            self.request_result(&mut tool);
        }
        self.batch.approved_tool = Some(tool);
    }

    /// The model is to see what ran.
    fn edit_calls(&mut self, tool: &ToolRow) {
        let call = &tool.record.call;
        if let Some(row) = self
            .snapshot
            .assistants
            .iter()
            .find(|row| row.step == tool.step)
        {
            let mut calls = row.tool_calls.clone();
            for known in calls
                .iter_mut()
                .filter(|known| known.execution_id == call.execution_id)
            {
                known.tool_input.clone_from(&call.tool_input);
            }
            self.batch.edited_calls = Some((row.id.clone(), calls));
        }
    }

    pub(super) fn approval_resolved(
        &mut self,
        tool: &ToolRow,
        answer: &SaveApproval,
        edited: bool,
    ) {
        let call = &tool.record.call;
        let (agent_execution_id, step) = (self.place().0, tool.step);
        let resolved = ApprovalResolved {
            execution_id: call.execution_id.clone(),
            tool_name: call.tool_name.clone(),
            decision: answer.decision.clone(),
            reason: answer.reason.clone(),
            edited,
            tool_input: answer
                .tool_input
                .clone()
                .filter(|_| edited)
                .or_else(|| call.tool_input.clone()),
            remember: answer.remember,
            resolved_by: answer.resolved_by.clone(),
            agent_execution_id,
            step,
        };
        self.event(event_type::APPROVAL_RESOLVED, &resolved);
    }

    /// Closes what is still open at the end of its turn: the approval that nobody gave, then the act.
    pub(super) fn close(&mut self, tool: &ToolRow, closing: &Closing) -> Result<()> {
        if tool.record.approval != approval::PENDING {
            return self.observe(tool, closing);
        }
        let decision = approval::CANCELLED.to_owned();
        let answer = SaveApproval {
            decision,
            reason: closing.error.to_owned(),
            ..SaveApproval::default()
        };
        self.approval_resolved(tool, &answer, false);
        let mut tool = tool.clone();
        tool.record.approval = answer.decision;
        self.observe(&tool, closing)
    }
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
