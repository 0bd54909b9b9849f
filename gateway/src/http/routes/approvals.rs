//! Approvals: tool calls that wait for a person, and the persons' answers. The workflow of the call accepts or refuses
//! an answer. The stored call gives the reason for a refusal.

use axum::{Json, extract::State, http::StatusCode};
use everturn_proto::{
    Json as RawJson, ids,
    turn::ResolveApproval,
    words::{ApprovalRefusal, ApprovalState, AuditAction, AuditOutcome, AuditTargetKind, Decision},
};
use everturn_store::{Access, Conversation, NewAnswer, NewAuditEntry, NotedAnswer, OutsideTool};
use serde::{Deserialize, Serialize};
use utoipa::{ToSchema, openapi::schema::Object};

use super::{
    answers::given,
    approval_list::{hash_of_proposal, needs_other_person},
    questions,
};
use crate::{
    http::{
        audit::WithDetails,
        extract::{Caller, ExecutionPath, JsonBody},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::{Id, one_of},
    turns::ApprovalOutcome,
};

/// A person's answer to a pending tool call.
#[derive(Deserialize, ToSchema)]
#[schema(as = ApprovalAnswer)]
pub(super) struct ApprovalAnswerBody {
    #[schema(schema_with = decisions)]
    decision: String,
    /// `input_hash` of the pending call, or of one of its proposals. The answer counts only for the tool and the input of
    /// the hash.
    #[schema(example = "0123456789abcdef")]
    input_hash: String,
    /// With `approve`: input that replaces the model's input. At most 64 KiB. The gateway brings the input into the
    /// canonical form, so spaces and the order of keys do not matter; numbers stay as written.
    #[schema(value_type = Option<Object>)]
    tool_input: Option<RawJson>,
    /// With `approve`, for a call with a `question`: fields of the question's form. At most 64 KiB.
    #[schema(value_type = Option<Object>)]
    answer: Option<RawJson>,
    /// Reason for the model to read when the call is denied. At most 4 KiB.
    #[serde(default)]
    reason: String,
    /// With `approve`: the tool needs no further approval in the conversation. Refused for a call that another person must
    /// approve (`approval_by`).
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
    decision: Outcome,
    /// Input that the tool runs with, when the call was approved.
    #[schema(value_type = serde_json::Value)]
    tool_input: RawJson,
    remember: bool,
}

/// What an answer has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Approved,
    Denied,
    /// The person declined to answer the tool's question. The tool goes on with this news.
    Declined,
    /// The other input waits for a second person.
    Proposed,
}

fn outcomes() -> Object {
    one_of(&["approved", "denied", "declined", "proposed"])
}

problems!(Refusals: InvalidBody, RepeatedKey, InvalidId, ApprovalNeedsOther, ApprovalNotRemembered, ConversationNotFound, ExecutionNotFound, ApprovalAnswered,
    ApprovalExpired, ApprovalMismatch, TurnNotRunning, BodyTooLarge, TurnUnavailable, TemporalUnavailable);

