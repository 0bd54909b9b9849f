//! Listing and searching conversations.

use axum::{Json, extract::State};
use everturn_proto::words::ConversationState;
use everturn_store::{ListFilter, ListPlace, ListQuery, ListedConversation};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema, openapi::schema::Object};

use super::{
    conversations::ConversationBody,
    wire::{checked_limit, page_token, parse_page_token},
};
use crate::{
    http::{
        extract::{Caller, Params},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::one_of,
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

/// A conversation in a list, with what goes on in it.
#[derive(Serialize, ToSchema)]
#[schema(as = ListedConversation)]
pub(crate) struct ListedConversationBody {
    #[serde(flatten)]
    conversation: ConversationBody,
    /// Skip words that you do not know; there may be more.
    #[schema(schema_with = states)]
    state: String,
    /// Calls that a person must approve.
    waiting_approvals: u32,
    /// Calls that the client is to run.
    waiting_client_tools: u32,
}

fn states() -> Object {
    let states: Vec<_> = ConversationState::ALL
        .iter()
        .map(ConversationState::as_str)
        .collect();
    one_of(&states)
}

impl From<ListedConversation> for ListedConversationBody {
    fn from(listed: ListedConversation) -> Self {
        Self {
            state: listed.activity.state().into(),
            waiting_approvals: listed.activity.waiting_approvals,
            waiting_client_tools: listed.activity.waiting_client_tools,
            conversation: listed.conversation.into(),
        }
    }
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
    let before = params.before.as_deref().map(parse_before).transpose()?;
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
    let next = page.next.as_ref();
    let next_before = next.map(|place| page_token(place.updated_at, &place.id));
    Ok(Json(ConversationPageBody {
        conversations: page
            .conversations
            .into_iter()
            .map(ListedConversationBody::from)
            .collect(),
        next_before,
    }))
}

fn parse_before(token: &str) -> Result<ListPlace, Problem> {
    let detail = "`before` is the `next_before` of the page before.";
    let (updated_at, id) = parse_page_token(token, detail)?;
    Ok(ListPlace { updated_at, id })
}
