//! Approvals: tool calls that wait for a person, and the persons' answers. The workflow of the call accepts or refuses
//! an answer. The stored call gives the reason for a refusal.

use std::time::Duration;

use axum::{Json, extract::State};
use everturn_proto::{
    Json as RawJson, ids,
    turn::ResolveApproval,
    words::{ApprovalRefusal, ApprovalState, AuditAction, AuditOutcome, AuditTargetKind, Decision},
};
use everturn_store::{Conversation, NewAnswer, NewAuditEntry, NotedAnswer, OutsideTool};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use utoipa::{ToSchema, openapi::schema::Object};

use super::waiting_calls::{WaitingCallBody, waiting_calls};
use crate::{
    http::{
        audit::WithDetails,
        extract::{Caller, ConversationId, ExecutionPath, JsonBody},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::{Id, one_of},
    turns::ApprovalOutcome,
};

/// Tool calls that wait for a person's approval.
#[derive(Serialize, ToSchema)]
#[schema(as = PendingApprovals)]
pub(super) struct PendingApprovalsBody {
    /// Pending tool calls, the oldest first.
    approvals: Vec<PendingApprovalBody>,
}

/// A tool call that waits for a person's approval.
#[derive(Serialize, ToSchema)]
#[schema(as = PendingApproval)]
pub(super) struct PendingApprovalBody {
    #[serde(flatten)]
    call: WaitingCallBody,
    /// Hash to send with the answer. The hash binds the answer to the tool, input and definition.
    input_hash: String,
}

problems!(ListRefusals: InvalidId, ConversationNotFound);

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
    let approvals = waiting.map(|tool| PendingApprovalBody {
        input_hash: tool.record.call.input_hash.clone(),
        call: tool.into(),
    });
    Ok(Json(PendingApprovalsBody {
        approvals: approvals.collect(),
    }))
}

/// A person's answer to a pending tool call.
#[derive(Deserialize, ToSchema)]
#[schema(as = ApprovalAnswer)]
pub(super) struct ApprovalAnswerBody {
    #[schema(schema_with = decisions)]
    decision: String,
    /// `input_hash` of the pending call. The answer counts only for the tool and the input of the hash.
    #[schema(example = "0123456789abcdef")]
    input_hash: String,
    /// With `approve`: input that replaces the model's input. At most 64 KiB.
    #[schema(value_type = Option<Object>)]
    tool_input: Option<RawJson>,
    /// Reason for the model to read when the call is denied. At most 4 KiB.
    #[serde(default)]
    reason: String,
    /// With `approve`: the tool needs no further approval in the conversation.
    #[serde(default)]
    remember: bool,
}

fn decisions() -> Object {
    one_of(&[Decision::Approve.as_str(), Decision::Deny.as_str()])
}

/// The answered tool call.
#[derive(Serialize, ToSchema)]
#[schema(as = AnsweredApproval)]
pub(super) struct AnsweredApprovalBody {
    #[schema(value_type = Id)]
    execution_id: String,
    tool_name: String,
    #[schema(schema_with = outcomes)]
    decision: ApprovalState,
    /// Input that the tool runs with, when the call was approved.
    #[schema(value_type = serde_json::Value)]
    tool_input: RawJson,
    remember: bool,
}

fn outcomes() -> Object {
    one_of(&[
        ApprovalState::Approved.as_str(),
        ApprovalState::Denied.as_str(),
    ])
}

/// The looks at a call whose turn stores another answer at the moment, and the pause between two looks. A save takes some
/// milliseconds.
const SAVE_LOOKS: u32 = 20;
const SAVE_PAUSE: Duration = Duration::from_millis(50);

problems!(Refusals: InvalidBody, InvalidId, ApprovalNeedsOther, ConversationNotFound, ExecutionNotFound, ApprovalAnswered,
    ApprovalExpired, ApprovalMismatch, TurnNotRunning, BodyTooLarge, TurnUnavailable, TemporalUnavailable);

