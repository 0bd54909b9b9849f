//! Lists of tool calls that wait for a person's approval: of one conversation, and of all conversations of the caller.

use axum::{Json, extract::State};
use everturn_proto::{Json as RawJson, ids, turn::ToolCall, words::ApprovalBy};
use everturn_store::{InboxCall, InboxCursor, OutsideTool, PageLimit, Proposal};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema, openapi::schema::Object};

use super::{
    questions::QuestionBody,
    waiting_calls::{WaitingCallBody, waiting_calls},
    wire::{bytes_of, checked_limit, page_cursor, parse_page_cursor, time},
};
use crate::{
    http::{
        extract::{Caller, ConversationId, Params},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::one_of,
};

/// Calls of a page of the inbox: the default and the maximum.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;
/// The state of the calls in the inbox.
const WAITING: &str = "waiting";

/// Tool calls that wait for a person's approval.
#[derive(Serialize, ToSchema)]
#[schema(as = PendingApprovals)]
pub(super) struct PendingApprovalsBody {
    /// Pending tool calls, the oldest first.
    approvals: Vec<PendingApprovalBody>,
}

/// A tool call that waits for a person: for an approval before the tool runs, or for the answer to a question of the tool.
#[derive(Serialize, ToSchema)]
#[schema(as = PendingApproval)]
pub(super) struct PendingApprovalBody {
    #[serde(flatten)]
    call: WaitingCallBody,
    /// Hash to send with the answer. The hash binds the answer to the tool, input and definition.
    input_hash: String,
    /// `tool_input` as the store keeps it, character for character. Show people the text: a reader that parses `tool_input`
    /// may round long numbers.
    #[schema(example = "{\"amount\":9007199254740993}")]
    input_text: String,
    /// `other`: the approver must be a person who neither owns the conversation nor has sent a message of the turn. Absent
    /// when every person with the scope may approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[schema(example = "other")]
    approval_by: Option<String>,
    /// Inputs that one person proposes in place of the model's, the newest first. Another person may approve a proposal.
    /// Absent without a proposal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    proposals: Vec<ProposalBody>,
    /// Question of the running tool. Absent for a call that waits for an approval before it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    question: Option<QuestionBody>,
}

impl PendingApprovalBody {
    /// Returns the calls with the inputs that people propose for them.
    async fn of(
        state: &GatewayState,
        conversation_ids: impl IntoIterator<Item = String>,
        tools: Vec<OutsideTool>,
    ) -> Result<Vec<Self>, Problem> {
        let calls = conversation_ids.into_iter().zip(&tools);
        let with_others = calls.filter(|(_, tool)| needs_other_person(tool));
        let with_others: Vec<_> = with_others
            .map(|(id, tool)| (id, tool.record.call.execution_id.clone()))
            .collect();
        let proposals = state.ports.outside.proposals(&with_others).await?;
        let bodies = tools.into_iter().map(|tool| {
            let call = &tool.record.call;
            let own = |it: &&Proposal| it.execution_id == call.execution_id;
            let other_inputs = proposals
                .iter()
                .filter(own)
                .filter(|it| !is_input_of(call, &it.input));
            Self {
                input_hash: call.input_hash.clone(),
                input_text: call.input_text(),
                approval_by: needs_other_person(&tool).then(|| call.rule().by),
                proposals: other_inputs.map(|it| ProposalBody::of(call, it)).collect(),
                question: tool.record.open_question().map(QuestionBody::from),
                call: tool.into(),
            }
        });
        Ok(bodies.collect())
    }
}

impl ProposalBody {
    fn of(call: &ToolCall, proposal: &Proposal) -> Self {
        Self {
            input_text: proposal.input.as_str().to_owned(),
            input_hash: hash_of_proposal(call, &proposal.input),
            proposed_by: proposal.proposed_by.clone(),
            proposed_at: time(proposal.proposed_at),
        }
    }
}

/// Returns the hash that binds an answer to a proposed input.
pub(super) fn hash_of_proposal(call: &ToolCall, input: &RawJson) -> String {
    ids::approval_hash(&call.tool_name, input, &call.definition_hash)
}

/// True when an input is the call's own, in whatever notation.
fn is_input_of(call: &ToolCall, input: &RawJson) -> bool {
    let own = call.tool_input.as_ref();
    own.is_some_and(|own| own.is_same_value(input))
}

/// True for a call with the rule that another person than the asking person must approve.
pub(super) fn needs_other_person(tool: &OutsideTool) -> bool {
    tool.record.call.rule().by() != ApprovalBy::Anyone
}

problems!(ListRefusals: InvalidId, ConversationNotFound);

/// An input that a person proposes for a call that needs two other people.
#[derive(Serialize, ToSchema)]
#[schema(as = ProposedInput)]
pub(super) struct ProposalBody {
    /// The proposed input in canonical form, character for character as the tool would get the input.
    input_text: String,
    /// Hash to answer with: an approval with the hash approves the proposed input.
    input_hash: String,
    /// The person.
    proposed_by: String,
    proposed_at: String,
}

/// Lists the tool calls that wait for a person's approval, the oldest first.
#[utoipa::path(
    get, path = "/conversations/{id}/approvals", tag = "tools", operation_id = "list_approvals",
    params(ConversationId), responses((status = 200, body = PendingApprovalsBody, description = "The waiting calls"), ListRefusals)
)]
pub(super) async fn list(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<Json<PendingApprovalsBody>, Problem> {
    let waiting = waiting_calls(&state, &caller, &id, OutsideTool::needs_approval).await?;
    let conversation_id = caller.access.id_of(id.as_str());
    let waiting: Vec<_> = waiting.collect();
    let ids = std::iter::repeat_n(conversation_id, waiting.len());
    let approvals = PendingApprovalBody::of(&state, ids, waiting).await?;
    Ok(Json(PendingApprovalsBody { approvals }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct InboxParams {
    /// Only approvals in the state. The inbox has one state, `waiting`: an answered approval is in the event log of its
    /// conversation and in the audit trail.
    #[param(schema_with = states)]
    state: Option<String>,
    /// Maximum number of calls of the page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_after` of the page before. Treat the value as opaque, because its format may change.
    #[param(example = "2026-11-24T12:19:37.708000000Z~exec_4d1fecd68e27")]
    after: Option<String>,
}

fn states() -> Object {
    one_of(&[WAITING])
}

/// A page of the inbox of approvals.
#[derive(Serialize, ToSchema)]
#[schema(as = ApprovalInbox)]
pub(super) struct InboxBody {
    /// Waiting calls, the nearest deadline first.
    approvals: Vec<InboxCallBody>,
    /// `after` of the next page; null at the end.
    #[schema(required = true)]
    next_after: Option<String>,
}

/// A tool call of any conversation that waits for a person's approval.
#[derive(Serialize, ToSchema)]
#[schema(as = InboxApproval)]
pub(super) struct InboxCallBody {
    conversation_id: String,
    /// The agent that calls the tool.
    agent: String,
    #[serde(flatten)]
    approval: PendingApprovalBody,
}

problems!(InboxRefusals: InvalidParameter);

/// Lists the tool calls of all conversations that wait for an approval, the nearest deadline first.
///
/// Needs the scope `approve`, and no other scope. A credential with an owner lists the calls of the owner's conversations,
/// and the calls of the tenant that another person must approve. A credential without an owner lists every call of the
/// tenant. Calls past their deadline are left out.
#[utoipa::path(
    get, path = "/approvals", tag = "tools", operation_id = "list_waiting_approvals", params(InboxParams),
    responses((status = 200, body = InboxBody, description = "A page"), InboxRefusals)
)]
pub(super) async fn inbox(
    State(state): State<GatewayState>,
    caller: Caller,
    Params(params): Params<InboxParams>,
) -> Result<Json<InboxBody>, Problem> {
    if params.state.is_some_and(|state| state != WAITING) {
        return Err(Problem::new(
            Code::InvalidParameter,
            "`state` must be `waiting`.",
        ));
    }
    let limit = checked_limit(params.limit.unwrap_or(DEFAULT_LIMIT), MAX_LIMIT)?;
    let limit = PageLimit::rows(limit);
    let after = params.after.as_deref().map(cursor).transpose()?;
    let _room = state.room(&caller, bytes_of(limit)).await?;
    let outside = &state.ports.outside;
    let (calls, has_more) = outside
        .approval_inbox(&caller.access, after.as_ref(), limit)
        .await?;
    let next_after = calls.last().filter(|_| has_more).map(|last| {
        let InboxCursor {
            expires_at,
            execution_id,
        } = last.cursor();
        page_cursor(expires_at, &execution_id)
    });
    let sources: Vec<_> = calls
        .iter()
        .map(|call| (call.conversation_name().to_owned(), call.agent.clone()))
        .collect();
    let (ids, tools): (Vec<_>, Vec<_>) = calls
        .into_iter()
        .map(
            |InboxCall {
                 conversation_id,
                 tool,
                 ..
             }| (conversation_id, tool),
        )
        .unzip();
    let approvals = PendingApprovalBody::of(&state, ids, tools).await?;
    let approvals = sources.into_iter().zip(approvals);
    Ok(Json(InboxBody {
        approvals: approvals
            .map(|((conversation_id, agent), approval)| InboxCallBody {
                conversation_id,
                agent,
                approval,
            })
            .collect(),
        next_after,
    }))
}

/// Parses the cursor of a page.
fn cursor(token: &str) -> Result<InboxCursor, Problem> {
    let detail = "`after` must be the `next_after` of the previous page.";
    let (expires_at, execution_id) = parse_page_cursor(token, detail)?;
    Ok(InboxCursor {
        expires_at,
        execution_id,
    })
}
