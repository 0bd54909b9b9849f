//! The question of a running tool to a person, and the person's answer. The tool then runs again, and gets the answer with
//! its own notes.

use chrono::{DateTime, TimeDelta, Utc};
use everturn_proto::{
    event::Question,
    ids,
    turn::{AskedQuestion, SaveApproval, SaveQuestion},
    words::{ApprovalState, ToolStatus},
};

use super::{SavedAnswer, ToolRow, builder::Builder};
use crate::{
    api::Result,
    error::{Missing, StoreError},
};

impl Builder<'_> {
    /// Appends the request to the person. Only the running attempt of a call asks, and only with the next number: an
    /// older attempt of the call changes nothing.
    pub(super) fn ask(&mut self, asked: &SaveQuestion) -> Result<()> {
        let id = &asked.execution_id;
        let tool = self.snapshot.tool(id);
        let tool = tool.ok_or_else(|| StoreError::not_found(Missing::ToolExecution, id))?;
        let record = &tool.record;
        let last = record.question.as_ref().map_or(0, |last| last.number);
        let is_running = record.status == ToolStatus::Running && record.attempt == asked.attempt;
        let Some(question) = &asked.question else {
            return Ok(());
        };
        if !is_running || question.number != last.saturating_add(1) {
            return Ok(());
        }
        let mut tool = tool.clone();
        tool.record.status = ToolStatus::Pending;
        tool.record.question = Some(question.clone());
        tool.record.call.input_hash = ids::question_hash(id, question);
        self.request_person(&mut tool, question.timeout_s);
        self.batch.asked_tool = Some(tool);
        Ok(())
    }

    /// Gives the answer to the tool. The tool runs again with an answer, and with the news that the person declined.
    pub(super) fn answer_question(
        &mut self,
        tool: &ToolRow,
        question: &AskedQuestion,
        answer: &SaveApproval,
    ) {
        let state = match answer.decision() {
            ApprovalState::Approved => ApprovalState::Approved,
            _ => ApprovalState::Declined,
        };
        let answer = SaveApproval {
            decision: (&state).into(),
            remember: false,
            ..answer.clone()
        };
        self.approval_resolved(tool, &answer, None);
        self.batch.saved_answer = Some(SavedAnswer {
            execution_id: answer.execution_id.clone(),
            decision: state.clone(),
            answer_id: answer.answer_id.clone(),
        });
        let mut tool = tool.clone();
        tool.expires_at = None;
        tool.record.question = Some(AskedQuestion {
            decision: Some((&state).into()),
            answer: answer.answer,
            ..question.clone()
        });
        tool.record.approval = state;
        self.batch.approved_tool = Some(tool);
    }

    /// Returns the end of the wait of a person, from now.
    pub(super) fn until(&self, timeout_s: u32) -> DateTime<Utc> {
        self.snapshot.clock + TimeDelta::seconds(i64::from(timeout_s))
    }
}

/// Returns the question for readers, without the tool's notes.
pub(super) fn shown(question: &AskedQuestion) -> Question {
    Question {
        message: question.message.clone(),
        schema: question.schema.clone(),
        url: question.url.clone(),
    }
}
