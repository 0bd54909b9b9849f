//! Outcomes of tool calls that are unknown, settled by a person. No turn takes part: the store has the event and the changed
//! transcript.

use axum::{Json, extract::State};
use everturn_proto::{
    Json as RawJson,
    event::OutcomeSettled,
    limits::MAX_APPROVAL_REASON_BYTES,
    words::{AuditAction, AuditTargetKind, ToolOutcome},
};
use everturn_store::{OutcomeRefusal, PersonsOutcome, SettledOutcome};
use serde::{Deserialize, Serialize};
use utoipa::{ToSchema, openapi::schema::Object};

use super::{approvals::has_each_key_once, stored_results::checked_size};
use crate::{
    http::{
        audit::WithDetails,
        extract::{Caller, ExecutionPath, JsonBody},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::{Id, one_of},
};

/// A person's knowledge about a call whose outcome is unknown.
#[derive(Deserialize, ToSchema)]
#[schema(as = ToolOutcome)]
pub(super) struct OutcomeBody {
    #[schema(schema_with = outcomes)]
    outcome: String,
    /// With `happened`: the result of the call, any JSON value of at most 1 MiB. The model reads the result.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<RawJson>,
    /// Comment for the model and the readers. At most 4 KiB.
    #[serde(default)]
    #[schema(example = "The bank has the payment.")]
    comment: String,
}

/// Takes a `null` as a result, too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

fn outcomes() -> Object {
    one_of(&[
        ToolOutcome::Happened.as_str(),
        ToolOutcome::NotHappened.as_str(),
    ])
}

/// The settled outcome of a call.
#[derive(Serialize, ToSchema)]
#[schema(as = SettledToolOutcome)]
pub(super) struct SettledOutcomeBody {
    #[schema(value_type = Id)]
    execution_id: String,
    tool_name: String,
    #[schema(schema_with = outcomes)]
    outcome: String,
    /// Result of the call, cut like every result of an event; absent without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    result: Option<RawJson>,
    comment: String,
    /// The person who settled the outcome first: the owner of the credential, or the id of the key. Empty if the gateway
    /// requires no credential.
    #[schema(example = "ann")]
    settled_by: String,
}

impl From<OutcomeSettled> for SettledOutcomeBody {
    fn from(event: OutcomeSettled) -> Self {
        Self {
            execution_id: event.execution_id,
            tool_name: event.tool_name,
            outcome: event.outcome,
            result: event.result,
            comment: event.comment,
            settled_by: event.settled_by,
        }
    }
}

problems!(Refusals: InvalidBody, RepeatedKey, InvalidId, ConversationNotFound, ExecutionNotFound, OutcomeKnown, OutcomeSettled,
    ResultTooLarge, BodyTooLarge);

/// Settles the unknown outcome of a tool call. Needs the scope `approve`. Repeating the request is safe.
///
/// The outcome of a call is unknown when its `observe` has `outcome_unknown`, and its tool execution has the status
/// `unknown`. The event `outcome_settled` tells the readers, and later LLM calls have the settled outcome in the result of
/// the call. Everturn does not run the tool again.
#[utoipa::path(
    post, path = "/conversations/{id}/tool-calls/{execution_id}/outcome", tag = "tools", operation_id = "settle_outcome",
    params(ExecutionPath), request_body = OutcomeBody,
    responses((status = 200, body = SettledOutcomeBody, description = "The outcome is settled"), Refusals)
)]
pub(super) async fn settle(
    State(state): State<GatewayState>,
    caller: Caller,
    path: ExecutionPath,
    JsonBody(body): JsonBody<OutcomeBody>,
) -> Result<Json<SettledOutcomeBody>, Problem> {
    let outcome = checked(&caller, &path, body)?;
    let (conversation, call) = state.outside_tool(&caller, &path).await?;
    let target = (AuditTargetKind::ToolExecution, path.execution_id.as_str());
    let entry = state
        .audit
        .entry(&caller, AuditAction::OutcomeSettled, target)
        .with("conversation_id", conversation.name())
        .with("tool_name", call.record.call.tool_name.as_str())
        .with("outcome", outcome.outcome.as_str())
        .with("has_result", outcome.result.is_some());
    let settled = state
        .ports
        .outside
        .settle_outcome(&caller.access, &conversation.id, &outcome, &entry)
        .await?;
    match settled {
        SettledOutcome::Settled(event) => Ok(Json(event.into())),
        SettledOutcome::Refused(refusal) => Err(refused(refusal, &path.execution_id)),
    }
}

fn checked(
    caller: &Caller,
    path: &ExecutionPath,
    body: OutcomeBody,
) -> Result<PersonsOutcome, Problem> {
    let invalid = |detail: &str| Err(Problem::new(Code::InvalidBody, detail));
    let outcome = ToolOutcome::from(body.outcome.as_str());
    match (&outcome, &body.result) {
        (ToolOutcome::Happened, _) | (ToolOutcome::NotHappened, None) => {}
        (ToolOutcome::NotHappened, Some(_)) => {
            return invalid("A call that did not happen has no `result`.");
        }
        (ToolOutcome::StillUnknown | ToolOutcome::Unknown(_), _) => {
            return invalid("`outcome` must be `happened` or `not_happened`.");
        }
    }
    if body.comment.len() > MAX_APPROVAL_REASON_BYTES || body.comment.contains('\0') {
        return invalid("`comment` has at most 4 KiB, and no NUL.");
    }
    if let Some(result) = &body.result {
        checked_size(result)?;
        has_each_key_once("result", result)?;
    }
    Ok(PersonsOutcome {
        execution_id: path.execution_id.clone(),
        outcome,
        result: body.result,
        comment: body.comment,
        settled_by: caller.principal.clone().unwrap_or_default(),
    })
}

fn refused(refusal: OutcomeRefusal, execution_id: &str) -> Problem {
    match refusal {
        OutcomeRefusal::NoCall => Problem::execution_not_found(execution_id),
        OutcomeRefusal::Known => Problem::new(
            Code::OutcomeKnown,
            "The call has not ended, or its end is known. Only a call with `outcome_unknown` in its `observe` can be settled.",
        ),
        OutcomeRefusal::SettledOtherwise => Problem::new(
            Code::OutcomeSettled,
            "Another outcome, result or comment was stored first. The event `outcome_settled` has them.",
        ),
    }
}
