//! Creating, showing, changing and deleting conversations.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use everturn_proto::{
    money,
    words::{AgentExecutionStatus, AuditAction, AuditTargetKind},
};
use everturn_store::{Conversation, ConversationChange, NewConversation, ShownConversation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    idempotency::idempotency_key,
    metadata::{self, Metadata, MetadataMap},
    model_choice,
    usage::UsageBody,
};
use crate::{
    http::{
        audit::WithDetails,
        extract::{Caller, ConversationId, JsonBody, Name},
        openapi::{IdempotencyKey, problems},
        problem::{Code, Problem},
        state::GatewayState,
    },
    listed::{ConversationBody, ListedConversationBody},
    schema::Id,
};

/// Namespace of ids made from an idempotency key. Never change it: repeated requests would create anew.
const KEY_NAMESPACE: Uuid = Uuid::from_u128(0x8f5a_1d27_b0c4_5e93_a6d8_2c71_f94e_3b06);

/// The most agent executions whose calls a deletion stops at once. Further calls stop with their next heartbeat.
const MAX_STOPPED: u32 = 200;

/// Reason for terminating a workflow, shown in Temporal.
const DELETED: &str = "the conversation was deleted";

/// A new conversation.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewConversation)]
pub(super) struct NewConversationBody {
    /// Id of the conversation; a UUID by default.
    #[schema(value_type = Option<Id>)]
    id: Option<String>,
    /// The title, at most 512 bytes. The beginning of the first message replaces an empty title.
    #[schema(max_length = 512, pattern = "^[^\\u0000]*$", example = "Sums")]
    title: Option<String>,
    /// Name of an agent in the gateway's configuration.
    #[schema(example = "default")]
    agent: Option<String>,
    /// The model of the conversation's messages, `provider/model`, among the models of the agent (`GET /agents`). Without
    /// the field: the agent's own model.
    #[schema(example = "openai/gpt-5-mini")]
    model: Option<String>,
    /// Texts of the conversation for its LLM calls, at most 16. The operator decides which of the texts a provider gets.
    #[schema(value_type = Option<MetadataMap>)]
    metadata: Option<Metadata>,
}

/// The properties of a conversation that a request may create.
#[derive(Default)]
pub(super) struct NewProperties {
    pub(super) title: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    pub(super) metadata: Option<Metadata>,
}

impl NewProperties {
    /// Returns the properties after the checks that need no agent. An empty title is no title.
    pub(super) fn checked(self, state: &GatewayState) -> Result<Self, Problem> {
        let title = self.title.filter(|title| !title.is_empty());
        check_title(state, title.as_deref().unwrap_or_default())?;
        Ok(Self {
            title,
            metadata: self.metadata.map(metadata::checked).transpose()?,
            ..self
        })
    }
}

problems!(CreateRefusals: InvalidBody, InvalidId, UnknownAgent, UnknownModel, ConversationIdTaken, BodyTooLarge);

/// Creates a conversation.
///
/// Repeating the request with an `id` or an `Idempotency-Key` is safe: the response is the stored conversation.
#[utoipa::path(
    post, path = "/conversations", tag = "conversations", operation_id = "create_conversation",
    params(IdempotencyKey), request_body = NewConversationBody,
    responses(
        (status = 201, body = ConversationBody, description = "Created"),
        (status = 200, body = ConversationBody, description = "The caller already had a conversation with the id or key"),
        CreateRefusals
    )
)]
pub(super) async fn create(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<NewConversationBody>,
) -> Result<(StatusCode, Json<ConversationBody>), Problem> {
    let new = NewProperties {
        title: body.title,
        agent: body.agent,
        model: body.model,
        metadata: body.metadata,
    };
    let new = new.checked(&state)?;
    let id = id_or_key(&caller, body.id, &headers)?;
    let (conversation, is_new) = find_or_create(&state, &caller, id, new, None).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(conversation.into())))
}

