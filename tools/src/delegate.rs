//! The definition of the tool `delegate` for the model. The workflow runs `delegate` as a child workflow, never this
//! worker.

use std::{collections::BTreeMap, fmt::Write};

use everturn_proto::words::Effect;
use everturn_proto::{
    Json,
    turn::{AgentAsTool, AgentDefinition, AgentTool},
    words::DELEGATE_TOOL,
};
use everturn_untrusted::Schema;
use serde_json::json;

use crate::{checked, tool::ToolSpec};

/// Returns the tool for an agent that may delegate. Leaves out agents that are no longer configured, or not for this
/// tenant. Returns `None` when no agent is left.
pub fn spec(
    tool: &AgentTool,
    agents: &BTreeMap<String, AgentDefinition>,
    tenant_id: &str,
) -> Option<ToolSpec> {
    let offered: Vec<_> = tool
        .delegates
        .iter()
        .filter_map(|name| agents.get(name))
        .filter(|agent| agent.serves(tenant_id))
        .collect();
    if let Some(as_tool) = &tool.as_tool {
        return Some(of_agent(tool, as_tool, offered.first()?));
    }
    if offered.is_empty() {
        return None;
    }
    let mut description = "Gives a task to another agent and returns its answer. The other agent does not see the \
                           conversation: put every needed fact into the task. Call the tool several times at once for \
                           independent tasks. The agents:"
        .to_owned();
    for agent in &offered {
        let purpose = if agent.description.is_empty() {
            "an agent"
        } else {
            &agent.description
        };
        // Writing to a string cannot fail.
        let _ = write!(description, "\n- {}: {purpose}", agent.name);
    }
    let names: Vec<_> = offered.iter().map(|agent| agent.name.as_str()).collect();
    Some(ToolSpec {
        name: DELEGATE_TOOL.to_owned(),
        description,
        parameters: json!({
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": names, "description": "Who does it."},
                "task": {"type": "string", "description": "What to do, complete in itself."},
            },
            "required": ["agent", "task"],
        }),
        title: Some("Ask {agent}".to_owned()),
        // A retry continues with the sub-agent of the first attempt.
        effect: Effect::Idempotent,
        is_inline: false,
    })
}

/// Returns the tool that stands for one agent, with a name, a description and a schema of its own.
fn of_agent(tool: &AgentTool, as_tool: &AgentAsTool, agent: &AgentDefinition) -> ToolSpec {
    let description = match as_tool.description.as_str() {
        "" => &agent.description,
        own => own,
    };
    let parameters = as_tool.parameters.as_ref().map(Json::to_value);
    ToolSpec {
        name: tool.name.clone(),
        description: description.to_owned(),
        parameters: parameters.unwrap_or_else(|| {
            json!({
                "type": "object",
                "properties": {
                    "task": {"type": "string", "description": "What to do, complete in itself."},
                },
                "required": ["task"],
            })
        }),
        title: None,
        // A retry continues with the sub-agent of the first attempt.
        effect: Effect::Idempotent,
        is_inline: false,
    }
}

/// Checks the arguments of a call of a tool that stands for one agent ([`spec`]). The error is for the model, which may
/// correct its call.
pub fn check_input(tool: &ToolSpec, input: &Json) -> Result<(), String> {
    // The configuration refuses a schema that does not compile.
    let Ok(schema) = Schema::compile_any_draft(&tool.parameters) else {
        return Ok(());
    };
    checked::check_input(&tool.name, &schema, input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_a_tool_of_its_own() {
        let agent = AgentDefinition {
            name: "researcher".to_owned(),
            description: "knows facts".to_owned(),
            ..AgentDefinition::default()
        };
        let agents = BTreeMap::from([("researcher".to_owned(), agent)]);
        let tool = |as_tool| AgentTool {
            name: "research".to_owned(),
            delegates: vec!["researcher".to_owned()],
            as_tool: Some(as_tool),
            ..AgentTool::default()
        };
        let plain = spec(&tool(AgentAsTool::default()), &agents, "acme").unwrap();
        assert_eq!(
            (plain.name.as_str(), plain.description.as_str()),
            ("research", "knows facts")
        );
        assert_eq!(plain.parameters["required"], json!(["task"]));
        let own = AgentAsTool {
            description: "Finds sources.".to_owned(),
            parameters: Some(Json::of(&json!({"required": ["topic"]}))),
        };
        let own = spec(&tool(own), &agents, "acme").unwrap();
        assert_eq!(own.description, "Finds sources.");
        assert_eq!(own.parameters, json!({"required": ["topic"]}));
        let gone = spec(&tool(AgentAsTool::default()), &BTreeMap::new(), "acme");
        assert_eq!(gone, None);
    }

    #[test]
    fn names_the_agents_there_are_and_what_they_are_for() {
        let agent = |name: &str, description: &str| {
            let (key, description) = (name.to_owned(), description.to_owned());
            (
                key.clone(),
                AgentDefinition {
                    name: key,
                    description,
                    ..AgentDefinition::default()
                },
            )
        };
        let mut others = agent("others", "for other tenants");
        others.1.tenants = vec!["globex".to_owned()];
        let agents = BTreeMap::from([
            others,
            agent("a", "knows a"),
            agent("b", ""),
            agent("c", "not for this one"),
        ]);
        let tool = |delegates: &[&str]| AgentTool {
            delegates: delegates.iter().map(|name| (*name).to_owned()).collect(),
            ..AgentTool::default()
        };
        assert_eq!(spec(&tool(&["gone", "others"]), &agents, "acme"), None);
        assert!(spec(&tool(&["others"]), &agents, "globex").is_some());
        let spec = spec(&tool(&["a", "b", "gone", "others"]), &agents, "acme").unwrap();
        assert_eq!(
            spec.parameters["properties"]["agent"]["enum"],
            json!(["a", "b"])
        );
        assert!(
            spec.description.ends_with("- a: knows a\n- b: an agent"),
            "{}",
            spec.description
        );
    }
}
