//! The check of an answer against the agent's `output`, and the summary of a turn whose steps are used up.

use everturn_models::{ModelRequest, OutputFormat};
use everturn_proto::{
    turn::{AgentDefinition, LlmCompleteState},
    words::{FinishReason, MessageRole},
};
use everturn_store::ContextMessage;

use super::call::ModelCall;
use crate::storable::storable_value;

/// The instruction to the model when the agent's steps are used up.
const LAST_WORDS: &str = "\
You have used all the steps that this turn may have, so the work ends here, and you can call no more tools. Write a \
summary for the person: what was asked, what you have done, what you have found (with names, numbers and exact errors), \
and what is left to do. Do not say that you go on. Answer with this text alone, whatever form your answers have \
otherwise.";

impl ModelCall<'_> {
    /// Returns the request, with the instruction for the summary when the steps are used up.
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

    /// True when the context has an earlier answer of this agent execution, in a wrong format.
    pub(super) fn has_answered(&self, messages: &[ContextMessage]) -> bool {
        let id = &self.step.agent_execution_id;
        messages.iter().any(|message| {
            message.role == MessageRole::Assistant
                && message.tool_calls.is_empty()
                && message.agent_execution_id == *id
        })
    }

    /// Returns the checkpoint of a reply, with its verdict. The model may correct an answer in a wrong format once, in
    /// another step.
    pub(super) fn judged(
        &self,
        agent: &AgentDefinition,
        has_answered: bool,
        mut state: LlmCompleteState,
    ) -> LlmCompleteState {
        if self.at_step_limit {
            // A model that calls tools in spite of the instruction has written no summary.
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
                state.output = storable_value(value);
            }
            Err(problem) => {
                state.goes_on = !has_answered && self.step.step + 1 < agent.max_steps;
                state.invalid_output = Some(problem);
            }
        }
        state
    }
}
