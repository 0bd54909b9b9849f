//! Decides who answered an approval and whether the person may answer. Only a gateway's note in the database counts as
//! proof. Data that travels through the engine is never proof.

use everturn_proto::{
    ConversationName,
    turn::{CallRule, SaveApproval},
    words::{
        AnswersFrom, ApprovalBy, ApprovalRefusal, ApprovalState, AuditAction, AuditActorKind,
        AuditOutcome, AuditTargetKind, OPERATOR, THROUGH_ENGINE,
    },
};
use serde_json::Value;
use sqlx::{FromRow, types::Json as Column};

use super::{
    Connection,
    statement::Statement as _,
    statements::outside::{self, AnsweredBy},
};
use crate::api::{AuditActor, AuditTarget, NewAuditEntry, Result};

/// The approval rule of a waiting call, and a fact about the person who answers.
#[derive(FromRow)]
struct Terms {
    approval_rule: Column<CallRule>,
    may_have_asked: bool,
}

/// Returns whether a person may approve a call; `who` is `None` for an unknown person. A missing call counts as allowed
/// here: saving an answer to it reports the missing call.
pub(super) async fn may_approve(
    connection: &mut Connection,
    conversation_id: &str,
    execution_id: &str,
    who: Option<&str>,
) -> Result<bool> {
    let terms = terms(connection, conversation_id, execution_id, who).await?;
    Ok(terms.is_none_or(|terms| terms.lets_approve(who)))
}

/// Sets who answered, as noted by a gateway, or returns why the answer is refused.
pub(super) async fn authenticate(
    connection: &mut Connection,
    conversation_id: &str,
    answer: &mut SaveApproval,
) -> Result<Option<ApprovalRefusal>> {
    // An answer without an id is an expiry: no person answered in time.
    let Some(answer_id) = answer.answer_id.clone() else {
        return Ok(None);
    };
    let answered_by = AnsweredBy {
        conversation_id,
        execution_id: &answer.execution_id,
        answer_id: &answer_id,
    };
    let query = answered_by.query_scalar()?;
    let noted: Option<String> = query.fetch_optional(&mut *connection).await?;
    let who = noted.as_deref().filter(|who| !who.is_empty());
    let terms = terms(connection, conversation_id, &answer.execution_id, who).await?;
    let Some(terms) = terms else {
        return Ok(None);
    };
    if noted.is_none() {
        match terms.approval_rule.answers_from() {
            AnswersFrom::Engine => {}
            AnswersFrom::Gateway | AnswersFrom::Unknown(_) => {
                return Ok(Some(ApprovalRefusal::NotThroughGateway));
            }
        }
    }
    if answer.decision() == ApprovalState::Approved && !terms.lets_approve(who) {
        return Ok(Some(ApprovalRefusal::NeedsOther));
    }
    answer.is_through_engine = noted.is_none();
    answer.resolved_by = match &noted {
        Some(_) => who.map(str::to_owned),
        None => Some(OPERATOR.to_owned()),
    };
    Ok(None)
}

/// Returns the audit entry of an accepted answer that no gateway has noted. The save alone has access to the
/// database for the answer.
pub(super) fn audit_entry(
    tenant_id: &str,
    conversation_id: &str,
    answer: &SaveApproval,
    keep_days: u32,
) -> NewAuditEntry {
    let name = ConversationName::of_id(conversation_id);
    let details = [
        ("conversation_id", Value::from(name)),
        ("decision", Value::from(answer.decision().as_str())),
        ("has_other_input", Value::from(answer.tool_input.is_some())),
        ("remember", Value::from(answer.remember)),
        ("through", Value::from(THROUGH_ENGINE)),
    ];
    NewAuditEntry {
        tenant_id: Some(tenant_id.to_owned()),
        actor: AuditActor {
            kind: AuditActorKind::Operator,
            id: None,
        },
        action: AuditAction::ApprovalAnswered,
        target: AuditTarget {
            kind: AuditTargetKind::ToolExecution,
            id: answer.execution_id.clone(),
        },
        outcome: AuditOutcome::Done,
        address: None,
        request_id: None,
        details: details
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
        keep_days,
    }
}

impl Terms {
    fn lets_approve(&self, who: Option<&str>) -> bool {
        match self.approval_rule.by() {
            ApprovalBy::Anyone => true,
            // A rule that only a newer version knows counts as at least this strict.
            ApprovalBy::Other | ApprovalBy::Unknown(_) => who.is_some() && !self.may_have_asked,
        }
    }
}

async fn terms(
    connection: &mut Connection,
    conversation_id: &str,
    execution_id: &str,
    who: Option<&str>,
) -> Result<Option<Terms>> {
    let rule = outside::CallRule {
        conversation_id,
        execution_id,
        person: who.unwrap_or_default(),
    };
    Ok(rule.query_as()?.fetch_optional(connection).await?)
}
