//! The request of a call: the messages, with long results shortened for the window, the files, and the currently
//! available tools.
//!
//! Must not be here: the decision whether the request fits (`ask`), and the call (`call`).

use std::{collections::BTreeMap, time::Duration};

use everturn_models::{Caller, ModelClient, ModelRequest, OutputFormat, Parameters};
use everturn_proto::{
    ids,
    turn::AgentDefinition,
    words::{FailureCode, MessageRole, ToolKind},
};
use everturn_store::{ContextMessage, LeftOutTool, ToolResult};
use everturn_tools::{
    Asker, ToolRegistry, ToolSpec,
    builtin::{find_tools, read_result},
    delegate,
};
use temporalio_common::ActivityError;

use super::{model_name::model_of, room, sent_files::FileReader, window::Window};
use crate::{failure as fail, left_out::LeftOutTools};

/// Makes the requests of a call.
pub(super) struct RequestMaker<'a> {
    /// The caller of the turn.
    pub(super) caller: Caller,
    pub(super) agent_hash: &'a str,
    pub(super) tools: &'a ToolRegistry,
    pub(super) model: &'a dyn ModelClient,
    /// The tools that providers would refuse.
    pub(super) left_out: &'a LeftOutTools,
    /// The worker's agents by name. The tool `delegate` lists agents for sub-agents.
    pub(super) agents: &'a BTreeMap<String, AgentDefinition>,
    pub(super) files: FileReader<'a>,
}

impl RequestMaker<'_> {
    /// Returns the request, and the definitions of the agent's currently available tools: the tools of the request, and the
    /// tools for which the request has no room.
    pub(super) async fn make(
        &self,
        agent: &AgentDefinition,
        mut messages: Vec<ContextMessage>,
        window: Window,
    ) -> Result<(ModelRequest, Vec<ToolSpec>), ActivityError> {
        let model = model_of(agent, self.agent_hash)?;
        let offer = self.offer(agent, &model, &mut messages, window).await?;
        let tools = offer.offered.iter().map(room::as_offered).collect();
        let listed = agent.tools.iter().map(|tool| tool.name.as_str());
        let notes = self.tools.notes(listed, self.asker(agent)).await;
        let request = ModelRequest {
            provider: agent.provider.clone(),
            model,
            caller: Caller {
                agent: agent.name.clone(),
                ..self.caller.clone()
            },
            prices: agent.prices,
            cache_key: ids::cache_key(&self.caller.tenant_id, &self.caller.conversation_id),
            files: self.files.read(agent, &messages).await?,
            instructions: instructions(agent, notes),
            messages,
            tools,
            silence: Some(Duration::from_millis(agent.llm_timeout_ms.into())),
            max_output_tokens: agent.max_output_tokens,
            parameters: Parameters::of(agent),
            output: OutputFormat::of(agent),
            ..ModelRequest::default()
        };
        let known = offer.offered.into_iter().chain(offer.others);
        Ok((request, known.collect()))
    }

    /// Chooses the tools of the request, and shortens the long results of the messages.
    async fn offer(
        &self,
        agent: &AgentDefinition,
        model: &str,
        messages: &mut [ContextMessage],
        window: Window,
    ) -> Result<room::Offer, ActivityError> {
        let tools = self.tools_of(agent).await?;
        let rules = self.model.tool_rules(&agent.provider, model);
        // A shortened result no longer names its tools.
        let found = room::found_in(messages, &tools, rules);
        let has_shortened = window.shorten_results(messages);
        let is_summary = |message: &ContextMessage| message.role == MessageRole::Summary;
        let mut results = messages.iter().flat_map(|message| &message.tool_results);
        // An offered tool stays offered, because a request with a new beginning misses the provider's cache.
        let reads_results = has_shortened
            || messages.first().is_some_and(is_summary)
            || results.any(ToolResult::is_cut);
        let built_in = room::BuiltIn {
            find_tools: self.tools.spec(find_tools::NAME),
            read_result: self.tools.spec(read_result::NAME).filter(|_| reads_results),
        };
        let is_agent = |name: &str| {
            let mut listed = agent.tools.iter();
            listed.any(|tool| tool.kind() == ToolKind::Delegate && tool.name == name)
        };
        let offer = room::choose(tools, built_in, rules, &found, is_agent);
        for (tool, reason) in &offer.unfit {
            self.left_out.note(LeftOutTool {
                tenant_id: self.caller.tenant_id.clone(),
                agent: agent.name.clone(),
                tool: tool.name.clone(),
                model: format!("{}/{model}", agent.provider),
                reason: reason.to_string(),
            });
        }
        Ok(offer)
    }

    fn asker<'a>(&'a self, agent: &'a AgentDefinition) -> Asker<'a> {
        Asker {
            tenant_id: &self.caller.tenant_id,
            owner_id: self.caller.owner_id.as_deref(),
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
