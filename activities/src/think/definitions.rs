//! Approvals and the definitions of tools. A call that needs an approval is bound to the current definition of its
//! tool. A tool that has changed since the conversation last used it may ask again, or is refused.

use std::collections::BTreeMap;

use everturn_proto::{
    ids,
    turn::{AgentDefinition, AgentTool, ApprovalPolicy, CallRule, ToolCall},
    words::{AnswersFrom, ApprovalBy, OnDefinitionChange},
};
use everturn_store::{DefinedTool, TurnInputs};
use everturn_tools::{
    ToolSpec,
    builtin::{find_tools, read_result},
    names,
};
use temporalio_common::ActivityError;

use super::claimed::Claimed;
use crate::approval::DEFAULT_TIMEOUT_S;

/// The hashes of tool definitions, by the tools' names.
type Definitions = BTreeMap<String, String>;

/// Decides which calls ask for an approval.
pub(super) struct Approvals<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) inputs: &'a dyn TurnInputs,
    /// The way by which answers to approvals must come.
    pub(super) answers_from: &'a AnswersFrom,
}

impl Approvals<'_> {
    /// Decides which calls ask for an approval, and binds each of these calls to its shown input and definition.
    pub(super) async fn run(
        &self,
        agent: &AgentDefinition,
        offered: &[ToolSpec],
        planned: &mut [ToolCall],
    ) -> Result<(), ActivityError> {
        self.look_at_definitions(agent, offered, planned).await?;
        for call in planned {
            bind(call, self.answers_from);
        }
        Ok(())
    }

    /// Decides which calls ask for an approval, by the definitions of their tools: the offered definitions, the
    /// definitions that the conversation has used before, and the definitions for which a person has chosen "do not ask
    /// again".
    async fn look_at_definitions(
        &self,
        agent: &AgentDefinition,
        offered: &[ToolSpec],
        planned: &mut [ToolCall],
    ) -> Result<(), ActivityError> {
        let mut changeable = Vec::new();
        let mut asking = Vec::new();
        for call in planned.iter().filter(|call| call.unusable().is_none()) {
            let tool = settings(agent, offered, &call.tool_name).unwrap_or_default();
            if tool.policy_on_definition_change() != OnDefinitionChange::Run {
                changeable.push(call.tool_name.clone());
            }
            if call.approval_timeout_s.is_some() {
                asking.push(call.tool_name.clone());
            }
        }
        if changeable.is_empty() && asking.is_empty() {
            return Ok(());
        }
        let Claimed { attempt, step, .. } = *self.claimed;
        let (conversation, inputs) = (&step.conversation_id, self.inputs);
        let mut used = Definitions::new();
        if !changeable.is_empty() {
            let read = || inputs.used_definitions(conversation, &changeable);
            used = by_name(attempt.insist(read).await?);
        }
        let mut granted = Definitions::new();
        if !asking.is_empty() {
            let read = || inputs.granted_tools(conversation, &asking);
            granted = by_name(attempt.insist(read).await?);
        }
        for call in planned.iter_mut().filter(|call| call.unusable().is_none()) {
            let spec = offered.iter().find(|spec| spec.name == call.tool_name);
            let offered_now = spec.map(ToolSpec::definition_hash);
            let tool = settings(agent, offered, &call.tool_name).unwrap_or_default();
            decide(call, &tool, offered_now.as_deref(), &used, &granted);
        }
        Ok(())
    }
}

/// Returns the agent's settings of a tool; `None` when the agent has no tool with this name.
pub(super) fn settings(
    agent: &AgentDefinition,
    offered: &[ToolSpec],
    name: &str,
) -> Option<AgentTool> {
    let listed = names::listed(&agent.tools, name).cloned();
    let is_offered = || offered.iter().any(|spec| spec.name == name);
    listed.or_else(|| match name {
        read_result::NAME if is_offered() => Some(read_result::settings()),
        find_tools::NAME if is_offered() => Some(find_tools::settings()),
        _ => None,
    })
}

fn by_name(tools: Vec<DefinedTool>) -> Definitions {
    let tools = tools.into_iter();
    tools
        .map(|tool| (tool.tool_name, tool.definition_hash))
        .collect()
}

/// The hash for a missing tool. No tool has this hash, so a call that asks for an approval while its tool is missing
/// never runs a later tool of that name.
const NO_DEFINITION: &str = "none";

/// Decides about one call. `offered` is the hash of its tool's current definition; `None` when the tool is missing.
fn decide(
    call: &mut ToolCall,
    tool: &AgentTool,
    offered: Option<&str>,
    used: &Definitions,
    granted: &Definitions,
) {
    let is_offered = |known: &Definitions| {
        let known = known.get(&call.tool_name);
        offered.zip(known).map(|(offered, known)| offered == known)
    };
    let has_changed = is_offered(used) == Some(false);
    let policy = tool.policy_on_definition_change();
    // A grant for an unknown definition does not cover the current definition. A grant never covers a call that another
    // person must approve: the grant may be an answer of the person who asks.
    let by = tool.approval.as_ref().map(ApprovalPolicy::approvers);
    let by = by.unwrap_or(ApprovalBy::Anyone);
    let is_granted = by == ApprovalBy::Anyone && is_offered(granted) == Some(true);
    if is_granted {
        call.approval_timeout_s = None;
    }
    let mut rule = CallRule {
        definition_changed: has_changed && policy != OnDefinitionChange::Run,
        ..CallRule::default()
    };
    match policy {
        // A person may have approved the current definition.
        OnDefinitionChange::Ask if has_changed && !is_granted => {
            call.approval_timeout_s.get_or_insert(DEFAULT_TIMEOUT_S);
        }
        OnDefinitionChange::Refuse | OnDefinitionChange::Unknown(_) if has_changed => {
            call.approval_timeout_s = None;
            rule.refused = true;
        }
        OnDefinitionChange::Ask
        | OnDefinitionChange::Refuse
        | OnDefinitionChange::Run
        | OnDefinitionChange::Unknown(_) => {}
    }
    let asks = call.approval_timeout_s.is_some();
    if asks {
        rule.by = by.into();
    }
    // The definition that the conversation has used stays the reference, until a person approves another definition.
    if rule.refused {
        call.definition_hash = used.get(&call.tool_name).cloned().unwrap_or_default();
    } else if asks || is_granted || policy != OnDefinitionChange::Run {
        offered
            .unwrap_or(NO_DEFINITION)
            .clone_into(&mut call.definition_hash);
    }
    call.rule = Some(rule).filter(|rule| *rule != CallRule::default());
}