/// Approves or denies a tool call, or answers a question of the running tool. After a response of 200 the answer is stored and final. Needs the scope `approve`.
///
/// A call with `approval_by` set to `other` may be answered by every person of the tenant with the scope, also in
/// conversations of other owners. Another input for such a call needs two other people: the first answer is a proposal
/// (202), and the call waits on.
///
/// A call with a `question` runs already. `approve` with an `answer` fills in the form of the question, `approve` alone says
/// that the person has opened its address, and `deny` declines. The tool goes on in each case.
#[utoipa::path(
    post, path = "/conversations/{id}/approvals/{execution_id}", tag = "tools", operation_id = "resolve_approval",
    params(ExecutionPath), request_body = ApprovalAnswerBody,
    responses(
        (status = 200, body = AnsweredApprovalBody, description = "The answer is stored"),
        (status = 202, body = AnsweredApprovalBody, description = "The other input waits for a second person"),
        Refusals
    )
)]
pub(super) async fn resolve(
    State(state): State<GatewayState>,
    caller: Caller,
    path: ExecutionPath,
    JsonBody(body): JsonBody<ApprovalAnswerBody>,
) -> Result<(StatusCode, Json<AnsweredApprovalBody>), Problem> {
    let answer = checked_answer(&caller, &path, body)?;
    // From here on, the approver has the access to the conversation of the call.
    let (approver, conversation, call) = call_to_answer(&state, &caller, &path).await?;
    if let Some(problem) = settled(&call) {
        return Err(problem);
    }
    let answer = bound_to_call(&state, &conversation, &call, answer).await?;
    questions::check(call.record.open_question(), &answer)?;
    let decision = answer.outcome();
    let entry = entry(&state, &caller, &conversation, &call, &answer);
    let is_person = caller.person().is_some();
    let noted = note(&state, &approver, is_person, &conversation, &answer, &entry).await?;
    if noted == NotedAnswer::NeedsSecond {
        return proposed(&state, entry, call, answer).await;
    }
    let sub_agent = state.sub_agent_of(&approver, &conversation, &call).await?;
    let (edited, remember) = (answer.tool_input.clone(), answer.remember);
    let outcome = given(&state, &conversation, sub_agent.as_deref(), &call, answer).await?;
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
        let (_, call) = state.outside_tool(&approver, &path).await?;
        return Err(settled(&call).unwrap_or_else(|| refused(&outcome)));
    }
    let decision = match decision {
        ApprovalState::Approved => Outcome::Approved,
        _ if call.record.open_question().is_some() => Outcome::Declined,
        _ => Outcome::Denied,
    };
    let body = AnsweredApprovalBody::of(call, decision, edited, remember);
    Ok((StatusCode::OK, Json(body)))
}

impl AnsweredApprovalBody {
    fn of(call: OutsideTool, decision: Outcome, edited: Option<RawJson>, remember: bool) -> Self {
        let call = call.record.call;
        Self {
            execution_id: call.execution_id,
            tool_name: call.tool_name,
            decision,
            tool_input: edited.or(call.tool_input).unwrap_or_default(),
            remember,
        }
    }
}

/// Returns the call, and the approver with the access to the call's conversation. A person of the tenant has the access
/// for a call that another person must approve, in conversations of every owner, and for no other purpose.
async fn call_to_answer(
    state: &GatewayState,
    caller: &Caller,
    path: &ExecutionPath,
) -> Result<(Caller, Conversation, OutsideTool), Problem> {
    let refused = match state.outside_tool(caller, path).await {
        Ok((conversation, call)) => return Ok((caller.clone(), conversation, call)),
        Err(problem) => problem,
    };
    if refused.code() != Code::ConversationNotFound || caller.person().is_none() {
        return Err(refused);
    }
    let approver = Caller {
        access: Access::tenant(&caller.access.tenant_id),
        ..caller.clone()
    };
    match state.outside_tool(&approver, path).await {
        Ok((conversation, call)) if needs_other_person(&call) => Ok((approver, conversation, call)),
        // The answer to a person without a right is the answer to a person who asks for a missing conversation.
        Ok(_) => Err(refused),
        Err(problem) if problem.code() == Code::ExecutionNotFound => Err(refused),
        Err(problem) => Err(problem),
    }
}

