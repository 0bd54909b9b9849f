//! Creating, listing and showing conversations.

use axum::{Json, extract::State, http::StatusCode};
use chrono::{DateTime, SecondsFormat, Utc};
use everturn_store::{Conversation, ListPlace, NewConversation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    extract::{Body, Caller, ConversationId, Params, checked_id},
    problem::{Code, Problem},
    state::GatewayState,
};

/// Conversations of a page when the request does not say, and at the most.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

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
    Body(body): Body<Create>,
) -> Result<(StatusCode, Json<Shown>), Problem> {
    let title = body.title.unwrap_or_default();
    if title.len() > state.config.max_title_bytes || title.contains('\0') {
        let detail = format!("A title has at most {} bytes and no NUL.", state.config.max_title_bytes);
        return Err(Problem::new(Code::InvalidBody, detail));
    }
    let (conversation, is_new) = find_or_create(&state, &caller, body.id, title, body.agent).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(conversation.into())))
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
pub(super) struct ListQuery {
    limit: Option<u32>,
    before: Option<String>,
}

#[derive(Serialize)]
pub(super) struct List {
    conversations: Vec<Shown>,
    next_before: Option<String>,
}

/// `GET /conversations`: the caller's, the last updated first.
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(query): Params<ListQuery>,
) -> Result<Json<List>, Problem> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::new(Code::InvalidParameter, format!("`limit` is 1 to {MAX_LIMIT}.")));
    }
    let before = query.before.as_deref().map(parse_place).transpose()?;
    // One more than asked for tells whether there is another page.
    let mut page = state.ports.conversations.list_conversations(&caller.access, before, limit + 1).await?;
    let has_more = page.len() > limit as usize;
    page.truncate(limit as usize);
    let next_before = page.last().filter(|_| has_more).map(format_place);
    Ok(Json(List { conversations: page.into_iter().map(Shown::from).collect(), next_before }))
}

/// A place as clients carry it: they need not understand it.
fn format_place(conversation: &Conversation) -> String {
    format!("{}~{}", conversation.updated_at.to_rfc3339_opts(SecondsFormat::Nanos, true), conversation.id)
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