/// Returns the client's chosen id, or else an id computed from the client's idempotency key. Every gateway computes the
/// same id for an owner's key, and different owners with equal keys get different ids.
pub(super) fn id_or_key(
    caller: &Caller,
    id: Option<String>,
    headers: &HeaderMap,
) -> Result<Option<String>, Problem> {
    let key = idempotency_key(headers)?;
    if id.is_some() {
        return Ok(id);
    }
    Ok(key.map(|key| id_of_key(caller, &key)))
}

/// Returns the id of the conversation that a key of the caller begins.
pub(super) fn id_of_key(caller: &Caller, key: &str) -> String {
    let owner_id = caller.access.owner_id.as_deref().unwrap_or_default();
    // A NUL ends every part, because two parts must not merge.
    let name = format!("{}\0{owner_id}\0{key}\0", caller.access.tenant_id);
    Uuid::new_v5(&KEY_NAMESPACE, name.as_bytes()).to_string()
}

fn check_title(state: &GatewayState, title: &str) -> Result<(), Problem> {
    let limit = state.config.max_title_bytes;
    if title.len() <= limit && !title.contains('\0') {
        return Ok(());
    }
    Err(Problem::new(
        Code::InvalidBody,
        format!("A title may have at most {limit} bytes, and must not have a NUL character."),
    ))
}

/// Returns the named agent, or the default agent, if the agent serves the caller's tenant.
fn known_agent(
    state: &GatewayState,
    caller: &Caller,
    named: Option<&str>,
) -> Result<String, Problem> {
    let default = &state.config.default_agent;
    let agents = state.agents.names_of(&caller.access.tenant_id);
    let agent = named.unwrap_or(default).to_owned();
    if agents.contains(&agent) {
        return Ok(agent);
    }
    let known = if agents.is_empty() {
        "No agent serves your tenant: the configuration needs a table [agents.NAME].".to_owned()
    } else {
        format!("The agents of your tenant are: {}.", agents.join(", "))
    };
    let detail = match named {
        Some(_) => known,
        None => format!(
            "The request names no agent, and the configuration has no agent `{default}`. {known}"
        ),
    };
    Err(Problem::new(Code::UnknownAgent, detail))
}

/// Returns the caller's conversation with the given id, created if missing; true when the call created the conversation.
/// No conversation is created for a message whose chosen model the agent does not have.
async fn find_or_create(
    state: &GatewayState,
    caller: &Caller,
    id: Option<String>,
    properties: NewProperties,
    chosen: Option<&str>,
) -> Result<(Conversation, bool), Problem> {
    let is_named = id.is_some();
    let name = match id {
        Some(id) => Name::checked(id)?.into_text(),
        // UUIDs of version 7 are ordered by time, therefore the store keeps new rows close together.
        None => Uuid::now_v7().to_string(),
    };
    if is_named
        && let Some(conversation) = state
            .ports
            .conversations
            .conversation(&caller.access, &name)
            .await?
    {
        return Ok((conversation, false));
    }
    let agent = known_agent(state, caller, properties.agent.as_deref())?;
    model_choice::checked(state, &agent, chosen.map(str::to_owned))?;
    let model = properties.model.filter(|model| !model.is_empty());
    let new = NewConversation {
        name,
        access: caller.access.clone(),
        model: model_choice::checked(state, &agent, model)?,
        agent,
        title: properties.title,
        metadata: properties.metadata.unwrap_or_default(),
    };
    let conversation = state
        .ports
        .conversations
        .create_conversation(new)
        .await?
        .ok_or_else(|| {
            Problem::new(
                Code::ConversationIdTaken,
                "Choose a new id, or leave the id out and let the gateway make an id.",
            )
        })?;
    state.lists.changed(&caller.access);
    Ok((conversation, true))
}

/// Returns a message's conversation, and creates the conversation if missing. An id of a conversation hidden from the
/// caller gives `conversation_not_found`, as at every endpoint.
pub(super) async fn for_message(
    state: &GatewayState,
    caller: &Caller,
    id: Option<String>,
    new: NewProperties,
    chosen: Option<&str>,
) -> Result<Conversation, Problem> {
    let named = id.clone().unwrap_or_default();
    let found = find_or_create(state, caller, id, new, chosen).await;
    found
        .map(|(conversation, _)| conversation)
        .map_err(|problem| match problem.code() {
            Code::ConversationIdTaken => Problem::conversation_not_found(&named),
            _ => problem,
        })
}