/// Approves or denies a tool call. After a response of 200 the answer is stored and final. Needs the scope `approve`.
#[utoipa::path(
    post, path = "/conversations/{id}/approvals/{execution_id}", tag = "tools", operation_id = "resolve_approval",
    params(ExecutionPath), request_body = ApprovalAnswerBody,
    responses((status = 200, body = AnsweredApprovalBody, description = "The answer is stored"), Refusals)
)]
pub(super) async fn resolve(
    State(state): State<GatewayState>,
    caller: Caller,
    path: ExecutionPath,
    JsonBody(body): JsonBody<ApprovalAnswerBody>,
) -> Result<Json<AnsweredApprovalBody>, Problem> {
    let answer = ResolveApproval {
        execution_id: path.execution_id.clone(),
        decision: body.decision,
        input_hash: Some(body.input_hash),
        tool_input: body.tool_input.clone(),
        reason: Some(body.reason).filter(|reason| !reason.is_empty()),
        remember: body.remember,
        resolved_by: caller.principal.clone(),
    };
    if let Some(flaw) = answer.flaw() {
        return Err(Problem::new(Code::InvalidBody, format!("{flaw}.")));
    }
    let (conversation, call) = state.outside_tool(&caller, &path).await?;
    if let Some(problem) = settled(&call) {
        return Err(problem);
    }
    if answer.input_hash() != call.record.call.input_hash {
        return Err(mismatch());
    }
    let decision = answer.outcome();
    let entry = entry(&state, &caller, &conversation, &call, &answer);
    note(&state, &caller, &conversation, &answer, &entry).await?;
    let sub_agent = state.sub_agent_of(&caller, &conversation, &call).await?;
    let answer_id = ids::answer_id(&answer);
    let turns = &state.ports.turns;
    let mut outcome = turns
        .resolve_approval(&conversation.id, sub_agent.as_deref(), answer)
        .await?;
    if outcome != ApprovalOutcome::Taken {
        let looks = looks_after(&outcome);
        if is_saved(&state, &conversation, &path.execution_id, &answer_id, looks).await? {
            outcome = ApprovalOutcome::Taken;
        }
    }
    let is_taken = outcome == ApprovalOutcome::Taken;
    let ended = NewAuditEntry {
        outcome: if is_taken {
            AuditOutcome::Done
        } else {
            AuditOutcome::Refused
        },
        ..entry
    };
    state.audit.append(&ended).await?;
    if outcome == ApprovalOutcome::Refused(ApprovalRefusal::Replaced) {
        return Err(refused(&outcome));
    }
    if !is_taken {
        // An earlier answer may have won, or the call may have expired, or the turn may have ended.
        let (_, call) = state.outside_tool(&caller, &path).await?;
        return Err(settled(&call).unwrap_or_else(|| refused(&outcome)));
    }
    let call = call.record.call;
    Ok(Json(AnsweredApprovalBody {
        execution_id: call.execution_id,
        tool_name: call.tool_name,
        decision,
        tool_input: body.tool_input.or(call.tool_input).unwrap_or_default(),
        remember: body.remember,
    }))
}

/// Returns the number of looks at the call: several looks while the turn stores another answer.
fn looks_after(outcome: &ApprovalOutcome) -> u32 {
    match outcome {
        ApprovalOutcome::Refused(ApprovalRefusal::Answered | ApprovalRefusal::BeingStored) => {
            SAVE_LOOKS
        }
        ApprovalOutcome::Taken
        | ApprovalOutcome::Refused(_)
        | ApprovalOutcome::NotRunning
        | ApprovalOutcome::Unanswered => 1,
    }
}

/// Returns true if the call's stored answer is this answer. The save takes the newest noted answer, whichever answer the
/// turn has taken, so a refused answer may be stored, and the turn may have ended since.
async fn is_saved(
    state: &GatewayState,
    conversation: &Conversation,
    execution_id: &str,
    answer_id: &str,
    looks: u32,
) -> Result<bool, Problem> {
    let outside = &state.ports.outside;
    for look in 1..=looks {
        let saved = outside.saved_answer(&conversation.id, execution_id).await?;
        let Some(saved) = saved else { break };
        if saved.decision() != ApprovalState::Pending {
            return Ok(saved.answer_id.as_deref() == Some(answer_id));
        }
        if look < looks {
            sleep(SAVE_PAUSE).await;
        }
    }
    Ok(false)
}

