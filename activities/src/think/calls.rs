//! The tool calls of a model's reply: named, bound to the definitions of their tools, and reduced to the data for the
//! workflow.

use everturn_models::ModelToolCall;
use everturn_proto::{
    ids,
    turn::{AgentDefinition, LlmCompleteState, ThinkResult, ToolCall},
    words::FinishReason,
};
use everturn_tools::ToolSpec;
use temporalio_common::ActivityError;

use super::{
    claimed::Claimed,
    definitions::{Approvals, settings},
};
use crate::tool_calls;

/// Plans the tool calls of a reply.
pub(super) struct CallPlanner<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) approvals: Approvals<'a>,
}

impl CallPlanner<'_> {
    /// Gives each call the id of its tool execution, and a call id that is unique in the reply. Then decides which
    /// calls ask for an approval.
    pub(super) async fn plan(
        &self,
        agent: &AgentDefinition,
        offered: &[ToolSpec],
        calls: Vec<ModelToolCall>,
    ) -> Result<Vec<ToolCall>, ActivityError> {
        let step = self.claimed.step;
        let mut used = Vec::new();
        let mut planned = Vec::with_capacity(calls.len());
        for (index, call) in calls.into_iter().enumerate() {
            let execution_id = ids::tool_execution_id(
                &step.message_id,
                &step.agent_execution_id,
                step.step,
                index,
            );
            let call_id = self.call_id(&call, &execution_id, &used);
            used.push(call_id.clone());
            let tool = settings(agent, offered, &call.tool_name);
            planned.push(tool_calls::stored(
                call,
                execution_id,
                call_id,
                tool.as_ref(),
                offered,
            ));
        }
        self.approvals.run(agent, offered, &mut planned).await?;
        Ok(planned)
    }

    /// Returns the model's id of the call if it is usable, otherwise an id of ours.
    fn call_id(&self, call: &ModelToolCall, execution_id: &str, used: &[String]) -> String {
        // Sub-agents think in parallel: two models might give one id before either call is stored.
        let may_be_the_models = !self.claimed.thread.is_sub_agents();
        let given = call.call_id.as_ref().filter(|_| may_be_the_models);
        given
            .filter(|id| ids::is_valid(id) && !used.contains(id))
            .cloned()
            .unwrap_or_else(|| ids::call_id(execution_id))
    }
}

/// Notes the model that made the signatures. Only the maker gets signatures back.
pub(super) fn sign(calls: &mut [ToolCall], signer: &str) {
    for call in calls.iter_mut().filter(|call| !call.signatures.is_empty()) {
        signer.clone_into(&mut call.signed_by);
    }
}

/// Gives new unique ids to the calls whose ids the conversation has used before. Returns false when no call was
/// renamed.
pub(super) fn rename(calls: &mut [ToolCall], used: &[String]) -> bool {
    let mut is_renamed = false;
    for call in calls.iter_mut().filter(|call| used.contains(&call.call_id)) {
        let own = ids::call_id(&call.execution_id);
        is_renamed |= own != call.call_id;
        call.call_id = own;
    }
    is_renamed
}

/// Returns the data of a step for the workflow.
pub(super) fn plan(state: &LlmCompleteState) -> ThinkResult {
    ThinkResult {
        finish: state.finish.clone(),
        tool_calls: state.tool_calls.iter().map(tool_calls::planned).collect(),
        goes_on: state.goes_on,
        invalid_output: state.invalid_output.clone(),
        has_cut_call: has_cut_call(state),
        cancel_reason: None,
    }
}

/// Returns the data of a step that calls no model, because the turn's message was cancelled.
pub(super) fn cancelled(reason: String) -> ThinkResult {
    ThinkResult {
        finish: FinishReason::Cancelled.into(),
        cancel_reason: Some(reason),
        ..ThinkResult::default()
    }
}

/// True when the limit of tokens cut the reply in the middle of its last call. The arguments of a cut call are a text.
fn has_cut_call(state: &LlmCompleteState) -> bool {
    let last = state.tool_calls.last();
    let input = last.and_then(|call| call.tool_input.as_ref());
    state.is_cut && input.is_some_and(|input| input.as_str().starts_with('"'))
}

#[cfg(test)]
mod tests {
    use everturn_proto::Json;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_cut_when_its_arguments_are_a_text() {
        let state = |input: serde_json::Value, is_cut| LlmCompleteState {
            is_cut,
            tool_calls: vec![ToolCall {
                tool_input: Some(Json::of(&input)),
                ..ToolCall::default()
            }],
            ..LlmCompleteState::default()
        };
        assert!(has_cut_call(&state(json!("{\"city\":\"Par"), true)));
        assert!(!has_cut_call(&state(json!("{\"city\":\"Par"), false)));
        assert!(!has_cut_call(&state(json!({"city": "Paris"}), true)));
        assert!(!has_cut_call(&LlmCompleteState::default()));
    }

    #[test]
    fn only_calls_with_signatures_say_who_made_them() {
        let call = |signatures: &[&str]| ToolCall {
            signatures: signatures.iter().map(|it| (*it).to_owned()).collect(),
            ..ToolCall::default()
        };
        let mut calls = [call(&["c2ln"]), call(&[])];
        sign(&mut calls, "p/m");
        assert_eq!(calls.map(|call| call.signed_by), ["p/m", ""]);
    }
}
