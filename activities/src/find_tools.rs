//! Runs the tool `find_tools`: searches the tools of the calling agent.

use everturn_proto::{Json, turn::AgentDefinition, words::ToolKind};
use everturn_store::ToolRecord;
use everturn_tools::{Asker, ToolError, builtin::find_tools};
use temporalio_common::ActivityError;

use crate::{attempt::Attempt, run_tool::ToolRunner};

impl ToolRunner {
    /// Returns the pinned agent of a call of `find_tools`; `None` for a call of another tool.
    pub(crate) async fn finding_agent(
        &self,
        attempt: &Attempt<'_>,
        record: &ToolRecord,
        agent_hash: &str,
    ) -> Result<Option<AgentDefinition>, ActivityError> {
        if record.call.tool_name != find_tools::NAME {
            return Ok(None);
        }
        let pinned = self.agents.pinned(&*self.inputs, attempt, agent_hash);
        pinned.await.map(Some)
    }

    /// Returns the agent's tools that fit the query of a call.
    pub(crate) async fn find_tools(
        &self,
        agent: &AgentDefinition,
        asker: Asker<'_>,
        input: &Json,
    ) -> Result<Json, ToolError> {
        let own = self.tools.find(find_tools::NAME, asker).await?;
        own.validate(input).map_err(ToolError::Failed)?;
        let query: find_tools::Input = input.decode().map_err(|error| {
            ToolError::Failed(format!("The arguments cannot be read: {error}."))
        })?;
        // The definition of a removed tool is missing, and the other tools are still found.
        let listed = agent
            .tools
            .iter()
            .filter(|tool| tool.kind() != ToolKind::Delegate);
        let listed = listed.filter(|tool| self.tools.may_have(&tool.name));
        let specs = self
            .tools
            .specs(listed.map(|tool| tool.name.as_str()), asker)
            .await;
        let specs = specs.map_err(|error| ToolError::Failed(format!("{error}.")))?;
        Ok(Json::of(&find_tools::found(&specs, &query)))
    }
}
