//! Listing and searching conversations, and the stream of the list.

use axum::{Json, extract::State, response::Response};
use everturn_proto::words::WaitingFor;
use everturn_store::{ListCursor, ListFilter, ListQuery};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema, openapi::schema::Object};

use super::wire::{checked_limit, parse_page_cursor};
use crate::{
    http::{
        event_stream,
        extract::{Caller, Params},
        openapi::{AnyListFrame, problems},
        problem::{Code, Problem},
        state::GatewayState,
    },
    listed::{ListedConversationBody, list_cursor},
    schema::one_of,
};

/// Conversations of a page: the default and the maximum.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Maximum number of conversations of the page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_before` of the page before. Treat the value as opaque, because its format may change.
    #[param(example = "2026-11-21T12:21:46.160000000Z~talk-1")]
    before: Option<String>,
    /// Only conversations whose title contains the text, in upper or lower case. At most 512 bytes.
    #[param(max_length = 512, example = "sums")]
    search: Option<String>,
    /// Only conversations of this agent.
    #[param(example = "default")]
    agent: Option<String>,
    /// Only conversations with a tool call that waits for the party: `approval` for a person, `client_tool` for a client.
    #[param(schema_with = parties)]
    waiting_for: Option<String>,
}

fn parties() -> Object {
    one_of(&[
        WaitingFor::Approval.as_str(),
        WaitingFor::ClientTool.as_str(),
    ])
}

/// A page of conversations.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationPage)]
pub(super) struct ConversationPageBody {
    conversations: Vec<ListedConversationBody>,
    /// `before` of the next page; null on the last page.
    #[schema(required = true)]
    next_before: Option<String>,
}

problems!(ListRefusals: InvalidParameter);

/// Lists or searches the caller's conversations, the last updated first.
///
/// Every row has the conversation's current activity, read from the store.
/// With `search`, `agent` or `waiting_for`, a page may have fewer rows than `limit`, even zero, and still have a next page.
#[utoipa::path(
    get, path = "/conversations", tag = "conversations", operation_id = "list_conversations", params(ListParams),
    responses((status = 200, body = ConversationPageBody, description = "A page"), ListRefusals)
)]
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<ConversationPageBody>, Problem> {
    let limit = checked_limit(params.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let longest = state.config.max_title_bytes;
    if params
        .search
        .as_ref()
        .is_some_and(|search| search.len() > longest)
    {
        return Err(Problem::new(
            Code::InvalidParameter,
            format!("`search` may have at most {longest} bytes, like titles."),
        ));
    }
    let before = match params.before.as_deref() {
        Some(token) => Some(cursor(&caller, token)?),
        None => None,
    };
    let party = params.waiting_for.as_deref().map(party).transpose()?;
    let query = ListQuery {
        before,
        limit,
        filter: ListFilter::new(params.search.as_deref(), params.agent).waiting_for(party),
    };
    let page = state
        .ports
        .conversations
        .list_conversations(&caller.access, &query)
        .await?;
    let next_before = page.next.as_ref().map(list_cursor);
    Ok(Json(ConversationPageBody {
        conversations: page
            .conversations
            .into_iter()
            .map(ListedConversationBody::from)
            .collect(),
        next_before,
    }))
}

/// Parses the party that a conversation waits for.
fn party(word: &str) -> Result<WaitingFor, Problem> {
    match WaitingFor::from(word) {
        WaitingFor::Unknown(_) => Err(Problem::new(
            Code::InvalidParameter,
            "`waiting_for` must be `approval` or `client_tool`.",
        )),
        party => Ok(party),
    }
}

/// Parses a cursor made by [`list_cursor`]. The conversation's id is computed from the name in the cursor.
fn cursor(caller: &Caller, token: &str) -> Result<ListCursor, Problem> {
    let detail = "`before` must be the `next_before` of the previous page.";
    let (active_at, name) = parse_page_cursor(token, detail)?;
    let id = caller.access.id_of(&name);
    Ok(ListCursor { active_at, id })
}

problems!(StreamRefusals: TooManyStreamsOfOwner, TooManyStreamsOfTenant, TooManyStreams, ShuttingDown);

/// Streams the list of the caller's conversations and every change of the list.
///
/// The first frame has the newest 100 conversations, so a reconnecting client needs no cursor. The next frames have new
/// and changed conversations, and the ids of removed conversations. The stream does not end by itself.
#[utoipa::path(
    get, path = "/conversation-list/stream", tag = "conversations", operation_id = "stream_conversation_list",
    responses(
        (status = 200, description = "The frames", content_type = "text/event-stream", item_schema = AnyListFrame),
        StreamRefusals
    )
)]
pub(super) async fn stream(
    State(state): State<GatewayState>,
    caller: Caller,
) -> Result<Response, Problem> {
    let feed = state.list_feed(&caller).await?;
    Ok(event_stream::response(feed.into_chunks()))
}
