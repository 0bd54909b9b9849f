//! What becomes of an answer: whether it is what the agent's `output` asks for, and the summary of a turn whose steps are
//! used up.

use everturn_proto::{
    turn::{AgentDefinition, LlmCompleteState},
    words::{FinishReason, MessageRole},
};
use everturn_store::ContextMessage;

use super::{ModelCall, calls};
use crate::model::{ModelRequest, OutputFormat};

/// What the model is asked for when the agent's steps are used up.
const LAST_WORDS: &str = "\
You have used all the steps that this turn may have, so the work ends here, and you can call no more tools. Write a \
summary for the person: what was asked, what you have done, what you have found (with names, numbers and exact errors), \
and what is left to do. Do not say that you go on. Answer with this text alone, whatever form your answers have \
otherwise.";

impl ModelCall<'_> {
    /// The request, which asks for the summary when the steps are used up.
    pub(super) fn asking(&self, request: ModelRequest) -> ModelRequest {
        if !self.at_step_limit {
            return request;
        }
        let mut messages = request.messages;
        messages.push(ContextMessage::text(MessageRole::User, LAST_WORDS));
        ModelRequest {
            messages,
            wants_text: true,
            ..request
        }
    }

    /// True when this agent execution has given an answer before, which was not what it had to be: it stands in the context.
    pub(super) fn has_answered(&self, messages: &[ContextMessage]) -> bool {
        let id = &self.step.agent_execution_id;
        messages.iter().any(|message| {
            message.role == MessageRole::Assistant
                && message.tool_calls.is_empty()
                && message.agent_execution_id == *id
        })
    }

    /// The checkpoint of a reply, with what becomes of it. An answer that is not what it has to be may be mended once, in
    /// another step.
    pub(super) fn judged(
        &self,
        agent: &AgentDefinition,
        has_answered: bool,
        mut state: LlmCompleteState,
    ) -> LlmCompleteState {
        if self.at_step_limit {
            // A model that calls tools all the same has not summarized.
            if !state.tool_calls.is_empty() {
                state.text.clear();
                state.tool_calls.clear();
            }
            state.finish = FinishReason::StepLimit.into();
            state.goes_on = false;
            return state;
        }
        let is_answer = state.finish() == FinishReason::Stop;
        let Some(output) = OutputFormat::of(agent).filter(|_| is_answer) else {
            return state;
        };
        match output.read(&state.text) {
            Ok(value) => {
                state.goes_on = false;
                state.output = calls::storable_value(value);
            }
            Err(problem) => {
                state.goes_on = !has_answered && self.step.step + 1 < agent.max_steps;
                state.invalid_output = Some(problem);
            }
        }
        state
    }
}
