//! The names that the file's agents may refer to: tools, servers, skills and other agents. The tables of tools add
//! names, and the agents' tables read them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use everturn_proto::{turn, words::DELEGATE_TOOL};
use everturn_tools::skills::{self, Skills};
use toml::Spanned;

use super::checker::{Checker, ReadBy};

pub(super) struct Names {
    tools: BTreeMap<String, Runner>,
    /// False at a gateway, which accepts any name, because only workers know their tools and skills.
    are_complete: bool,
    /// Names of the MCP servers. Only a server itself knows its tools.
    pub(super) servers: BTreeSet<String>,
    pub(super) agents: BTreeSet<String>,
    /// The skills; `None` at a gateway.
    pub(super) skills: Option<Skills>,
}

/// Who runs a tool, and what the agent's definition must contain for the tool.
#[derive(Clone)]
pub(super) enum Runner {
    /// The worker itself runs the tool.
    Worker,
    Client,
    /// A worker of the operator's own runs the tool. If `timeout` is `None`, the agent's time-out applies.
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

    /// Adds a tool that agents may name. Returns false at a gateway, because a gateway needs no tools.
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

    /// Returns who runs the tool, or `None` for an unknown tool.
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
