//! The step before the first LLM call of a turn, for an agent with hooks before its turns. The step calls no model, and
//! plans the hooks. The hooks run like the tools of any step, and their plan is a checkpoint like any other.

use everturn_proto::{
    ids,
    turn::{AgentDefinition, LlmCompleteState, ThinkResult},
    words::{FinishReason, Hook, MessageRole},
};
use everturn_store::{TurnInputs, model_input::has_hook_results};
use everturn_supervisor::failpoint;
use everturn_tools::ToolRegistry;
use temporalio_common::ActivityError;

use super::{calls, claimed::Claimed, context::ContextReader, store::Store};
use crate::hooks::{self, Around};

/// Plans the hooks before a turn.
pub(super) struct HookStep<'a> {
    pub(super) claimed: &'a Claimed<'a>,
    pub(super) inputs: &'a dyn TurnInputs,
    pub(super) tools: &'a ToolRegistry,
    pub(super) context: ContextReader<'a>,
    pub(super) store: Store<'a>,
}

impl HookStep<'_> {
    /// Plans the hooks before the turn, and stores their plan. The retry of a turn whose hooks have run plans no hooks.
    pub(super) async fn run(&self, agent: &AgentDefinition) -> Result<ThinkResult, ActivityError> {
        let Claimed { attempt, step, .. } = *self.claimed;
        let owner = &hooks::owner(self.inputs, attempt, &step.conversation_id).await?;
        let context = self.context.joined().await?;
        let has_run = has_hook_results(&context.messages, &step.agent_execution_id);
        let task = context.messages.iter().find(|message| {
            message.role == MessageRole::User
                && message.agent_execution_id == step.agent_execution_id
        });
        let around = Around {
            conversation_id: &step.conversation_id,
            owner,
            message_id: &step.message_id,
            agent_execution_id: &step.agent_execution_id,
            agent: &agent.name,
            message: task.map_or("", |task| task.content.as_str()),
            answer: None,
        };
        let named = agent.hooks.as_ref();
        let named = named.filter(|_| !has_run);
        let named = named.map_or(&[][..], |hooks| hooks.before_turn.as_slice());
        let execution_id = |index| {
            let (message, agent) = (&step.message_id, &step.agent_execution_id);
            ids::tool_execution_id(message, agent, step.step, index)
        };
        let tool_calls =
            hooks::plan(self.tools, named, Hook::BeforeTurn, &around, execution_id).await;
        let stored = self
            .store
            .run(LlmCompleteState {
                agent_hash: self.claimed.agent_hash.to_owned(),
                finish: FinishReason::ToolCalls.into(),
                tool_calls,
                ..LlmCompleteState::default()
            })
            .await?;
        failpoint::reach("think.after_checkpoint").await;
        Ok(calls::plan(&stored))
    }
}
