//! The names of configured agents and tools, which labels may have, and the metric of the agents' owners.
//!
//! A label never has a name that only a model, a client or a tool server has written: the label then has [`OTHER`].
//! Names of a process are at most [`Configured::max_names`], also after many changes of the files.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{PoisonError, RwLock},
};

use crate::metric::Metric;

/// The label of an agent or a tool without a label of its own.
pub const OTHER: &str = "other";

/// The owners of agents.
pub const AGENT_INFO: Metric = Metric::gauge(
    "everturn_agent_info",
    "1 for each agent of the configuration, with the `owner` and the `contact` that the configuration names.",
    &["agent", "owner", "contact"],
);

pub(crate) const ALL: &[&Metric] = &[&AGENT_INFO];

/// The agents and tools of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configured {
    /// The agents, by name.
    pub agents: BTreeMap<String, Agent>,
    /// The tools of the agents. `server__*` stands for every tool of an MCP server.
    pub tools: BTreeSet<String>,
    /// The most agents, and the most tools, with a label of their own. The first names of the alphabet come first.
    pub max_names: usize,
}

/// An agent of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// The owner; empty without an owner, as Prometheus writes a missing label.
    pub owner: String,
    /// The address of the owner; empty without an address.
    pub contact: String,
    /// The models that may answer for the agent.
    pub models: Vec<String>,
}

/// The names of the process.
static NAMES: RwLock<Names> = RwLock::new(Names::new());

struct Names {
    /// Names of agents that may be labels. A removed agent keeps its label, because the label has series already.
    agents: BTreeSet<String>,
    tools: BTreeSet<String>,
    present: BTreeMap<String, Agent>,
}

impl Names {
    const fn new() -> Self {
        Self {
            agents: BTreeSet::new(),
            tools: BTreeSet::new(),
            present: BTreeMap::new(),
        }
    }

    fn replace(&mut self, configured: Configured) {
        let Configured {
            agents,
            tools,
            max_names,
        } = configured;
        extend(&mut self.agents, agents.keys(), max_names);
        extend(&mut self.tools, &tools, max_names);
        self.present = agents;
    }

    fn agent<'n>(&self, name: &'n str) -> &'n str {
        if self.agents.contains(name) {
            name
        } else {
            OTHER
        }
    }

    /// Returns the label of a tool. The tools of an MCP server share the label `server__*`, because only the server knows
    /// the names of its tools.
    fn tool(&self, name: &str) -> String {
        if self.tools.contains(name) {
            return name.to_owned();
        }
        let server = name
            .split_once("__")
            .map(|(server, _)| format!("{server}__*"));
        let server = server.filter(|label| self.tools.contains(label));
        server.unwrap_or_else(|| OTHER.to_owned())
    }

    fn owners(&self) -> impl Iterator<Item = (&String, &Agent)> {
        let present = self.present.iter();
        present.filter(|(name, _)| self.agents.contains(*name))
    }
}

fn extend<'n>(
    known: &mut BTreeSet<String>,
    names: impl IntoIterator<Item = &'n String>,
    max: usize,
) {
    for name in names {
        if known.len() < max {
            known.insert(name.clone());
        }
    }
}

/// Takes over the names of a configuration, at the start and after a change of the files.
pub fn configured(configured: Configured) {
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    names.replace(configured);
}

/// Returns the present agents with labels of their own, and the models of each.
pub(crate) fn models() -> Vec<(String, Vec<String>)> {
    let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
    let owners = names.owners();
    owners
        .map(|(name, agent)| (name.clone(), agent.models.clone()))
        .collect()
}

/// Returns the labels that agents may have.
pub(crate) fn agents() -> impl Iterator<Item = String> {
    let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
    let labels = names.agents.iter().cloned();
    let labels: Vec<_> = labels.chain([OTHER.to_owned()]).collect();
    labels.into_iter()
}

/// Returns the label of an agent.
pub(crate) fn agent(name: &str) -> String {
    let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
    names.agent(name).to_owned()
}

/// Returns the label of a tool.
pub(crate) fn tool(name: &str) -> String {
    NAMES
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .tool(name)
}

/// Records the owners of the present agents, into a recorder without earlier owners.
pub fn record_owners() {
    let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
    for (name, agent) in names.owners() {
        AGENT_INFO.set(1, &[name, &agent.owner, &agent.contact]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(agents: &[&str], max_names: usize) -> Configured {
        let owned = |name: &&str| {
            let owner = format!("team {name}");
            let contact = String::new();
            let agent = Agent {
                owner,
                contact,
                models: Vec::new(),
            };
            ((*name).to_owned(), agent)
        };
        Configured {
            agents: agents.iter().map(owned).collect(),
            max_names,
            ..Configured::default()
        }
    }

    #[test]
    fn only_configured_names_are_labels_up_to_the_limit() {
        let mut names = Names::new();
        names.replace(of(&["c", "a", "b"], 2));
        assert_eq!(
            ["a", "b", "c", "x"].map(|name| names.agent(name)),
            ["a", "b", OTHER, OTHER]
        );
    }

    #[test]
    fn the_tools_of_a_server_share_a_label() {
        let mut names = Names::new();
        names.replace(Configured {
            tools: ["refund", "files__*", "mail__send"]
                .map(str::to_owned)
                .into(),
            max_names: 9,
            ..Configured::default()
        });
        for (name, label) in [
            ("refund", "refund"),
            ("files__read", "files__*"),
            ("mail__send", "mail__send"),
            ("mail__made_up", OTHER),
            ("made_up", OTHER),
        ] {
            assert_eq!(names.tool(name), label);
        }
    }

    #[test]
    fn a_removed_agent_keeps_its_label_and_counts() {
        let mut names = Names::new();
        names.replace(of(&["a"], 2));
        names.replace(of(&["b", "c"], 2));
        assert_eq!(
            ["a", "b", "c"].map(|name| names.agent(name)),
            ["a", "b", OTHER]
        );
        let owners: Vec<_> = names
            .owners()
            .map(|(name, it)| (name.as_str(), it.owner.as_str()))
            .collect();
        assert_eq!(
            owners,
            [("b", "team b")],
            "only a present agent has an owner"
        );
    }
}
