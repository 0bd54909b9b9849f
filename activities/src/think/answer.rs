//! The check of an answer against the agent's `output`, and the summary of a turn whose steps are used up. No I/O is
//! here.

use everturn_models::{ModelRequest, OutputFormat};
use everturn_proto::{
    turn::{AgentDefinition, LlmCompleteState},
    words::{FinishReason, MessageRole},
};
use everturn_store::{ContextMessage, model_input::LAST_WORDS};

use crate::storable::storable_value;

/// Returns the request with the instruction for the summary, because the agent's steps are used up.
pub(super) fn asking_for_summary(request: ModelRequest) -> ModelRequest {
    let mut messages = request.messages;
    messages.push(ContextMessage::text(MessageRole::User, LAST_WORDS));
    ModelRequest {
        messages,
        wants_text: true,
        ..request
    }
}

/// True when the context has an earlier answer of this agent execution, in a wrong format.
pub(super) fn has_answered(messages: &[ContextMessage], agent_execution_id: &str) -> bool {
    messages.iter().any(|message| {
        message.role == MessageRole::Assistant
            && message.tool_calls.is_empty()
            && message.agent_execution_id == agent_execution_id
    })
}

/// Returns the checkpoint of the summary at the step limit. A model that calls tools in spite of the instruction has
/// written no summary.
pub(super) fn last_summary(mut state: LlmCompleteState) -> LlmCompleteState {
    if !state.tool_calls.is_empty() {
        state.text.clear();
        state.tool_calls.clear();
    }
    state.finish = FinishReason::StepLimit.into();
    state.goes_on = false;
    state
}

/// Returns the checkpoint of the reply of step `step`, with its verdict. The model may correct an answer in a wrong
/// format once, in another step.
pub(super) fn judged(
    mut state: LlmCompleteState,
    agent: &AgentDefinition,
    step: u32,
    has_answered: bool,
) -> LlmCompleteState {
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
            state.goes_on = !has_answered && step + 1 < agent.max_steps;
            state.invalid_output = Some(problem);
        }
    }
    state
}
