//! Creating, listing, showing, renaming and deleting conversations.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use chrono::{DateTime, SecondsFormat, Utc};
use everturn_store::{Conversation, ListFilter, ListPlace, ListQuery, NewConversation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::messages::idempotency_key;
use crate::{
    extract::{Body, Caller, ConversationId, Params, checked_id},
    problem::{Code, Problem},
    state::GatewayState,
};

/// Conversations of a page when the request does not say, and at the most.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

/// Namespace of ids made from an idempotency key. Never change it: repeated requests would create anew.
const KEY_NAMESPACE: Uuid = Uuid::from_u128(0x8f5a_1d27_b0c4_5e93_a6d8_2c71_f94e_3b06);

/// Why a workflow was ended, as the engine shows it.
const DELETED: &str = "the conversation was deleted";

#[derive(Deserialize)]
pub(super) struct Create {
    id: Option<String>,
    title: Option<String>,
    agent: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Shown {
    id: String,
    agent: String,
    title: String,
    message_count: u32,
    last_sequence: u32,
    created_at: String,
    updated_at: String,
}

impl From<Conversation> for Shown {
    fn from(conversation: Conversation) -> Self {
        let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
        Self {
            created_at: time(conversation.created_at),
            updated_at: time(conversation.updated_at),
            id: conversation.id,
            agent: conversation.agent,
            title: conversation.title,
            message_count: conversation.message_count,
            last_sequence: conversation.last_sequence,
        }
    }
}

/// `POST /conversations`: 201, or 200 when the caller's conversation has this id already.
pub(super) async fn create(
    State(state): State<GatewayState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<Create>,
) -> Result<(StatusCode, Json<Shown>), Problem> {
    let title = body.title.unwrap_or_default();
    check_title(&state, &title)?;
    let id = id_or_key(&caller, body.id, &headers)?;
    let (conversation, is_new) = find_or_create(&state, &caller, id, title, body.agent).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(conversation.into())))
}

/// The id that the client chose, else one that follows from its idempotency key: the same at every gateway whenever
/// the same owner sends the same key, and nobody else's.
pub(super) fn id_or_key(caller: &Caller, id: Option<String>, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    if id.is_some() {
        return Ok(id);
    }
    let Some(key) = idempotency_key(headers)? else { return Ok(None) };
    let owner_id = caller.access.owner_id.as_deref().unwrap_or_default();
    // Parts are ended by a NUL, so that they cannot run together.
    let name = format!("{}\0{owner_id}\0{key}\0", caller.access.tenant_id);
    Ok(Some(Uuid::new_v5(&KEY_NAMESPACE, name.as_bytes()).to_string()))
}

fn check_title(state: &GatewayState, title: &str) -> Result<(), Problem> {
    let limit = state.config.max_title_bytes;
    if title.len() <= limit && !title.contains('\0') {
        return Ok(());
    }
    Err(Problem::new(Code::InvalidBody, format!("A title has at most {limit} bytes and no NUL.")))
}

/// The caller's conversation with this id, made when there is none; true when it was made now.
pub(super) async fn find_or_create(
    state: &GatewayState,
    caller: &Caller,
    id: Option<String>,
    title: String,
    agent: Option<String>,
) -> Result<(Conversation, bool), Problem> {
    let is_named = id.is_some();
    let id = match id {
        Some(id) => checked_id("conversation id", id)?,
        // Time-ordered, so that rows made together lie together.
        None => Uuid::now_v7().to_string(),
    };
    if is_named && let Some(conversation) = state.ports.conversations.conversation(&caller.access, &id).await? {
        return Ok((conversation, false));
    }
    let agent = agent.unwrap_or_else(|| state.config.default_agent.clone());
    if !state.config.agents.contains(&agent) {
        let detail = format!("Agents here are: {}.", state.config.agents.join(", "));
        return Err(Problem::new(Code::UnknownAgent, detail));
    }
    let new = NewConversation { id, access: caller.access.clone(), agent, title };
    let conversation = state.ports.conversations.create_conversation(new).await?.ok_or_else(|| {
        Problem::new(Code::ConversationIdTaken, "Choose another id, or leave it out to have one made.")
    })?;
    Ok((conversation, true))
}

#[derive(Deserialize)]
pub(super) struct ListParams {
    limit: Option<u32>,
    before: Option<String>,
    search: Option<String>,
    agent: Option<String>,
}

#[derive(Serialize)]
pub(super) struct List {
    conversations: Vec<Shown>,
    next_before: Option<String>,
}

/// `GET /conversations`: the caller's, or those of them that are searched for, the last updated first.
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<List>, Problem> {
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::new(Code::InvalidParameter, format!("`limit` is 1 to {MAX_LIMIT}.")));
    }
    let longest = state.config.max_title_bytes;
    if params.search.as_ref().is_some_and(|search| search.len() > longest) {
        return Err(Problem::new(
            Code::InvalidParameter,
            format!("`search` has at most {longest} bytes, as titles do."),
        ));
    }
    let before = params.before.as_deref().map(parse_place).transpose()?;
    let query = ListQuery { before, limit, filter: ListFilter::new(params.search.as_deref(), params.agent) };
    let page = state.ports.conversations.list_conversations(&caller.access, &query).await?;
    let next_before = page.next.as_ref().map(format_place);
    Ok(Json(List { conversations: page.conversations.into_iter().map(Shown::from).collect(), next_before }))
}

/// A place as clients carry it: they need not understand it.
fn format_place(place: &ListPlace) -> String {
    format!("{}~{}", place.updated_at.to_rfc3339_opts(SecondsFormat::Nanos, true), place.id)
}

fn parse_place(text: &str) -> Result<ListPlace, Problem> {
    let place = text.split_once('~').and_then(|(time, id)| {
        let updated_at = DateTime::parse_from_rfc3339(time).ok()?.to_utc();
        Some(ListPlace { updated_at, id: id.to_owned() })
    });
    place.ok_or_else(|| Problem::new(Code::InvalidParameter, "`before` is the `next_before` of the page before."))
}

/// `GET /conversations/{id}`.
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<Json<Shown>, Problem> {
    Ok(Json(state.conversation(&caller, &id).await?.into()))
}

#[derive(Deserialize)]
pub(super) struct Rename {
    title: String,
}

/// `PATCH /conversations/{id}`: 200 with the conversation as it is now.
pub(super) async fn rename(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
    Body(body): Body<Rename>,
) -> Result<Json<Shown>, Problem> {
    check_title(&state, &body.title)?;
    let renamed = state.ports.conversations.rename_conversation(&caller.access, &id, &body.title).await?;
    renamed.map(|conversation| Json(conversation.into())).ok_or_else(|| Problem::conversation_not_found(&id))
}

/// `DELETE /conversations/{id}`: 204 once its turn is ended and nothing of it is left.
pub(super) async fn delete(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<StatusCode, Problem> {
    state.conversation(&caller, &id).await?;
    // First the turn, so that no model is paid to write for nobody. A turn that begins in between finds no message, or
    // nothing to save to, and fails.
    let terminated = state.ports.turns.terminate(&id, DELETED).await;
    terminated
        .map_err(|error| Problem::from(error).with_detail("Nothing was deleted. Repeat the request in a moment."))?;
    if !state.ports.conversations.delete_conversation(&caller.access, &id).await? {
        return Err(Problem::conversation_not_found(&id));
    }
    Ok(StatusCode::NO_CONTENT)
}
