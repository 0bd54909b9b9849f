//! Creating, listing and showing conversations.

use axum::{Json, extract::State, http::StatusCode};
use chrono::{DateTime, SecondsFormat, Utc};
use everturn_store::{Conversation, ListPlace, NewConversation};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::{
    extract::{Body, Caller, ConversationId, Params, checked_id},
    openapi::{Id, Sequence, problems},
    problem::{Code, Problem},
    state::GatewayState,
};

/// Conversations of a page when the request does not say, and at the most.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

/// A conversation to be.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewConversation)]
pub(super) struct Create {
    /// Left out: a UUID.
    #[schema(value_type = Option<Id>)]
    id: Option<String>,
    /// At most 512 bytes. While it is empty, the beginning of the first message takes its place.
    #[schema(max_length = 512, pattern = "^[^\\u0000]*$", example = "Sums")]
    title: Option<String>,
    /// A name of the gateway's configuration.
    #[schema(example = "default")]
    agent: Option<String>,
}

/// A conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = Conversation)]
pub(super) struct Shown {
    #[schema(value_type = Id)]
    id: String,
    agent: String,
    title: String,
    /// User messages that turns have taken, and the agent's answers.
    message_count: u32,
    /// The number of the last event, 0 before the first.
    #[schema(value_type = Sequence)]
    last_sequence: u32,
    #[schema(format = DateTime)]
    created_at: String,
    /// The time of the last event.
    #[schema(format = DateTime)]
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

problems!(CreateRefusals: InvalidBody, InvalidId, UnknownAgent, ConversationIdTaken, BodyTooLarge);

/// Creates a conversation.
///
/// Creating the same `id` again is safe: the answer is the stored conversation.
#[utoipa::path(
    post, path = "/conversations", tag = "conversations", operation_id = "create_conversation", request_body = Create,
    responses(
        (status = 201, body = Shown, description = "Created"),
        (status = 200, body = Shown, description = "The caller's conversation had this id already"),
        CreateRefusals
    )
)]
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

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Conversations of the page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_before` of the page before. Do not take it apart: its form may change.
    #[param(example = "2026-11-21T12:21:46.160000000Z~talk-1")]
    before: Option<String>,
}

/// A page of conversations.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationPage)]
pub(super) struct List {
    conversations: Vec<Shown>,
    /// `before` of the next page; null on the last one.
    #[schema(required = true)]
    next_before: Option<String>,
}

problems!(ListRefusals: InvalidParameter);

/// Lists the caller's conversations, the last updated first.
#[utoipa::path(
    get, path = "/conversations", tag = "conversations", operation_id = "list_conversations", params(ListQuery),
    responses((status = 200, body = List, description = "A page"), ListRefusals)
)]
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

problems!(ShowRefusals: InvalidId, ConversationNotFound);

/// Shows a conversation.
#[utoipa::path(
    get, path = "/conversations/{id}", tag = "conversations", operation_id = "show_conversation",
    params(ConversationId), responses((status = 200, body = Shown, description = "The conversation"), ShowRefusals)
)]
pub(super) async fn show(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<Json<Shown>, Problem> {
    Ok(Json(state.conversation(&caller, &id).await?.into()))
}