problems!(ShowRefusals: InvalidId, ConversationNotFound);

/// A conversation with its current activity, and with the usage and cost of its LLM calls.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationDetail)]
pub(super) struct ConversationDetailBody {
    #[serde(flatten)]
    listed: ListedConversationBody,
    /// The metadata of the conversation.
    #[schema(value_type = MetadataMap)]
    metadata: Metadata,
    /// Usage of every LLM call with a stored answer, also of sub-agents and of the running turn.
    usage: UsageBody,
    /// Cost of the LLM calls, in USD; null when no model of the calls has a price.
    #[schema(required = true, example = "0.0421")]
    cost_usd: Option<String>,
    /// LLM calls without a stored answer that the provider probably billed; not included in `usage`.
    cut_calls: u32,
    /// Maximum tokens used by the cut calls.
    cut_tokens: u32,
    /// Maximum cost of the cut calls, in USD; not included in `cost_usd`.
    #[schema(example = "0.04")]
    cut_cost_usd: String,
}

impl From<ShownConversation> for ConversationDetailBody {
    fn from(shown: ShownConversation) -> Self {
        Self {
            listed: shown.listed.into(),
            metadata: shown.metadata,
            usage: shown.spent.usage.into(),
            cost_usd: shown.spent.nano_usd.map(money::usd),
            cut_calls: shown.spent.cut.calls,
            cut_tokens: shown.spent.cut.tokens,
            cut_cost_usd: money::usd(shown.spent.cut.nano_usd),
        }
    }
}

/// Shows a conversation, with its current activity and its total usage and cost.
#[utoipa::path(
    get, path = "/conversations/{id}", tag = "conversations", operation_id = "show_conversation",
    params(ConversationId), responses((status = 200, body = ConversationDetailBody, description = "The conversation"), ShowRefusals)
)]
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
) -> Result<Json<ConversationDetailBody>, Problem> {
    let conversations = &state.ports.conversations;
    let shown = conversations
        .shown_conversation(&caller.access, name.as_str())
        .await?;
    shown
        .map(|shown| Json(shown.into()))
        .ok_or_else(|| Problem::conversation_not_found(name.as_str()))
}

/// Changes of a conversation. A missing field changes nothing.
#[derive(Deserialize, ToSchema)]
#[schema(as = ConversationChange)]
pub(super) struct ChangeBody {
    /// The new title, at most 512 bytes. The beginning of the next message replaces an empty title.
    #[schema(max_length = 512, pattern = "^[^\\u0000]*$", example = "Products")]
    title: Option<String>,
    /// The model of new messages, `provider/model`, among the models of the agent. The empty text chooses the agent's own
    /// model. Messages that wait already keep their model.
    #[schema(example = "openai/gpt-5-mini")]
    model: Option<String>,
    /// The new metadata, in place of the whole earlier metadata.
    #[schema(value_type = Option<MetadataMap>)]
    metadata: Option<Metadata>,
}

problems!(ChangeRefusals: InvalidBody, InvalidId, UnknownModel, ConversationNotFound, BodyTooLarge);

