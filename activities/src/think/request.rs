//! The request of a call: the messages, with long results shortened for the window, the files, and the currently
//! available tools.
//!
//! Must not be here: the decision whether the request fits (`ask`), and the call (`call`).

use std::{collections::BTreeMap, time::Duration};

use everturn_models::{Caller, ModelRequest, OfferedTool, OutputFormat, Parameters};
use everturn_proto::{
    ids,
    turn::AgentDefinition,
    words::{FailureCode, MessageRole, ToolKind},
};
use everturn_store::{ContextMessage, ToolResult};
use everturn_tools::{Asker, ToolRegistry, ToolSpec, builtin::read_result, delegate};
use temporalio_common::ActivityError;

use super::{model_name::model_of, sent_files::FileReader, window::Window};
use crate::failure as fail;

/// Makes the requests of a call.
pub(super) struct RequestMaker<'a> {
    /// The caller of the turn.
    pub(super) caller: Caller,
    pub(super) agent_hash: &'a str,
    pub(super) tools: &'a ToolRegistry,
    /// The worker's agents by name. The tool `delegate` lists agents for sub-agents.
    pub(super) agents: &'a BTreeMap<String, AgentDefinition>,
    pub(super) files: FileReader<'a>,
}

impl RequestMaker<'_> {
    /// Returns the request, and the definitions of its tools: the agent's currently available tools.
    pub(super) async fn make(
        &self,
        agent: &AgentDefinition,
        mut messages: Vec<ContextMessage>,
        window: Window,
    ) -> Result<(ModelRequest, Vec<ToolSpec>), ActivityError> {
        let has_shortened = window.shorten_results(&mut messages);
        let mut tools = self.tools_of(agent).await?;
        let is_summary = |message: &ContextMessage| message.role == MessageRole::Summary;
        let mut results = messages.iter().flat_map(|message| &message.tool_results);
        // An offered tool stays offered, because a request with a new beginning misses the provider's cache.
        if has_shortened
            || messages.first().is_some_and(is_summary)
            || results.any(ToolResult::is_cut)
        {
            tools.extend(self.tools.spec(read_result::NAME));
        }
        let listed = agent.tools.iter().map(|tool| tool.name.as_str());
        let notes = self.tools.notes(listed, self.asker(agent)).await;
        let request = ModelRequest {
            provider: agent.provider.clone(),
            model: model_of(agent, self.agent_hash)?,
            caller: Caller {
                agent: agent.name.clone(),
                ..self.caller.clone()
            },
            prices: agent.prices,
            cache_key: ids::cache_key(&self.caller.tenant_id, &self.caller.conversation_id),
            files: self.files.read(agent, &messages).await?,
            instructions: instructions(agent, notes),
            messages,
            tools: tools.iter().map(offered).collect(),
            silence: Some(Duration::from_millis(agent.llm_timeout_ms.into())),
            max_output_tokens: agent.max_output_tokens,
            parameters: Parameters::of(agent),
            output: OutputFormat::of(agent),
            ..ModelRequest::default()
        };
        Ok((request, tools))
    }

    fn asker<'a>(&'a self, agent: &'a AgentDefinition) -> Asker<'a> {
        Asker {
            tenant_id: &self.caller.tenant_id,
            agent: &agent.name,
        }
    }

    /// Returns the definitions of the agent's currently available tools.
    async fn tools_of(&self, agent: &AgentDefinition) -> Result<Vec<ToolSpec>, ActivityError> {
        let (delegate, registered): (Vec<_>, Vec<_>) = agent
            .tools
            .iter()
            .partition(|tool| tool.kind() == ToolKind::Delegate);
        let registered = registered.iter().map(|tool| tool.name.as_str());
        let tools = self.tools.specs(registered, self.asker(agent)).await;
        // The definition of the call has only tools that this worker may have (`here`).
        let mut tools =
            tools.map_err(|error| fail::permanent(FailureCode::Internal, error.to_string()))?;
        tools.extend(
            delegate
                .into_iter()
                .filter_map(|tool| delegate::spec(tool, self.agents, &self.caller.tenant_id)),
        );
        Ok(tools)
    }
}

/// Returns the agent's instructions, and behind them the words of the sources of tools. The agent's part comes first, so that it
/// stays the same for the provider's cache.
fn instructions(agent: &AgentDefinition, notes: Vec<String>) -> Option<String> {
    let own = Some(agent.instructions.clone()).filter(|text| !text.trim().is_empty());
    let parts: Vec<_> = own.into_iter().chain(notes).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Returns a tool's definition as the model reads it.
fn offered(spec: &ToolSpec) -> OfferedTool {
    OfferedTool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
    }
}
