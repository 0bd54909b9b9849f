//! `tool_choice` of an agent: the demand on the tool calls of a turn's first reply.

use everturn_models::ToolChoice;
use everturn_proto::turn::AgentTool;
use toml::Spanned;

use crate::checker::Checker;

/// Returns the demand. Refuses a tool that the agent does not have.
pub(super) fn checked(
    check: &mut Checker<'_>,
    written: Option<&Spanned<String>>,
    tools: &[AgentTool],
) -> Option<String> {
    let written = written?;
    let choice = written.get_ref();
    if tools.is_empty() {
        check.wrong(
            written,
            "`tool_choice` is for agents with tools; remove the key",
        );
    } else if let ToolChoice::Tool(name) = ToolChoice::read(choice)
        && !tools.iter().any(|tool| is_named(tool, &name))
    {
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        check.wrong(
            written,
            format!(
                "`tool_choice` is {}, or the name of a tool of the agent ({}), not \"{name}\"",
                ToolChoice::WORDS.join(", "),
                names.join(", ")
            ),
        );
    }
    Some(choice.clone())
}

/// True when the entry has the tool. The name of an entry may end in `*`, which stands for the rest of the names.
fn is_named(tool: &AgentTool, name: &str) -> bool {
    match tool.name.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => tool.name == name,
    }
}