/// Changes the title, the model or the metadata of a conversation.
///
/// The conversation keeps its position in the list.
#[utoipa::path(
    patch, path = "/conversations/{id}", tag = "conversations", operation_id = "change_conversation",
    params(ConversationId), request_body = ChangeBody,
    responses((status = 200, body = ConversationBody, description = "The changed conversation"), ChangeRefusals)
)]
pub(super) async fn change(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
    JsonBody(body): JsonBody<ChangeBody>,
) -> Result<Json<ConversationBody>, Problem> {
    check_title(&state, body.title.as_deref().unwrap_or_default())?;
    let conversation = state.conversation(&caller, &name).await?;
    let named = body.model.clone().filter(|model| !model.is_empty());
    model_choice::checked(&state, &conversation.agent, named)?;
    let change = ConversationChange {
        title: body.title,
        model: body.model,
        metadata: body.metadata.map(metadata::checked).transpose()?,
    };
    let changed = state
        .ports
        .conversations
        .change_conversation(&caller.access, &conversation.id, &change)
        .await?;
    state.lists.changed(&caller.access);
    changed
        .map(|conversation| Json(conversation.into()))
        .ok_or_else(|| Problem::conversation_not_found(name.as_str()))
}

problems!(DeleteRefusals: InvalidId, ConversationNotFound, TemporalUnavailable);

/// Deletes a conversation.
///
/// Terminates the running turn at once, without a last event. Removes the conversation, its data, and its workflow
/// histories in Temporal.
/// A deleted conversation cannot be restored.
#[utoipa::path(
    delete, path = "/conversations/{id}", tag = "conversations", operation_id = "delete_conversation",
    params(ConversationId), responses((status = 204, description = "Deleted"), DeleteRefusals)
)]
pub(super) async fn delete(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
) -> Result<StatusCode, Problem> {
    let conversation = state.conversation(&caller, &name).await?;
    let id = &conversation.id;
    // The turn ends first, because further LLM calls would cost money for a deleted conversation. A turn that begins in
    // the meantime fails, because its message or conversation is missing. The histories are deleted before the rows: a
    // repeated request then still finds the conversation.
    let turns = &state.ports.turns;
    let running = running_executions(&state, &caller, id).await?;
    let away = |detail: &'static str| move |error| Problem::from(error).with_detail(detail);
    let terminated = turns.terminate(id, DELETED).await;
    terminated.map_err(away("Nothing was deleted. Repeat the request in a moment."))?;
    stop_calls(&state, &running).await;
    let deleted = turns.delete_runs(id).await;
    deleted.map_err(away(
        "The conversation is still there. Repeat the request in a moment.",
    ))?;
    let target = (AuditTargetKind::Conversation, name.as_str());
    let entry = state
        .audit
        .entry(&caller, AuditAction::ConversationDeleted, target)
        .with("owner", conversation.owner_id.clone())
        .with("last_sequence", conversation.last_sequence);
    if !state
        .ports
        .conversations
        .delete_conversation(&caller.access, id, Some(&entry))
        .await?
    {
        return Err(Problem::conversation_not_found(name.as_str()));
    }
    state.lists.changed(&caller.access);
    state.end_streams(&conversation).await;
    // `everturn retention` removes the remaining objects.
    if let Err(error) = state.ports.blobs.remove_objects().await {
        tracing::warn!(%error, "objects of a deleted conversation are not removed yet");
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the ids of the running agent executions of the conversation's turn, at most [`MAX_STOPPED`].
async fn running_executions(
    state: &GatewayState,
    caller: &Caller,
    conversation_id: &str,
) -> Result<Vec<String>, Problem> {
    let ports = &state.ports;
    let head = ports
        .events
        .conversation_head(&caller.access, conversation_id)
        .await?;
    let Some(turn) = head.and_then(|head| head.current_message_id) else {
        return Ok(Vec::new());
    };
    let executions = ports.executions.agent_executions(
        &caller.access,
        conversation_id,
        Some(&turn),
        None,
        MAX_STOPPED,
    );
    let executions = executions.await?.into_iter();
    let running = executions.filter(|it| it.status == AgentExecutionStatus::Running);
    Ok(running.map(|it| it.id).collect())
}

/// Tells the workers that the turn of these agent executions is over. A call without the news learns of the end with its
/// next heartbeat.
async fn stop_calls(state: &GatewayState, agent_executions: &[String]) {
    for id in agent_executions {
        if let Err(error) = state.ports.cancels.announce_cancel(id).await {
            tracing::debug!(%error, "the calls of a deleted conversation stop with their next heartbeat");
            return;
        }
    }
}
