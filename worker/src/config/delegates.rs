//! Sub-agents: which agents an agent may start, and the limits of their tree.

use std::time::Duration;

use everturn_proto::{
    turn::{AgentDefinition, AgentTool, ApprovalPolicy},
    words::{DELEGATE_TOOL, tool_kind},
};
use toml::Spanned;

use super::{
    check::{Checker, HOUR, SECOND, known_names, milliseconds},
    file,
};

/// Sub-agents of sub-agents of sub-agents: deeper trees are mostly loops.
const DEFAULT_MAX_DEPTH: u32 = 3;
/// Each makes LLM calls of its own: enough for wide research, too few for a runaway.
const DEFAULT_MAX_SUB_AGENTS: u32 = 16;

impl Checker<'_> {
    /// Gives the agent tool `delegate` when it has `delegates`.
    pub(super) fn delegate(
        &mut self,
        tools: &mut Vec<AgentTool>,
        listed: &[Spanned<toml::Value>],
        delegates: &[Spanned<String>],
    ) {
        let mut names: Vec<String> = Vec::new();
        for name in delegates {
            if !self.agents.contains(name.get_ref()) {
                let known: Vec<_> = self.agents.iter().map(String::as_str).collect();
                let message = format!(
                    "there is no agent `{}`; {}",
                    name.get_ref(),
                    known_names("agents", &known)
                );
                self.wrong(name, &message);
            } else if names.contains(name.get_ref()) {
                self.wrong(
                    name,
                    &format!(
                        "agent `{}` is named twice; keep one of them",
                        name.get_ref()
                    ),
                );
            } else {
                names.push(name.get_ref().clone());
            }
        }
        let place = tools
            .iter()
            .position(|tool| tool.kind == tool_kind::DELEGATE);
        match (place, names.is_empty()) {
            (Some(place), false) => tools[place].delegates = names,
            (None, false) => tools.push(AgentTool {
                delegates: names,
                ..delegate(None)
            }),
            (None, true) => {}
            (Some(place), true) => {
                if let Some(tool) = listed.get(place).filter(|_| delegates.is_empty()) {
                    self.wrong(
                        tool,
                        "tool `delegate` needs `delegates`, the agents that it may start",
                    );
                }
            }
        }
    }

    /// `delegate` among an agent's tools: there for its approval policy.
    pub(super) fn listed_delegate(
        &mut self,
        at: &Spanned<toml::Value>,
        has_timeout: bool,
        approval: Option<ApprovalPolicy>,
    ) -> AgentTool {
        if has_timeout {
            self.wrong(at, "tool `delegate` has no `timeout`; set `turn_timeout` of the agents that it may start");
        }
        delegate(approval)
    }

    /// The limits of a turn and of its tree of sub-agents.
    pub(super) fn tree_limits(&mut self, table: &file::Agent) -> AgentDefinition {
        let timeout = self.duration(
            "turn_timeout",
            table.turn_timeout.as_ref(),
            Duration::ZERO,
            SECOND..=24 * HOUR,
        );
        AgentDefinition {
            max_depth: self.number(
                "max_depth",
                table.max_depth.as_ref(),
                DEFAULT_MAX_DEPTH,
                1..=10,
            ),
            max_sub_agents: self.number(
                "max_sub_agents",
                table.max_sub_agents.as_ref(),
                DEFAULT_MAX_SUB_AGENTS,
                1..=1000,
            ),
            turn_timeout_ms: milliseconds(timeout),
            ..AgentDefinition::default()
        }
    }
}

fn delegate(approval: Option<ApprovalPolicy>) -> AgentTool {
    let (name, kind) = (DELEGATE_TOOL.to_owned(), tool_kind::DELEGATE.to_owned());
    AgentTool {
        name,
        kind,
        approval,
        ..AgentTool::default()
    }
}
