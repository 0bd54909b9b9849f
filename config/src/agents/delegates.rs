//! `delegates` of an agent: the agents that it may start with the tool `delegate`.

use everturn_proto::{
    turn::{AgentTool, ApprovalPolicy},
    words::{DELEGATE_TOOL, ToolKind},
};
use toml::Spanned;

use crate::{checker::Checker, names::Names};

/// Returns the names in `delegates` that are agents of the file. Reports the other names as wrong.
pub(super) fn checked(
    check: &mut Checker<'_>,
    delegates: &[Spanned<String>],
    names: &Names,
) -> Vec<String> {
    let mut agents: Vec<String> = Vec::new();
    for written in delegates {
        let name = written.get_ref();
        if !names.agents.contains(name) {
            let known = names.agents.iter().map(String::as_str);
            check.unknown(written, "agent", name, known);
        } else if agents.contains(name) {
            check.named_twice(written, "agent", name);
        } else {
            agents.push(name.clone());
        }
    }
    agents
}

pub(super) fn tool(delegates: Vec<String>, approval: Option<ApprovalPolicy>) -> AgentTool {
    AgentTool {
        name: DELEGATE_TOOL.to_owned(),
        kind: ToolKind::Delegate.into(),
        approval,
        delegates,
        ..AgentTool::default()
    }
}
