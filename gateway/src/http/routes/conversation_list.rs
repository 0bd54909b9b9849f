//! Listing and searching conversations, and the stream of the list.

use axum::{Json, extract::State, response::Response};
use everturn_store::{ListFilter, ListPlace, ListQuery};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::wire::{checked_limit, parse_page_token};
use crate::{
    http::{
        event_stream,
        extract::{Caller, Params},
        openapi::{AnyListFrame, problems},
        problem::{Code, Problem},
        state::GatewayState,
    },
    listed::{ListedConversationBody, place_token},
};

/// Conversations of a page when the request does not say, and at the most.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Conversations of the page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_before` of the page before. Do not take it apart: its form may change.
    #[param(example = "2026-11-21T12:21:46.160000000Z~talk-1")]
    before: Option<String>,
    /// A text that titles have in them, in upper or lower case. At most 512 bytes.
    #[param(max_length = 512, example = "sums")]
    search: Option<String>,
    /// Only conversations of this agent.
    #[param(example = "default")]
    agent: Option<String>,
}

/// A page of conversations.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationPage)]
pub(super) struct ConversationPageBody {
    conversations: Vec<ListedConversationBody>,
    /// `before` of the next page; null on the last one.
    #[schema(required = true)]
    next_before: Option<String>,
}

problems!(ListRefusals: InvalidParameter);

/// Lists the caller's conversations, or those of them that are searched for, the last updated first.
///
/// Each says what goes on in it, as the store has it at this moment.
/// With `search` or `agent`, a page may hold fewer rows than `limit`, or none, and still have a next one.
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
            format!("`search` has at most {longest} bytes, as titles do."),
        ));
    }
    let before = match params.before.as_deref() {
        Some(token) => Some(place(&caller, token)?),
        None => None,
    };
    let query = ListQuery {
        before,
        limit,
        filter: ListFilter::new(params.search.as_deref(), params.agent),
    };
    let page = state
        .ports
        .conversations
        .list_conversations(&caller.access, &query)
        .await?;
    let next_before = page.next.as_ref().map(place_token);
    Ok(Json(ConversationPageBody {
        conversations: page
            .conversations
            .into_iter()
            .map(ListedConversationBody::from)
            .collect(),
        next_before,
    }))
}

/// Reads a [`place_token`].
fn place(caller: &Caller, token: &str) -> Result<ListPlace, Problem> {
    let detail = "`before` is the `next_before` of the page before.";
    let (updated_at, name) = parse_page_token(token, detail)?;
    let id = caller.access.id_of(&name);
    Ok(ListPlace { updated_at, id })
}

problems!(StreamRefusals: TooManyStreamsOfOwner, TooManyStreamsOfTenant, TooManyStreams, ShuttingDown);

/// Streams the list of the caller's conversations, and each change of it.
///
/// The first frame has the newest 100 conversations, so whoever connects again needs no cursor. Then each conversation
/// comes that is new or shown otherwise than before, and the ids of those that are gone. The stream has no end of its own.
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
