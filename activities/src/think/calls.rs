//! The tool calls of a model's reply: named, made storable, and reduced to the data for the workflow.

use everturn_models::ModelToolCall;
use everturn_proto::{
    ids,
    limits::{INLINE_LIMIT_MS, SMALL_REMOTE_INPUT_BYTES},
    turn::{AgentDefinition, AgentTool, LlmCompleteState, PlannedCall, ThinkResult, ToolCall},
    words::ToolKind,
};
use everturn_tools::{Effect, ToolSpec};
use temporalio_common::ActivityError;

use super::{
    call::ModelCall,
    definitions::{bind, settings},
    storable::{storable, without_nul},
};
use crate::approval;

/// Time-out of a tool that the agent does not have: running it only reports the missing tool.
const UNKNOWN_TOOL_TIMEOUT_MS: u32 = 10_000;
/// The providers' limit of a name. A model can invent a longer name, and names travel through the workflow's
/// history.
const MAX_NAME_CHARS: usize = 64;
impl ModelCall<'_> {
    /// Gives each call the id of its tool execution, and a call id that is unique in the reply.
    pub(super) async fn tool_calls(
        &self,
        agent: &AgentDefinition,
        offered: &[ToolSpec],
        calls: Vec<ModelToolCall>,
    ) -> Result<Vec<ToolCall>, ActivityError> {
        let mut used = Vec::new();
        let mut planned = Vec::with_capacity(calls.len());
        for (index, call) in calls.into_iter().enumerate() {
            let execution_id = ids::tool_execution_id(
                &self.step.message_id,
                &self.step.agent_execution_id,
                self.step.step,
                index,
            );
            let call_id = self.call_id(&call, &execution_id, &used);
            used.push(call_id.clone());
            let tool = settings(agent, offered, &call.tool_name);
            planned.push(planned_call(
                call,
                execution_id,
                call_id,
                tool.as_ref(),
                offered,
            ));
        }
        self.look_at_definitions(agent, offered, &mut planned)
            .await?;
        for call in &mut planned {
            bind(call, &self.thinker.approval_answers);
        }
        Ok(planned)
    }

    /// Returns the model's id of the call if it is usable, otherwise an id of ours.
    fn call_id(&self, call: &ModelToolCall, execution_id: &str, used: &[String]) -> String {
        // Sub-agents think in parallel: two models might give one id before either call is stored.
        let may_be_the_models = !self.thread().is_sub_agents();
        let given = call.call_id.as_ref().filter(|_| may_be_the_models);
        given
            .filter(|id| ids::is_valid(id) && !used.contains(id))
            .cloned()
            .unwrap_or_else(|| ids::call_id(execution_id))
    }
}

pub(crate) fn planned_call(
    call: ModelToolCall,
    execution_id: String,
    call_id: String,
    tool: Option<&AgentTool>,
    offered: &[ToolSpec],
) -> ToolCall {
    let spec = offered.iter().find(|spec| spec.name == call.tool_name);
    // A tool from an earlier step may be gone. Its call counts as a call of a `once` tool, and running it reports the
    // missing tool.
    let effect = tool.map(|_| spec.map_or(Effect::Once, |spec| spec.effect.clone()));
    let inline = spec.is_some_and(|spec| spec.is_inline)
        && tool.is_some_and(|tool| tool.kind() == ToolKind::Worker);
    let timeout_ms = tool.map_or(UNKNOWN_TOOL_TIMEOUT_MS, |tool| tool.timeout_ms);
    let tool_name = bounded_name(call.tool_name);
    let tool_input = storable(call.arguments);
    ToolCall {
        execution_id,
        call_id,
        kind: tool.map(|tool| tool.kind.clone()).unwrap_or_default(),
        approval_timeout_s: approval::timeout_s(tool, &tool_input),
        // The hash for the approval is computed after the decision which calls need an approval.
        input_hash: String::new(),
        definition_hash: String::new(),
        rule: None,
        tool_name,
        tool_input: Some(tool_input),
        timeout_ms: if inline {
            timeout_ms.min(INLINE_LIMIT_MS)
        } else {
            timeout_ms
        },
        inline,
        signatures: call.signatures.into_iter().map(without_nul).collect(),
        // Left empty when the agent has no such tool: `ToolCall::names_a_tool`.
        effect: effect.map(String::from).unwrap_or_default(),
        remote: tool.and_then(|tool| tool.remote.clone()),
        signed_by: String::new(),
        hook: None,
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
        tool_calls: state.tool_calls.iter().map(planned).collect(),
        goes_on: state.goes_on,
        invalid_output: state.invalid_output.clone(),
    }
}

/// Returns the data of a call for the workflow.
pub(crate) fn planned(call: &ToolCall) -> PlannedCall {
    let input = call.tool_input.as_ref();
    PlannedCall {
        execution_id: call.execution_id.clone(),
        tool_name: call.tool_name.clone(),
        timeout_ms: call.timeout_ms,
        kind: call.kind.clone(),
        approval_timeout_s: call.approval_timeout_s,
        // The history needs the hash only for a call that asks for an approval.
        input_hash: if call.approval_timeout_s.is_some() {
            call.input_hash.clone()
        } else {
            String::new()
        },
        has_large_input: input.is_some_and(|input| input.as_str().len() > SMALL_REMOTE_INPUT_BYTES),
        inline: call.inline,
        remote: call.remote.clone(),
        answers_from: if call.approval_timeout_s.is_some() {
            call.rule().answers_from
        } else {
            String::new()
        },
    }
}

fn bounded_name(name: String) -> String {
    if name.chars().count() <= MAX_NAME_CHARS {
        without_nul(name)
    } else {
        without_nul(name.chars().take(MAX_NAME_CHARS).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
