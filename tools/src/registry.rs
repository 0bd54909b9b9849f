//! The registry: the tools of a worker by name, both its own tools and the tools of its sources.
//!
//! A turn is pinned to the names in its agent's list, not to definitions. A source's tools are looked up for the
//! offer and again for the call, so a server may add, change and remove tools while turns run. A call of a removed
//! tool ends as an error that the model can read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use everturn_proto::words::DELEGATE_TOOL;
use everturn_untrusted::cut;
use futures::future::join_all;

use crate::{
    checked::{CheckedTool, RegisterError},
    consents::PersonConsents,
    context::Asker,
    error::ToolError,
    names::{self, MAX_NAME_BYTES},
    tool::{Tool, ToolSpec},
};

/// The most tools named in a message about an unknown tool.
const MAX_NAMES: usize = 30;

/// Tools by the name that the model sees.
pub type ToolSet = BTreeMap<String, CheckedTool>;

/// Tools that may change while the worker runs, like the tools of an MCP server. Their names are `<source>__<tool>`
/// (`names::qualified`).
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// Returns the known tools that the asker may use. May wait some seconds for the source's first answer; returns
    /// an empty set without an answer.
    async fn tools(&self, asker: Asker<'_>) -> Arc<ToolSet>;

    /// Returns a tool by name. Asks the source for an unknown tool. The error tells the model why the tool is
    /// missing.
    async fn find(&self, name: &str, asker: Asker<'_>) -> Result<CheckedTool, ToolError>;

    /// Returns the source's words to the model about its tools: how to use the tools, or that they are missing now. See
    /// [`Self::tools`], which waits for the source.
    async fn note(&self, _: Asker<'_>) -> Option<String> {
        None
    }

    /// Gives the source the consents of people, for sources that people consent to.
    fn use_consents(&self, _: &Arc<PersonConsents>) {}

    /// Returns the name of a tool's probe ([`Tool::probe`]). The source need not be connected.
    fn probe_of(&self, _: &str) -> Option<String> {
        None
    }

    /// Closes open connections. The source is not used afterwards.
    async fn close(&self) {}
}

/// The tools of a worker, by name.
#[derive(Default, Clone)]
pub struct ToolRegistry {
    tools: ToolSet,
    sources: BTreeMap<String, Arc<dyn ToolSource>>,
}

/// The error of an agent that names an unregistered tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{name}`; the tools are: {known}")]
pub struct UnknownTool {
    /// The unknown name.
    pub name: String,
    /// The registered names, separated by commas.
    pub known: String,
}

impl ToolRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a registry of these tools.
    pub fn of(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, RegisterError> {
        let mut registry = Self::new();
        for tool in tools {
            registry.register(tool)?;
        }
        Ok(registry)
    }

    /// Adds a tool of the worker's own, and checks the tool's name and schema.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let checked = CheckedTool::new(tool)?;
        let name = checked.spec().name.clone();
        // `a__b` is tool `b` of source `a`, even if the source is added later. `delegate` belongs to the runtime: the
        // workflow runs it.
        if names::source_of(&name).is_some() || name == DELEGATE_TOOL {
            return Err(RegisterError::InvalidName(name));
        }
        if self.tools.contains_key(&name) {
            return Err(RegisterError::Duplicate(name));
        }
        self.tools.insert(name, checked);
        Ok(())
    }

    /// Gives the sources the consents of people.
    pub fn use_consents(&self, consents: &Arc<PersonConsents>) {
        for source in self.sources.values() {
            source.use_consents(consents);
        }
    }

    /// Closes the sources' open connections.
    pub async fn close(&self) {
        join_all(self.sources.values().map(|source| source.close())).await;
    }

    /// Adds a source of tools.
    pub fn add_source(
        &mut self,
        name: &str,
        source: Arc<dyn ToolSource>,
    ) -> Result<(), RegisterError> {
        if !names::is_valid_source(name) {
            return Err(RegisterError::InvalidName(name.to_owned()));
        }
        if self.sources.contains_key(name) {
            return Err(RegisterError::Duplicate(name.to_owned()));
        }
        self.sources.insert(name.to_owned(), source);
        Ok(())
    }

    /// Returns the tool with this name; the error is for the model. May wait for the start of a source.
    pub async fn find(&self, name: &str, asker: Asker<'_>) -> Result<CheckedTool, ToolError> {
        if let Some(tool) = self.tools.get(name) {
            return Ok(tool.clone());
        }
        match self.source(name) {
            Some(source) => source.find(name, asker).await,
            None => Err(ToolError::Failed(sentence(&self.unknown(name).to_string()))),
        }
    }

    /// Returns the name of the probe that tells whether a call of the tool has happened; `None` without a probe.
    pub fn probe_of(&self, name: &str) -> Option<String> {
        if let Some(tool) = self.tools.get(name) {
            return tool.tool().probe().map(str::to_owned);
        }
        self.source(name).and_then(|source| source.probe_of(name))
    }

    /// Returns the definition of one of the worker's own tools, or `None` for an unknown name.
    pub fn spec(&self, name: &str) -> Option<ToolSpec> {
        self.tools.get(name).map(|tool| tool.spec().clone())
    }

    /// Returns true when the tool is registered, or when a source may have the tool.
    pub fn may_have(&self, name: &str) -> bool {
        self.tools.contains_key(name) || self.source(name).is_some()
    }

    /// Returns the names of the worker's own tools, sorted. Only the sources know the names of their tools.
    pub fn names(&self) -> Vec<String> {
        self.tools.keys().cloned().collect()
    }

    /// Returns the definitions of the tools in an agent's list. See [`Self::offered`].
    pub async fn specs<I>(&self, listed: I, asker: Asker<'_>) -> Result<Vec<ToolSpec>, UnknownTool>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Ok(self
            .offered(listed, asker)
            .await?
            .iter()
            .map(CheckedTool::spec)
            .cloned()
            .collect())
    }

    /// Returns the tools in an agent's list, in order and without duplicates. Leaves out silent sources and tools
    /// that a source does not have (any more). An unknown tool of the worker's own is an error.
    pub async fn offered<I>(
        &self,
        listed: I,
        asker: Asker<'_>,
    ) -> Result<Vec<CheckedTool>, UnknownTool>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let listed: Vec<String> = listed
            .into_iter()
            .map(|name| name.as_ref().to_owned())
            .collect();
        let of_sources = self.known_of_sources(&listed, asker).await;
        let mut tools = Vec::new();
        let mut offered = BTreeSet::new();
        for listed in &listed {
            let found: Vec<&CheckedTool> = match names::source_of(listed) {
                None => vec![self.tools.get(listed).ok_or_else(|| self.unknown(listed))?],
                Some(source) => {
                    let tools = of_sources
                        .get(source)
                        .into_iter()
                        .flat_map(|tools| tools.iter());
                    tools
                        .filter(|(name, _)| names::covers(listed, name))
                        .map(|(_, tool)| tool)
                        .collect()
                }
            };
            // Providers refuse a request with a duplicate tool.
            tools.extend(
                found
                    .into_iter()
                    .filter(|tool| offered.insert(tool.spec().name.clone()))
                    .cloned(),
            );
        }
        Ok(tools)
    }

    /// Returns the words of the listed sources to the model about their tools, in the order of the sources' names. Follows
    /// [`Self::offered`], which waits for the sources.
    pub async fn notes<I>(&self, listed: I, asker: Asker<'_>) -> Vec<String>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let listed = listed.into_iter();
        let named: BTreeSet<String> = listed
            .filter_map(|name| names::source_of(name.as_ref()).map(str::to_owned))
            .collect();
        let named = named.iter().filter_map(|name| self.sources.get(name));
        let notes = join_all(named.map(|source| source.note(asker))).await;
        notes.into_iter().flatten().collect()
    }

    /// Returns the tools of all listed sources, which are asked concurrently.
    async fn known_of_sources(
        &self,
        listed: &[String],
        asker: Asker<'_>,
    ) -> BTreeMap<&str, Arc<ToolSet>> {
        let named: BTreeSet<&str> = listed
            .iter()
            .filter_map(|name| names::source_of(name))
            .collect();
        let asked = self
            .sources
            .iter()
            .filter(|(name, _)| named.contains(name.as_str()));
        join_all(asked.map(|(name, source)| async { (name.as_str(), source.tools(asker).await) }))
            .await
            .into_iter()
            .collect()
    }

    fn source(&self, name: &str) -> Option<&Arc<dyn ToolSource>> {
        names::source_of(name).and_then(|source| self.sources.get(source))
    }

    fn unknown(&self, name: &str) -> UnknownTool {
        let mut known: Vec<&str> = self
            .tools
            .keys()
            .map(String::as_str)
            .take(MAX_NAMES)
            .collect();
        if self.tools.len() > MAX_NAMES {
            known.push("…");
        }
        UnknownTool {
            name: cut(name, MAX_NAME_BYTES),
            known: known.join(", "),
        }
    }
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        format!("{}{}.", first.to_uppercase(), chars.as_str())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::fake;

    const ASKER: Asker<'_> = Asker {
        tenant_id: "acme",
        owner_id: None,
        agent: "default",
    };

    /// A source with these tools.
    struct Server(Arc<ToolSet>);

    #[async_trait]
    impl ToolSource for Server {
        async fn tools(&self, _: Asker<'_>) -> Arc<ToolSet> {
            Arc::clone(&self.0)
        }

        async fn find(&self, name: &str, _: Asker<'_>) -> Result<CheckedTool, ToolError> {
            self.0
                .get(name)
                .cloned()
                .ok_or_else(|| ToolError::Failed("gone".into()))
        }
    }

    fn tool(name: &str) -> Arc<dyn Tool> {
        fake(name, json!({"type": "object"}))
    }

    fn registry() -> ToolRegistry {
        let mut registry = ToolRegistry::of([tool("weather"), tool("alarm")]).unwrap();
        let tools = ["fs__read", "fs__write"]
            .map(|name| (name.to_owned(), CheckedTool::new(tool(name)).unwrap()));
        registry
            .add_source("fs", Arc::new(Server(Arc::new(tools.into()))))
            .unwrap();
        registry
            .add_source("down", Arc::new(Server(Arc::default())))
            .unwrap();
        registry
    }

    async fn offered(listed: &[&str]) -> Vec<String> {
        registry()
            .specs(listed, ASKER)
            .await
            .unwrap()
            .into_iter()
            .map(|spec| spec.name)
            .collect()
    }

    #[test]
    fn a_name_belongs_to_one_tool() {
        let twice = ToolRegistry::of([tool("a-1_B"), tool("a-1_B")]);
        assert_eq!(twice.err(), Some(RegisterError::Duplicate("a-1_B".into())));
        assert_eq!(
            registry().register(tool("fs__list")),
            Err(RegisterError::InvalidName("fs__list".into()))
        );
        let again = registry().add_source("fs", Arc::new(Server(Arc::default())));
        assert_eq!(again, Err(RegisterError::Duplicate("fs".into())));
        assert!(
            registry()
                .add_source("a__b", Arc::new(Server(Arc::default())))
                .is_err()
        );
    }

    #[tokio::test]
    async fn specs_come_in_the_order_asked_for() {
        assert_eq!(offered(&["weather", "alarm"]).await, ["weather", "alarm"]);
        let error = registry()
            .specs(["weather", "rain"], ASKER)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no tool `rain`; the tools are: alarm, weather"
        );
    }

    #[tokio::test]
    async fn all_tools_of_a_source_or_one_are_offered_once() {
        assert_eq!(
            offered(&["fs__*", "alarm"]).await,
            ["fs__read", "fs__write", "alarm"]
        );
        assert_eq!(
            offered(&["fs__write", "fs__*"]).await,
            ["fs__write", "fs__read"]
        );
    }

    #[tokio::test]
    async fn what_a_source_does_not_have_is_left_out() {
        assert_eq!(
            offered(&["fs__gone", "down__*", "unconfigured__*", "alarm"]).await,
            ["alarm"]
        );
    }

    #[tokio::test]
    async fn a_tool_is_found_or_the_model_is_told() {
        assert_eq!(
            registry()
                .find("weather", ASKER)
                .await
                .ok()
                .unwrap()
                .spec()
                .name,
            "weather"
        );
        assert_eq!(
            registry()
                .find("fs__read", ASKER)
                .await
                .ok()
                .unwrap()
                .spec()
                .name,
            "fs__read"
        );
        assert_eq!(
            registry().find("fs__gone", ASKER).await.err(),
            Some(ToolError::Failed("gone".into()))
        );
        let message = registry()
            .find("rain", ASKER)
            .await
            .err()
            .unwrap()
            .to_string();
        assert_eq!(
            message,
            "There is no tool `rain`; the tools are: alarm, weather."
        );
        assert!(
            registry()
                .find(&"n".repeat(100_000), ASKER)
                .await
                .err()
                .unwrap()
                .to_string()
                .len()
                < 500
        );
    }
}