/// Returns the answer with the call's hash. An answer with the hash of a proposal approves the proposed input.
async fn bound_to_call(
    state: &GatewayState,
    conversation: &Conversation,
    call: &OutsideTool,
    answer: ResolveApproval,
) -> Result<ResolveApproval, Problem> {
    let call_hash = &call.record.call.input_hash;
    let needs_other = needs_other_person(call);
    if answer.remember && needs_other {
        return Err(Problem::new(
            Code::ApprovalNotRemembered,
            "Another person must approve each call of the tool. Answer without `remember`.",
        ));
    }
    if answer.input_hash() == call_hash {
        return Ok(answer);
    }
    let is_plain = answer.decision() == Decision::Approve && answer.tool_input.is_none();
    if !needs_other || !is_plain {
        return Err(mismatch());
    }
    let id = (conversation.id.clone(), answer.execution_id.clone());
    let proposals = state.ports.outside.proposals(&[id]).await?;
    let mut inputs = proposals.into_iter().map(|proposal| proposal.input);
    let is_meant =
        |input: &RawJson| answer.input_hash() == hash_of_proposal(&call.record.call, input);
    let input = inputs.find(is_meant).ok_or_else(mismatch)?;
    Ok(ResolveApproval {
        input_hash: Some(call_hash.clone()),
        tool_input: Some(input),
        ..answer
    })
}

/// Returns the response to a proposal. The turn does not learn of the proposal, and waits on.
async fn proposed(
    state: &GatewayState,
    entry: NewAuditEntry,
    call: OutsideTool,
    answer: ResolveApproval,
) -> Result<(StatusCode, Json<AnsweredApprovalBody>), Problem> {
    let ended = NewAuditEntry {
        outcome: AuditOutcome::Done,
        ..entry.with("proposed", true)
    };
    state.audit.append(&ended).await?;
    let body = AnsweredApprovalBody::of(call, Outcome::Proposed, answer.tool_input, false);
    Ok((StatusCode::ACCEPTED, Json(body)))
}

/// Returns the caller's answer, with the canonical text of an edited input. Equal edits have equal texts from here on, so
/// the store and the turn know the answer by one id.
fn checked_answer(
    caller: &Caller,
    path: &ExecutionPath,
    body: ApprovalAnswerBody,
) -> Result<ResolveApproval, Problem> {
    let objects = [("tool_input", &body.tool_input), ("answer", &body.answer)];
    for (field, object) in objects {
        object
            .as_ref()
            .map_or(Ok(()), |it| has_each_key_once(field, it))?;
    }
    let answer = ResolveApproval {
        execution_id: path.execution_id.clone(),
        decision: body.decision,
        input_hash: Some(body.input_hash),
        tool_input: body.tool_input,
        reason: Some(body.reason).filter(|reason| !reason.is_empty()),
        remember: body.remember,
        resolved_by: caller.principal.clone(),
        answer: body.answer,
    };
    if let Some(flaw) = answer.flaw() {
        return Err(Problem::new(Code::InvalidBody, format!("{flaw}.")));
    }
    Ok(ResolveApproval {
        tool_input: answer.tool_input.map(RawJson::into_canonical),
        answer: answer.answer.map(RawJson::into_canonical),
        ..answer
    })
}

/// Refuses the value of a field with an object that has a key more than once: readers of such a value disagree.
pub(super) fn has_each_key_once(field: &str, value: &RawJson) -> Result<(), Problem> {
    let Some(key) = value.repeated_key() else {
        return Ok(());
    };
    Err(Problem::new(
        Code::RepeatedKey,
        format!("`{field}` has the key `{key}` more than once in one object. Send each key once."),
    ))
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
        .with("has_answer", answer.answer.is_some())
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
    approver: &Caller,
    is_person: bool,
    conversation: &Conversation,
    answer: &ResolveApproval,
    entry: &NewAuditEntry,
) -> Result<NotedAnswer, Problem> {
    let new = NewAnswer {
        id: &ids::answer_id(answer),
        answered_by: answer.resolved_by.as_deref(),
        is_person,
        answer,
    };
    let (conversation_id, execution_id) = (&conversation.id, &answer.execution_id);
    let noted = state
        .ports
        .outside
        .note_answer(
            &approver.access,
            conversation_id,
            execution_id,
            new,
            Some(entry),
        )
        .await?;
    match noted {
        NotedAnswer::Noted | NotedAnswer::NeedsSecond => Ok(noted),
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
        "A person who neither owns the conversation nor has sent a message of the turn must approve, with a credential \
         that has an owner.",
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
        ApprovalState::Declined => "The question was declined.",
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
