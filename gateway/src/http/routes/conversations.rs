//! Creating, showing, renaming and deleting conversations.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use everturn_store::{Conversation, NewConversation};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::idempotency::idempotency_key;
use crate::{
    http::{
        audit::WithDetails,
        extract::{Caller, ConversationId, JsonBody, Name},
        openapi::{IdempotencyKey, problems},
        problem::{Code, Problem},
        state::GatewayState,
    },
    listed::ConversationBody,
    schema::Id,
};

/// Namespace of ids made from an idempotency key. Never change it: repeated requests would create anew.
const KEY_NAMESPACE: Uuid = Uuid::from_u128(0x8f5a_1d27_b0c4_5e93_a6d8_2c71_f94e_3b06);

/// The reason why a workflow was ended, as the engine shows it.
const DELETED: &str = "the conversation was deleted";

/// A conversation to be.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewConversation)]
pub(super) struct NewConversationBody {
    /// The id of the conversation. When it is left out, it is a UUID.
    #[schema(value_type = Option<Id>)]
    id: Option<String>,
    /// The title, at most 512 bytes. While it is empty, the beginning of the first message takes its place.
    #[schema(max_length = 512, pattern = "^[^\\u0000]*$", example = "Sums")]
    title: Option<String>,
    /// A name of the gateway's configuration.
    #[schema(example = "default")]
    agent: Option<String>,
}

problems!(CreateRefusals: InvalidBody, InvalidId, UnknownAgent, ConversationIdTaken, BodyTooLarge);

/// Creates a conversation.
///
/// Creating the same `id` again is safe: the answer is the stored conversation. So is repeating the `Idempotency-Key`.
#[utoipa::path(
    post, path = "/conversations", tag = "conversations", operation_id = "create_conversation",
    params(IdempotencyKey), request_body = NewConversationBody,
    responses(
        (status = 201, body = ConversationBody, description = "Created"),
        (status = 200, body = ConversationBody, description = "The caller's conversation had this id or key already"),
        CreateRefusals
    )
)]
pub(super) async fn create(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<NewConversationBody>,
) -> Result<(StatusCode, Json<ConversationBody>), Problem> {
    let title = body.title.filter(|title| !title.is_empty());
    check_title(&state, title.as_deref().unwrap_or_default())?;
    let id = id_or_key(&caller, body.id, &headers)?;
    let (conversation, is_new) = find_or_create(&state, &caller, id, title, body.agent).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(conversation.into())))
}

/// Returns the id that the client chose, or one that is made from its idempotency key. The latter is the same at every
/// gateway whenever the same owner sends the same key, and nobody else can get it.
pub(super) fn id_or_key(
    caller: &Caller,
    id: Option<String>,
    headers: &HeaderMap,
) -> Result<Option<String>, Problem> {
    let key = idempotency_key(headers)?;
    if id.is_some() {
        return Ok(id);
    }
    let Some(key) = key else { return Ok(None) };
    let owner_id = caller.access.owner_id.as_deref().unwrap_or_default();
    // Parts are ended by a NUL, so that they cannot run together.
    let name = format!("{}\0{owner_id}\0{key}\0", caller.access.tenant_id);
    Ok(Some(
        Uuid::new_v5(&KEY_NAMESPACE, name.as_bytes()).to_string(),
    ))
}

pub(super) fn check_title(state: &GatewayState, title: &str) -> Result<(), Problem> {
    let limit = state.config.max_title_bytes;
    if title.len() <= limit && !title.contains('\0') {
        return Ok(());
    }
    Err(Problem::new(
        Code::InvalidBody,
        format!("A title has at most {limit} bytes and no NUL."),
    ))
}