/// Returns the audit entry of an answer. The entry is stored before Temporal gets the answer, so that no answer has an
/// effect without an entry. A second entry records the outcome.
fn entry(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    call: &OutsideTool,
    answer: &ResolveApproval,
) -> NewAuditEntry {
    let target = (AuditTargetKind::ToolExecution, answer.execution_id.as_str());
    let entry = state
        .audit
        .entry(caller, AuditAction::ApprovalAnswered, target)
        .with("conversation_id", conversation.name())
        .with("tool_name", call.record.call.tool_name.as_str())
        .with("decision", answer.decision().as_str())
        .with("input_hash", answer.input_hash())
        .with("has_other_input", answer.tool_input.is_some())
        .with("remember", answer.remember);
    NewAuditEntry {
        outcome: AuditOutcome::Requested,
        ..entry
    }
}

/// Stores the answer and the name of the person who answers. The store takes both from the row written here: a name
/// received through Temporal proves no identity, and the newest answer counts until the turn has stored an answer.
async fn note(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    answer: &ResolveApproval,
    entry: &NewAuditEntry,
) -> Result<(), Problem> {
    let new = NewAnswer {
        id: &ids::answer_id(answer),
        answered_by: answer.resolved_by.as_deref(),
        answer,
    };
    let (conversation_id, execution_id) = (&conversation.id, &answer.execution_id);
    let noted = state
        .ports
        .outside
        .note_answer(
            &caller.access,
            conversation_id,
            execution_id,
            new,
            Some(entry),
        )
        .await?;
    match noted {
        NotedAnswer::Noted => Ok(()),
        NotedAnswer::NeedsOther => Err(needs_other()),
        NotedAnswer::TooMany => Err(Problem::new(
            Code::TurnUnavailable,
            "Too many answers to the call wait for a worker. Repeat the request in a moment.",
        )
        .retry_after_s(1)),
    }
}

fn needs_other() -> Problem {
    Problem::new(
        Code::ApprovalNeedsOther,
        "A signed-in person who has sent no message of the turn must approve.",
    )
}

/// Returns the reason why the call accepts no answer, if the stored call shows a reason.
fn settled(call: &OutsideTool) -> Option<Problem> {
    let detail = match call.record.approval {
        ApprovalState::Pending if call.is_expired => return Some(expired()),
        ApprovalState::Pending => return None,
        ApprovalState::Expired => return Some(expired()),
        ApprovalState::Approved => "The call was approved.",
        ApprovalState::Denied => "The call was denied.",
        ApprovalState::Cancelled => "The turn ended before a person answered.",
        ApprovalState::NotNeeded | ApprovalState::Unknown(_) => "The call needs no approval.",
    };
    Some(Problem::new(Code::ApprovalAnswered, detail))
}

fn expired() -> Problem {
    Problem::new(
        Code::ApprovalExpired,
        "No answer came in time, and the model was told. The model may ask again.",
    )
}

fn mismatch() -> Problem {
    Problem::new(
        Code::ApprovalMismatch,
        "Read the pending approvals, and answer with the call's input_hash.",
    )
}

/// Returns the reason why the turn refused the answer, when the stored call shows no reason.
fn refused(outcome: &ApprovalOutcome) -> Problem {
    match outcome {
        ApprovalOutcome::NotRunning => Problem::new(
            Code::TurnNotRunning,
            "Resume the conversation; the call then waits for your answer again.",
        ),
        ApprovalOutcome::Refused(ApprovalRefusal::Answered) => {
            Problem::new(Code::ApprovalAnswered, "Another answer came first.")
        }
        ApprovalOutcome::Refused(ApprovalRefusal::Replaced) => Problem::new(
            Code::ApprovalAnswered,
            "A newer answer replaced this answer before a worker took it.",
        ),
        ApprovalOutcome::Refused(ApprovalRefusal::Mismatch) => mismatch(),
        ApprovalOutcome::Refused(ApprovalRefusal::NeedsOther) => needs_other(),
        ApprovalOutcome::Refused(ApprovalRefusal::Invalid) => {
            Problem::new(Code::InvalidBody, "The turn cannot read the answer.")
        }
        // The call does not wait yet because its turn restarts or was reset. Or an answer is not stored yet.
        ApprovalOutcome::Taken | ApprovalOutcome::Refused(_) | ApprovalOutcome::Unanswered => {
            Problem::new(
                Code::TurnUnavailable,
                "No worker took the answer in time. Repeat the request.",
            )
            .retry_after_s(1)
        }
    }
}
