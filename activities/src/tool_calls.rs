//! A tool call in its two forms: as the checkpoint of a step stores the call, and as the workflow gets the call. Calls of
//! models and calls of hooks have the same forms. Pure.
//!
//! Must not be here: the choice of a call's ids, and the decision which calls a person must approve (`think`, `approval`).

use everturn_models::ModelToolCall;
use everturn_proto::{
    Json,
    limits::{INLINE_LIMIT_MS, SMALL_REMOTE_INPUT_BYTES},
    turn::{AgentTool, CallRule, PlannedCall, ToolCall},
    words::ToolKind,
};
use everturn_tools::{Effect, ToolSpec, delegate};

use crate::{
    approval,
    storable::{Arguments, arguments, without_nul},
};

/// Time-out of a tool that the agent does not have: running it only reports the missing tool.
const UNKNOWN_TOOL_TIMEOUT_MS: u32 = 10_000;
/// The providers' limit of a name. A model can invent a longer name, and names travel through the workflow's
/// history.
const MAX_NAME_CHARS: usize = 64;

/// Returns the call as the checkpoint stores it. `tool` has the agent's settings of the tool, and `offered` the known
/// definitions.
pub(crate) fn stored(
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
    let (tool_input, unusable) = match arguments(call.arguments) {
        Arguments::Usable(input) => {
            let reason = refused_by_agent(tool, spec, &input);
            (input, reason)
        }
        Arguments::Unusable { written, reason } => (written, Some(reason)),
    };
    // A call with unusable arguments asks nobody and reaches neither a client nor a remote tool. A worker tells the model
    // why the call did not run.
    let usable_by = tool.filter(|_| unusable.is_none());
    let rule = unusable.map(|unusable| CallRule {
        unusable,
        ..CallRule::default()
    });
    ToolCall {
        execution_id,
        call_id,
        kind: usable_by.map(|tool| tool.kind.clone()).unwrap_or_default(),
        approval_timeout_s: approval::timeout_s(usable_by, &tool_input),
        // The hash for the approval is computed after the decision which calls need an approval.
        input_hash: String::new(),
        definition_hash: String::new(),
        rule,
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
        remote: usable_by.and_then(|tool| tool.remote.clone()),
        signed_by: String::new(),
        hook: None,
        title_template: spec.and_then(|it| it.title.clone()).unwrap_or_default(),
    }
}

/// Returns why the arguments do not fit the schema of a tool that stands for an agent. A worker checks the arguments of every
/// other tool when it runs the tool; no worker runs this one.
fn refused_by_agent(
    tool: Option<&AgentTool>,
    spec: Option<&ToolSpec>,
    input: &Json,
) -> Option<String> {
    tool.filter(|tool| tool.as_tool.is_some())?;
    delegate::check_input(spec?, input).err()
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
