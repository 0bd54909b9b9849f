//! Decides which answer to an approval counts, who gave it, and whether the person may answer. Only a gateway's note in
//! the database counts as proof. Data that travels through the engine is never proof.

use everturn_proto::{
    ConversationName,
    turn::{CallRule, ResolveApproval, SaveApproval, SavedApproval},
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
    statements::outside::{self, NotedAnswers, SavedAnswer},
};
use crate::{
    api::{AuditActor, AuditTarget, NewAuditEntry, Result},
    rows::tools::SavedRow,
};

/// The approval rule of a waiting call, and a fact about the person who answers.
#[derive(FromRow)]
struct Terms {
    approval_rule: Column<CallRule>,
    may_have_asked: bool,
}

/// An answer that a gateway has noted.
#[derive(FromRow)]
struct NotedRow {
    answer_id: String,
    answered_by: String,
    answer: Column<ResolveApproval>,
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

/// Replaces the answer by the newest answer of a person with the right to give it, as noted by gateways, and sets who
/// answered. The last word of a person counts, although the engine may bring an older word first. Returns why the answer
/// is refused.
pub(super) async fn authenticate(
    connection: &mut Connection,
    conversation_id: &str,
    answer: &mut SaveApproval,
) -> Result<Option<ApprovalRefusal>> {
    // An answer without an id is an expiry: no person answered in time.
    let Some(answer_id) = answer.answer_id.clone() else {
        return Ok(None);
    };
    let execution_id = answer.execution_id.clone();
    let noted = NotedAnswers {
        conversation_id,
        execution_id: &execution_id,
    };
    let noted: Vec<NotedRow> = noted.query_as()?.fetch_all(&mut *connection).await?;
    if noted.iter().all(|row| row.answer_id != answer_id) {
        let terms = terms(connection, conversation_id, &execution_id, None).await?;
        return Ok(terms.and_then(|terms| through_engine(&terms, answer)));
    }
    for row in noted {
        let who = row.who();
        let terms = terms(connection, conversation_id, &execution_id, who).await?;
        let Some(terms) = terms else {
            return Ok(None);
        };
        if row.answer.0.outcome() != ApprovalState::Approved || terms.lets_approve(who) {
            row.replace(answer);
            return Ok(None);
        }
    }
    Ok(Some(ApprovalRefusal::NeedsOther))
}

/// Takes an answer that no gateway has noted as the operator's, or returns why the answer is refused.
fn through_engine(terms: &Terms, answer: &mut SaveApproval) -> Option<ApprovalRefusal> {
    match terms.approval_rule.answers_from() {
        AnswersFrom::Engine => {}
        AnswersFrom::Gateway | AnswersFrom::Unknown(_) => {
            return Some(ApprovalRefusal::NotThroughGateway);
        }
    }
    if answer.decision() == ApprovalState::Approved && !terms.lets_approve(None) {
        return Some(ApprovalRefusal::NeedsOther);
    }
    answer.is_through_engine = true;
    answer.resolved_by = Some(OPERATOR.to_owned());
    None
}

/// Returns the stored answer to a call, for a repeated save.
pub(super) async fn stored(
    connection: &mut Connection,
    conversation_id: &str,
    execution_id: &str,
) -> Result<Option<SavedApproval>> {
    let saved = SavedAnswer {
        conversation_id,
        execution_id,
    };
    let saved: Option<SavedRow> = saved.query_as()?.fetch_optional(connection).await?;
    Ok(saved.map(SavedApproval::from))
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

impl NotedRow {
    /// Returns the person; `None` for an unknown person.
    fn who(&self) -> Option<&str> {
        Some(self.answered_by.as_str()).filter(|who| !who.is_empty())
    }

    /// Puts the noted answer in the position of `answer`.
    fn replace(self, answer: &mut SaveApproval) {
        let resolved_by = self.who().map(str::to_owned);
        let noted = self.answer.0;
        *answer = SaveApproval {
            execution_id: std::mem::take(&mut answer.execution_id),
            decision: noted.outcome().into(),
            tool_input: noted.tool_input,
            reason: noted.reason,
            remember: noted.remember,
            resolved_by,
            answer_id: Some(self.answer_id),
            is_through_engine: false,
        };
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
