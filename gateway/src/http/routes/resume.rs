//! Resuming: a conversation without a workflow continues from its last checkpoint.

use axum::{Json, extract::State, http::StatusCode};
use everturn_proto::words::{AuditAction, AuditTargetKind};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::{
    http::{
        audit::WithDetails,
        extract::{Caller, ConversationId},
        openapi::problems,
        problem::{Code, Problem},
        state::GatewayState,
    },
    schema::one_of,
    turns::{StartMessages, StartOutcome},
};

/// The outcome of a resume request.
#[derive(Serialize, ToSchema)]
#[schema(as = Resumed)]
pub(super) struct ResumedBody {
    /// `resuming`: a new workflow runs. `running`: a workflow ran already, and the request changed nothing.
    #[schema(schema_with = statuses)]
    status: &'static str,
    /// Only with `resuming`: step of the checkpoint where the turn continues; 0 without a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    from_step: Option<u32>,
}

fn statuses() -> Object {
    one_of(&["resuming", "running"])
}

problems!(Refusals: InvalidId, ConversationNotFound, NoCheckpoint, TurnComplete, TemporalUnavailable);

/// Continues the conversation's unfinished turn and waiting messages when the conversation's workflow is gone.
///
/// Repeating the request is safe: of two concurrent requests, only one starts the workflow.
#[utoipa::path(
    post, path = "/conversations/{id}/resume", tag = "turns", operation_id = "resume_turn", params(ConversationId),
    responses((status = 202, body = ResumedBody, description = "The state of the turn"), Refusals)
)]
pub(super) async fn resume(
    State(state): State<GatewayState>,
    caller: Caller,
    ConversationId(name): ConversationId,
) -> Result<(StatusCode, Json<ResumedBody>), Problem> {
    let conversation = state.conversation(&caller, &name).await?;
    let point = state.resume_point(&caller, &conversation).await?;
    let point = point.ok_or_else(|| Problem::conversation_not_found(name.as_str()))?;
    let has_begun = point.has_begun;
    let messages = StartMessages::unfinished(point).ok_or_else(|| nothing_left(has_begun))?;
    let from_step = messages.goes_on_at.unwrap_or(0);
    // A turn may end between the read and the start. No harm: an answered message starts no visible work.
    let answer = match state.ports.turns.start(&conversation, messages).await? {
        StartOutcome::Started => {
            let target = (AuditTargetKind::Conversation, name.as_str());
            let entry = state
                .audit
                .entry(&caller, AuditAction::TurnResumed, target)
                .with("from_step", from_step);
            state.audit.append(&entry).await?;
            ResumedBody {
                status: "resuming",
                from_step: Some(from_step),
            }
        }
        StartOutcome::StartedBefore | StartOutcome::Busy => ResumedBody {
            status: "running",
            from_step: None,
        },
    };
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// Returns the problem for a conversation without unfinished work.
fn nothing_left(has_begun: bool) -> Problem {
    if has_begun {
        Problem::new(
            Code::TurnComplete,
            "The last turn has ended, and no message waits. Send a message.",
        )
    } else {
        Problem::new(
            Code::NoCheckpoint,
            "The conversation has had no turn yet. Send a message.",
        )
    }
}