/// Binds a call that needs an approval to the shown input and definition, and sets by which way answers are taken.
fn bind(call: &mut ToolCall, answers_from: &AnswersFrom) {
    if call.approval_timeout_s.is_none() {
        return;
    }
    let input = call.tool_input.clone().unwrap_or_default();
    call.input_hash = ids::approval_hash(&call.tool_name, &input, &call.definition_hash);
    call.rule.get_or_insert_default().answers_from = answers_from.into();
}

#[cfg(test)]
mod tests {
    use everturn_proto::turn::ApprovalPolicy;

    use super::*;

    /// A call that needs an approval when its tool has a policy.
    fn call(tool: &AgentTool) -> ToolCall {
        ToolCall {
            tool_name: "pay".to_owned(),
            approval_timeout_s: tool.approval.as_ref().map(|policy| policy.timeout_s),
            ..ToolCall::default()
        }
    }

    fn tool(asks: bool, on_change: &OnDefinitionChange) -> AgentTool {
        tool_by(asks, on_change, &ApprovalBy::Anyone)
    }

    fn tool_by(asks: bool, on_change: &OnDefinitionChange, by: &ApprovalBy) -> AgentTool {
        let policy = ApprovalPolicy {
            timeout_s: 9,
            by: Some(by.into()),
            ..ApprovalPolicy::default()
        };
        AgentTool {
            approval: asks.then_some(policy),
            on_definition_change: Some(on_change.into()),
            ..AgentTool::default()
        }
    }

    fn decided(tool: &AgentTool, used: Option<&str>, granted: Option<&str>) -> ToolCall {
        let known = |hash: Option<&str>| {
            hash.map(|hash| ("pay".to_owned(), hash.to_owned()))
                .into_iter()
                .collect()
        };
        let mut call = call(tool);
        decide(&mut call, tool, Some("new"), &known(used), &known(granted));
        call
    }

    #[test]
    fn a_call_that_asks_is_bound_to_what_is_offered() {
        for policy in [
            OnDefinitionChange::Run,
            OnDefinitionChange::Ask,
            OnDefinitionChange::Refuse,
        ] {
            let asked = decided(&tool_by(true, &policy, &ApprovalBy::Other), None, None);
            assert_eq!(asked.approval_timeout_s, Some(9));
            assert_eq!(asked.definition_hash, "new");
            assert_eq!(asked.rule().by(), ApprovalBy::Other);
        }
    }

    #[test]
    fn a_call_of_a_tool_that_is_gone_runs_with_no_definition() {
        let tool = tool(true, &OnDefinitionChange::Run);
        let mut call = call(&tool);
        let granted = [("pay".to_owned(), String::new())].into();
        decide(&mut call, &tool, None, &Definitions::new(), &granted);
        assert_eq!(call.approval_timeout_s, Some(9));
        assert_eq!(call.definition_hash, NO_DEFINITION);
    }

    #[test]
    fn a_grant_is_for_one_definition() {
        let tool = tool(true, &OnDefinitionChange::Run);
        let granted = decided(&tool, None, Some("new"));
        assert_eq!(granted.approval_timeout_s, None);
        assert_eq!(granted.definition_hash, "new", "it runs with this one only");
        for other in ["old", ""] {
            assert_eq!(
                decided(&tool, None, Some(other)).approval_timeout_s,
                Some(9)
            );
        }
    }

    #[test]
    fn no_grant_covers_a_call_that_another_person_must_approve() {
        for policy in [OnDefinitionChange::Run, OnDefinitionChange::Ask] {
            let tool = tool_by(true, &policy, &ApprovalBy::Other);
            let asked = decided(&tool, None, Some("new"));
            assert_eq!(asked.approval_timeout_s, Some(9));
            assert_eq!(asked.rule().by(), ApprovalBy::Other);
        }
    }

    #[test]
    fn a_tool_that_has_changed_runs_or_asks_or_is_refused() {
        let run = decided(&tool(false, &OnDefinitionChange::Run), Some("old"), None);
        assert_eq!((run.approval_timeout_s, run.rule), (None, None));
        assert_eq!(run.definition_hash, "", "it runs with any");

        let ask = tool(false, &OnDefinitionChange::Ask);
        let asked = decided(&ask, Some("old"), None);
        assert_eq!(asked.approval_timeout_s, Some(DEFAULT_TIMEOUT_S));
        assert!(asked.rule().definition_changed);
        for same in [None, Some("new")] {
            let same = decided(&ask, same, None);
            assert_eq!((same.approval_timeout_s, same.rule), (None, None));
            assert_eq!(same.definition_hash, "new");
        }

        for asks in [false, true] {
            let refuse = tool(asks, &OnDefinitionChange::Refuse);
            let refused = decided(&refuse, Some("old"), Some("new"));
            assert!(refused.rule().refused && refused.approval_timeout_s.is_none());
            assert_eq!(refused.definition_hash, "old");
        }
    }
}
