//! What the agents of a file may name: tools, servers, skills and other agents. The tables of tools add to it, those of
//! agents read it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use everturn_activities::tools::skills::{self, Skills};
use everturn_proto::{turn, words::DELEGATE_TOOL};
use toml::Spanned;

use super::checker::{Checker, ReadBy};

pub(super) struct Names {
    tools: BTreeMap<String, Runner>,
    /// False at a gateway, which takes any name: only workers know which tools and skills there are.
    are_complete: bool,
    /// Names of the MCP servers. What tools they have is known to them only.
    pub(super) servers: BTreeSet<String>,
    pub(super) agents: BTreeSet<String>,
    /// Absent at a gateway.
    pub(super) skills: Option<Skills>,
}

/// Who runs a tool, and what an agent's definition must have for it.
#[derive(Clone)]
pub(super) enum Runner {
    /// The worker itself.
    Worker,
    Client,
    /// A worker of the operator's own. Without a time-out, the agent's holds.
    Remote {
        worker: turn::RemoteTool,
        timeout: Option<Duration>,
    },
}

impl Names {
    pub(super) fn new(read_by: ReadBy<'_>) -> Self {
        let (tools, are_complete) = match read_by {
            ReadBy::Worker { tools, .. } => (tools, true),
            ReadBy::Gateway => (&[][..], false),
        };
        Self {
            tools: tools
                .iter()
                .map(|name| (name.clone(), Runner::Worker))
                .collect(),
            are_complete,
            servers: BTreeSet::new(),
            agents: BTreeSet::new(),
            skills: None,
        }
    }

    /// Lets agents name the tool. Returns false at a gateway, where tools are not needed.
    pub(super) fn add_tool(
        &mut self,
        check: &mut Checker<'_>,
        name: &Spanned<String>,
        runner: Runner,
    ) -> bool {
        let text = name.get_ref();
        if self.are_complete && (self.tools.contains_key(text) || text == DELEGATE_TOOL) {
            check.wrong(name, format!("there already is a tool `{text}`"));
        } else {
            self.tools.insert(text.clone(), runner);
        }
        self.are_complete
    }

    /// Who runs the tool; `None` when there is no such tool.
    pub(super) fn runner(&self, tool: &str) -> Option<Runner> {
        let known = self.tools.get(tool).cloned();
        known.or((!self.are_complete).then_some(Runner::Worker))
    }

    pub(super) fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    pub(super) fn has_skill(&self, name: &str) -> bool {
        let skills = self.skills.as_ref();
        name == skills::ALL || skills.is_none_or(|skills| skills.knows(name))
    }
}