/// Returns the caller's conversation with this id, and creates it when there is none; true when it was created now.
async fn find_or_create(
    state: &GatewayState,
    caller: &Caller,
    id: Option<String>,
    title: Option<String>,
    agent: Option<String>,
) -> Result<(Conversation, bool), Problem> {
    let is_named = id.is_some();
    let name = match id {
        Some(id) => Name::checked(id)?.into_text(),
        // They are in the order of time, so that rows made together are stored together.
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
    let agent = agent.unwrap_or_else(|| state.config.default_agent.clone());
    let agents = state.config.agents_of(&caller.access.tenant_id);
    if !agents.contains(&agent.as_str()) {
        let detail = format!("Agents here are: {}.", agents.join(", "));
        return Err(Problem::new(Code::UnknownAgent, detail));
    }
    let new = NewConversation {
        name,
        access: caller.access.clone(),
        agent,
        title,
    };
    let conversation = state
        .ports
        .conversations
        .create_conversation(new)
        .await?
        .ok_or_else(|| {
            Problem::new(
                Code::ConversationIdTaken,
                "Choose another id, or leave it out to have one made.",
            )
        })?;
    state.lists.changed(&caller.access);
    Ok((conversation, true))
}

/// Returns the conversation that a message goes to, and creates it when there is none. One that the caller may not see does
/// not exist for them, here as everywhere.
pub(super) async fn for_message(
    state: &GatewayState,
    caller: &Caller,
    id: Option<String>,
    title: Option<String>,
    agent: Option<String>,
) -> Result<Conversation, Problem> {
    let named = id.clone().unwrap_or_default();
    let found = find_or_create(state, caller, id, title, agent).await;
    found
        .map(|(conversation, _)| conversation)
        .map_err(|problem| match problem.code() {
            Code::ConversationIdTaken => Problem::conversation_not_found(&named),
            _ => problem,
        })
}

problems!(ShowRefusals: InvalidId, ConversationNotFound);

/// Shows a conversation.
#[utoipa::path(
    get, path = "/conversations/{id}", tag = "conversations", operation_id = "show_conversation",
    params(ConversationId), responses((status = 200, body = ConversationBody, description = "The conversation"), ShowRefusals)
)]
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
) -> Result<Json<ConversationBody>, Problem> {
    Ok(Json(state.conversation(&caller, &name).await?.into()))
}

/// What to change.
#[derive(Deserialize, ToSchema)]
#[schema(as = Rename)]
pub(super) struct RenameBody {
    /// The new title, at most 512 bytes. An empty one is replaced by the beginning of the next message.
    #[schema(max_length = 512, pattern = "^[^\\u0000]*$", example = "Products")]
    title: String,
}

problems!(RenameRefusals: InvalidBody, InvalidId, ConversationNotFound, BodyTooLarge);

/// Renames a conversation.
///
/// It keeps its place in the list.
#[utoipa::path(
    patch, path = "/conversations/{id}", tag = "conversations", operation_id = "rename_conversation",
    params(ConversationId), request_body = RenameBody,
    responses((status = 200, body = ConversationBody, description = "The conversation as it is now"), RenameRefusals)
)]
pub(super) async fn rename(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
    JsonBody(body): JsonBody<RenameBody>,
) -> Result<Json<ConversationBody>, Problem> {
    check_title(&state, &body.title)?;
    let title = Some(body.title.as_str()).filter(|title| !title.is_empty());
    let conversation = state.conversation(&caller, &name).await?;
    let renamed = state
        .ports
        .conversations
        .rename_conversation(&caller.access, &conversation.id, title)
        .await?;
    state.lists.changed(&caller.access);
    renamed
        .map(|conversation| Json(conversation.into()))
        .ok_or_else(|| Problem::conversation_not_found(name.as_str()))
}

problems!(DeleteRefusals: InvalidId, ConversationNotFound, TemporalUnavailable);

/// Deletes a conversation.
///
/// Ends the turn that runs, at once and without a last event, and removes the conversation with all that belongs to it,
/// also the histories that the workflow engine keeps of it.
/// Nothing can bring it back.
#[utoipa::path(
    delete, path = "/conversations/{id}", tag = "conversations", operation_id = "delete_conversation",
    params(ConversationId), responses((status = 204, description = "Nothing of it is left"), DeleteRefusals)
)]
pub(super) async fn delete(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
) -> Result<StatusCode, Problem> {
    let conversation = state.conversation(&caller, &name).await?;
    let id = &conversation.id;
    // The turn is ended first, so that no model is paid to write for nobody. A turn that begins in between finds no
    // message or no conversation, and fails. Its histories go before its rows: who repeats the request still finds it.
    let turns = &state.ports.turns;
    let away = |detail: &'static str| move |error| Problem::from(error).with_detail(detail);
    let terminated = turns.terminate(id, DELETED).await;
    terminated.map_err(away("Nothing was deleted. Repeat the request in a moment."))?;
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
    // `everturn retention` removes what this leaves.
    if let Err(error) = state.ports.blobs.remove_objects().await {
        tracing::warn!(%error, "objects of a deleted conversation are not removed yet");
    }
    Ok(StatusCode::NO_CONTENT)
}
