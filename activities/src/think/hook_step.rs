//! The step before the first LLM call of a turn, for an agent with hooks before its turns. The step calls no model, and
//! plans the hooks. The hooks run like the tools of any step, and their plan is a checkpoint like any other.

use everturn_proto::{
    ids,
    turn::{LlmCompleteState, ThinkResult},
    words::{FinishReason, Hook, MessageRole},
};
use everturn_supervisor::failpoint;
use temporalio_common::ActivityError;

use super::{call::ModelCall, calls};
use crate::hooks::{self, Around};

impl ModelCall<'_> {
    /// Plans the hooks before the turn, and stores their plan.
    pub(super) async fn plan_hooks(&self) -> Result<ThinkResult, ActivityError> {
        let (thinker, step) = (self.thinker, self.claimed.step);
        let agent = &self.agent().await?;
        self.thinker.here(self.claimed).check(agent).await?;
        let owner =
            &hooks::owner(&*thinker.turns, self.claimed.attempt, &step.conversation_id).await?;
        let context = self.thinker.context(self.claimed).read(agent).await?;
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
        let named = named.map_or(&[][..], |hooks| hooks.before_turn.as_slice());
        let execution_id = |index| {
            let (message, agent) = (&step.message_id, &step.agent_execution_id);
            ids::tool_execution_id(message, agent, step.step, index)
        };
        let tool_calls = hooks::plan(
            &thinker.tools,
            named,
            Hook::BeforeTurn,
            &around,
            execution_id,
        )
        .await;
        let stored = self
            .store(LlmCompleteState {
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
