//! `begin_after_turn_activity`: plans the hooks after a turn, and stores their records. The hooks run like any tool.

use std::sync::Arc;

use everturn_proto::{
    Thread,
    ids::{self, AFTER_TURN_STEP},
    turn::{AfterTurnInput, AfterTurnPlan},
    words::Hook,
};
use everturn_store::{StepKey, TurnInputs, Turns};
use everturn_tools::ToolRegistry;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::{
    attempt::{Attempt, Ends},
    hooks::{self, Around},
    known_agents::KnownAgents,
    tool_calls,
};

/// Begins the work after a turn.
#[derive(Clone)]
pub(crate) struct AfterTurn {
    pub(crate) turns: Arc<dyn Turns>,
    pub(crate) inputs: Arc<dyn TurnInputs>,
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) agents: Arc<KnownAgents>,
    pub(crate) ends: Ends,
}

impl AfterTurn {
    pub(crate) async fn begin(
        &self,
        ctx: &ActivityContext,
        input: AfterTurnInput,
    ) -> Result<AfterTurnPlan, ActivityError> {
        let inputs = &*self.inputs;
        let attempt = &Attempt::begin(&self.ends, ctx, &input.agent_execution_id);
        let agent = self
            .agents
            .pinned(inputs, attempt, &input.agent_hash)
            .await?;
        let owner = &hooks::owner(inputs, attempt, &input.conversation_id).await?;
        let said = self.said(attempt, &input).await?;
        let around = Around {
            conversation_id: &input.conversation_id,
            owner,
            message_id: &input.message_id,
            agent_execution_id: &input.agent_execution_id,
            agent: &agent.name,
            message: &said.message,
            answer: Some(&said.answer),
        };
        let named = agent.hooks.as_ref();
        let named = named.map_or(&[][..], |hooks| hooks.after_turn.as_slice());
        let step = StepKey {
            conversation_id: input.conversation_id.clone(),
            message_id: input.message_id.clone(),
            agent_execution_id: input.agent_execution_id.clone(),
            step: AFTER_TURN_STEP,
            epoch: None,
        };
        let execution_id = |index| {
            let (message, agent) = (&step.message_id, &step.agent_execution_id);
            ids::tool_execution_id(message, agent, AFTER_TURN_STEP, index)
        };
        let calls = hooks::plan(&self.tools, named, Hook::AfterTurn, &around, execution_id).await;
        let has_begun = attempt
            .insist(|| self.turns.begin_after_turn(&step, &calls))
            .await?;
        if !has_begun {
            tracing::warn!(
                conversation_id = step.conversation_id,
                agent_execution_id = step.agent_execution_id,
                "the hooks after a turn are left out, because the hooks of too many earlier turns of the conversation \
                 still run"
            );
            return Ok(AfterTurnPlan {
                is_left_out: true,
                ..AfterTurnPlan::default()
            });
        }
        Ok(AfterTurnPlan {
            tool_calls: calls.iter().map(tool_calls::planned).collect(),
            is_left_out: false,
        })
    }

    async fn said(
        &self,
        attempt: &Attempt<'_>,
        input: &AfterTurnInput,
    ) -> Result<Said, ActivityError> {
        let id = &input.agent_execution_id;
        let thread = Thread::of(&input.conversation_id, &input.message_id, id);
        let task = match thread.sub_agent() {
            Some(sub_agent) => ids::task_message_id(sub_agent),
            None => input.message_id.clone(),
        };
        let answer = ids::assistant_message_id(id, input.last_step);
        let (conversation, wanted) = (&input.conversation_id, [task, answer]);
        let mut texts = attempt
            .insist(|| self.inputs.message_texts(conversation, &wanted))
            .await?;
        let [task, answer] = wanted;
        Ok(Said {
            message: texts.remove(&task).unwrap_or_default(),
            answer: texts.remove(&answer).unwrap_or_default(),
        })
    }
}

/// The texts of the turn.
struct Said {
    message: String,
    answer: String,
}
