//! `load_turn_activity`: takes the message into its turn and pins the agent.

use everturn_proto::{
    turn::{AgentDefinition, LoadTurnRequest, LoadedTurn},
    words::{DEFAULT_AGENT, DEFAULT_TENANT, failure},
};
use everturn_store::BeginTurn;
use everturn_stream::Announcement;
use temporalio_common::ActivityError;

use crate::{AgentActivities, failure as fail, save::announce};

pub(crate) async fn load_turn(
    activities: &AgentActivities,
    request: LoadTurnRequest,
) -> Result<LoadedTurn, ActivityError> {
    let agent = find_agent(activities, &request).await?;
    let conversation_id = request.conversation_id.clone();
    let tenant_id = if request.tenant_id.is_empty() { DEFAULT_TENANT.to_owned() } else { request.tenant_id };
    let begin = BeginTurn {
        conversation_id: request.conversation_id,
        tenant_id,
        message_id: request.message_id,
        content: request.content,
        agent_execution_id: request.agent_execution_id,
        agent,
    };
    let begun = activities.turns.begin_turn(begin).await.map_err(|error| fail::from_store(&error))?;
    let announcement = Announcement { last_sequence: begun.last_sequence, sealed: Vec::new() };
    announce(activities, &conversation_id, announcement).await;
    Ok(LoadedTurn {
        status: begun.status,
        agent: begun.agent.name,
        agent_hash: begun.agent_hash,
        max_steps: begun.agent.max_steps,
        llm_timeout_ms: begun.agent.llm_timeout_ms,
    })
}

/// The agent that was asked for, else the conversation's, else the default one.
async fn find_agent(activities: &AgentActivities, request: &LoadTurnRequest) -> Result<AgentDefinition, ActivityError> {
    let mut name = request.agent.clone();
    if name.is_empty() {
        let stored = activities.conversations.conversation(&request.conversation_id).await;
        let stored = stored.map_err(|error| fail::from_store(&error))?;
        name = stored.map_or_else(|| DEFAULT_AGENT.to_owned(), |conversation| conversation.agent);
    }
    activities.agents.get(&name).cloned().ok_or_else(|| {
        let known: Vec<_> = activities.agents.keys().map(String::as_str).collect();
        fail::permanent(
            failure::UNKNOWN_AGENT,
            format!("There is no agent `{name}` in this worker's configuration; it knows: {}.", known.join(", ")),
        )
    })
}
