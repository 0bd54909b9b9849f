//! The end of an agent execution.

use std::borrow::Cow;

use everturn_proto::{
    event::{Cancelled, Complete, Error, Thought, Usage},
    ids, money,
    turn::LlmCompleteState,
    words::{EventType, FailureCode, FinishReason, ToolStatus},
};

use super::{AgentExecutionEnd, Totals, builder::Builder, observe::Closing};
use crate::{
    api::{AgentEnd, CutCalls, Result},
    error::StoreError,
};

/// The usage of an agent execution and its sub-agents, in the form of events.
struct Taken {
    usage: Usage,
    cost_usd: Option<String>,
    cut: CutCalls,
    cut_cost_usd: Option<String>,
}

impl Builder<'_> {
    /// Ends the agent execution. Open tool calls are closed first: every act gets its observe (invariant 6, done once).
    pub(super) fn end(&mut self, end: &AgentExecutionEnd) -> Result<()> {
        let closing = Closing {
            status: ToolStatus::Cancelled,
            error: "the turn ended before this tool did",
        };
        for tool in &self.snapshot.tools {
            self.close(tool, &closing)?;
        }
        for tool in self.lost_records() {
            self.observe(&tool, &closing)?;
        }
        let judged = self.judged(end);
        let end = judged.as_ref();
        let (mut error_code, mut error_message) = (None, None);
        match end {
            AgentExecutionEnd::Completed { hooks } => {
                self.completed()?;
                self.batch.hooks.clone_from(hooks);
            }
            AgentExecutionEnd::Cancelled { reason } => self.cancelled(reason),
            AgentExecutionEnd::Failed { code, message } => {
                self.failed(code, message);
                error_code = Some(code.into());
                let end = message.floor_char_boundary(AgentEnd::MAX_MESSAGE_BYTES);
                error_message = Some(message[..end].to_owned());
            }
        }
        let Totals {
            ref agent,
            calls,
            input_tokens,
            output_tokens,
            ..
        } = self.snapshot.totals;
        if !self.thread().is_sub_agents() {
            self.batch.spent = self.snapshot.totals.tree;
        }
        self.batch.end = Some(AgentEnd {
            agent: agent.clone(),
            status: end.status(),
            error_code,
            error_message,
            calls,
            input_tokens,
            output_tokens,
        });
        self.end_delegate_call(end);
        Ok(())
    }

    /// Returns how the agent execution really ends: an answer that is not what it had to be completes nothing.
    fn judged<'e>(&self, end: &'e AgentExecutionEnd) -> Cow<'e, AgentExecutionEnd> {
        let checkpoint = self.snapshot.checkpoint.as_ref();
        let problem = checkpoint.and_then(|state| state.invalid_output.as_ref());
        match (end, problem) {
            (AgentExecutionEnd::Completed { .. }, Some(problem)) => {
                Cow::Owned(AgentExecutionEnd::Failed {
                    code: FailureCode::LlmOutputInvalid,
                    message: problem.clone(),
                })
            }
            _ => Cow::Borrowed(end),
        }
    }

    /// Adds the model's answer, with its reasoning as a thought, and `complete`.
    fn completed(&mut self) -> Result<()> {
        let finish = self.answer()?;
        let output = self.checkpoint()?.output.clone();
        let Totals {
            calls,
            input_tokens,
            output_tokens,
            ..
        } = self.snapshot.totals;
        let taken = self.taken();
        let complete = Complete {
            agent_execution_id: self.agent_execution_id(),
            steps: calls,
            input_tokens,
            output_tokens,
            finish: finish.into(),
            usage: Some(taken.usage),
            cost_usd: taken.cost_usd,
            cut_calls: taken.cut.calls,
            cut_tokens: taken.cut.tokens,
            cut_cost_usd: taken.cut_cost_usd,
            output,
        };
        self.event(EventType::Complete, &complete);
        Ok(())
    }

    /// Adds the text so far, and `cancelled`.
    fn cancelled(&mut self, reason: &str) {
        self.unsaved_text();
        let taken = self.taken();
        let cancelled = Cancelled {
            agent_execution_id: self.agent_execution_id(),
            reason: reason.to_owned(),
            usage: Some(taken.usage),
            cost_usd: taken.cost_usd,
            cut_calls: taken.cut.calls,
            cut_tokens: taken.cut.tokens,
            cut_cost_usd: taken.cut_cost_usd,
        };
        self.event(EventType::Cancelled, &cancelled);
    }

    /// Adds the text so far, and `error`.
    fn failed(&mut self, code: &FailureCode, message: &str) {
        self.unsaved_text();
        let taken = self.taken();
        let error = Error {
            code: code.into(),
            message: message.to_owned(),
            agent_execution_id: self.agent_execution_id(),
            step: self.step().step,
            usage: Some(taken.usage),
            cost_usd: taken.cost_usd,
            cut_calls: taken.cut.calls,
            cut_tokens: taken.cut.tokens,
            cut_cost_usd: taken.cut_cost_usd,
        };
        self.event(EventType::Error, &error);
    }

    /// Returns the usage and cost of the agent execution and its sub-agents.
    fn taken(&self) -> Taken {
        let spent = self.snapshot.totals.tree;
        Taken {
            usage: spent.usage,
            cost_usd: spent.nano_usd.map(money::usd),
            cut: spent.cut,
            cut_cost_usd: (spent.cut.nano_usd > 0).then(|| money::usd(spent.cut.nano_usd)),
        }
    }

    /// Adds an answer that the turn continues in another step.
    pub(super) fn cut_reply(&mut self) -> Result<()> {
        self.answer().map(drop)
    }

    /// Adds the text of a step without tool calls, with the reasoning as a thought. Returns the reason for the end of
    /// the text.
    fn answer(&mut self) -> Result<FinishReason> {
        let state = self.checkpoint()?;
        if state.finish() != FinishReason::Stop {
            return Err(StoreError::Conflict(format!(
                "a turn cannot complete on a call that ended as `{}`",
                state.finish
            )));
        }
        self.reasoning(state);
        let finish = if state.invalid_output.is_some() {
            FinishReason::InvalidOutput
        } else if state.is_cut {
            FinishReason::Length
        } else {
            FinishReason::Stop
        };
        self.assistant_message(&state.text, &state.citations, finish.clone());
        self.step_done();
        Ok(finish)
    }

    /// Adds a text's reasoning as a thought.
    fn reasoning(&mut self, state: &LlmCompleteState) {
        if state.reasoning.is_empty() {
            return;
        }
        let thought = Thought {
            thought: String::new(),
            agent_execution_id: self.agent_execution_id(),
            step: self.step().step,
            reasoning: state.reasoning.clone(),
            citations: None,
        };
        self.event(EventType::Thought, &thought);
    }

    /// Keeps the text of a step without a saved answer: the summary of a turn that has used up its steps, an answer
    /// with invalid output, or a cut text. A cut text is the text so far of a stopped call, or the text of a finished
    /// call whose batch was never saved (the call's tools then never ran).
    fn unsaved_text(&mut self) {
        let (snapshot, step) = (self.snapshot, self.step());
        let row_id = ids::assistant_message_id(&step.agent_execution_id, step.step);
        if snapshot.assistants.iter().any(|row| row.id == row_id) {
            return;
        }
        if snapshot.checkpoint.is_some() {
            self.step_done();
        }
        if let Some(state) = snapshot.checkpoint.as_ref().or(snapshot.partial.as_ref())
            && !state.text.is_empty()
            // A summary is for the model alone.
            && state.finish() != FinishReason::Compacted
        {
            let finish = match state.finish() {
                FinishReason::StepLimit => FinishReason::StepLimit,
                _ if state.invalid_output.is_some() => FinishReason::InvalidOutput,
                _ => FinishReason::Cancelled,
            };
            if finish != FinishReason::Cancelled {
                self.reasoning(state);
            }
            self.assistant_message(&state.text, &state.citations, finish);
        }
    }
}
