//! Decides which answer to an approval counts, who gave it, and whether the person may answer. Only a gateway's note in
//! the database counts as proof. Data that travels through the engine is never proof.

use std::collections::BTreeSet;

use everturn_proto::{
    ConversationName, Json,
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

/// The approval rule and the input of a waiting call, and a fact about the person who answers.
#[derive(FromRow)]
pub(super) struct Terms {
    approval_rule: Column<CallRule>,
    tool_input: Column<Json>,
    may_have_asked: bool,
}

/// An answer that a gateway has noted.
#[derive(FromRow)]
struct NotedRow {
    answer_id: String,
    answered_by: String,
    answer: Column<ResolveApproval>,
}

/// Returns true if a second person has approved the input of a noted answer, which needs a second person.
pub(super) async fn is_seconded(
    connection: &mut Connection,
    conversation_id: &str,
    execution_id: &str,
    answer_id: &str,
) -> Result<bool> {
    let words = newest_words(noted(connection, conversation_id, execution_id).await?);
    let Some(row) = words.iter().find(|row| row.answer_id == answer_id) else {
        return Ok(false);
    };
    let seconder = seconder(connection, conversation_id, row, &words).await?;
    Ok(seconder.is_some())
}

/// Returns the noted answers to a call, the newest first.
async fn noted(
    connection: &mut Connection,
    conversation_id: &str,
    execution_id: &str,
) -> Result<Vec<NotedRow>> {
    let noted = NotedAnswers {
        conversation_id,
        execution_id,
    };
    Ok(noted.query_as()?.fetch_all(connection).await?)
}

/// Keeps the newest answer of each person. The last word of a person counts.
fn newest_words(mut noted: Vec<NotedRow>) -> Vec<NotedRow> {
    let mut people = BTreeSet::new();
    noted.retain(|row| people.insert(row.answered_by.clone()));
    noted
}

/// Returns another person with the right to approve who has approved the same input; `None` without such a person.
async fn seconder<'a>(
    connection: &mut Connection,
    conversation_id: &str,
    row: &NotedRow,
    words: &'a [NotedRow],
) -> Result<Option<&'a str>> {
    for other in words {
        let Some(who) = other.who().filter(|who| Some(*who) != row.who()) else {
            continue;
        };
        if !other.approves_input_of(row) {
            continue;
        }
        let call = &row.answer.execution_id;
        let terms = terms(connection, conversation_id, call, Some(who)).await?;
        if terms.is_some_and(|terms| terms.lets_approve(Some(who))) {
            return Ok(Some(who));
        }
    }
    Ok(None)
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
    let mut noted = noted(connection, conversation_id, &execution_id).await?;
    // A call may have several requests, and an answer counts for one.
    noted.retain(|row| row.answer.input_hash() == answer.input_hash);
    if noted.iter().all(|row| row.answer_id != answer_id) {
        let terms = terms(connection, conversation_id, &execution_id, None).await?;
        return Ok(terms.and_then(|terms| through_engine(&terms, answer)));
    }
    let words = newest_words(noted);
    for row in &words {
        let who = row.who();
        let terms = terms(connection, conversation_id, &execution_id, who).await?;
        let Some(terms) = terms else {
            return Ok(None);
        };
        if row.answer.outcome() != ApprovalState::Approved {
            *answer = row.as_answer(None);
            return Ok(None);
        }
        if !terms.lets_approve(who) {
            continue;
        }
        if !terms.needs_second(&row.answer) {
            *answer = row.as_answer(None);
            return Ok(None);
        }
        if let Some(editor) = seconder(connection, conversation_id, row, &words).await? {
            *answer = row.as_answer(Some(editor));
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

    /// True for an approval of the input of another answer.
    fn approves_input_of(&self, other: &Self) -> bool {
        let is_same = match (&self.answer.tool_input, &other.answer.tool_input) {
            (Some(own), Some(input)) => own.is_same_value(input),
            (own, input) => own.is_none() && input.is_none(),
        };
        self.answer.outcome() == ApprovalState::Approved && is_same
    }

    /// Returns the noted answer, to be saved. `editor` proposed the input that the answer approves.
    fn as_answer(&self, editor: Option<&str>) -> SaveApproval {
        let noted = self.answer.0.clone();
        SaveApproval {
            execution_id: noted.execution_id.clone(),
            decision: noted.outcome().into(),
            tool_input: noted.tool_input,
            reason: noted.reason,
            remember: noted.remember,
            resolved_by: self.who().map(str::to_owned),
            answer_id: Some(self.answer_id.clone()),
            is_through_engine: false,
            edited_by: editor.map(str::to_owned),
            input_hash: noted.input_hash.unwrap_or_default(),
            answer: noted.answer,
        }
    }
}

impl Terms {
    /// True when the answer approves another input than the model's, and a second other person must approve the input.
    /// With the input, the first person decides what runs, as the person who asked did before.
    pub(super) fn needs_second(&self, answer: &ResolveApproval) -> bool {
        let edited = answer.tool_input.as_ref();
        let is_edited = edited.is_some_and(|edited| !edited.is_same_value(&self.tool_input));
        is_edited
            && answer.outcome() == ApprovalState::Approved
            && self.approval_rule.by() != ApprovalBy::Anyone
    }

    pub(super) fn lets_approve(&self, who: Option<&str>) -> bool {
        match self.approval_rule.by() {
            ApprovalBy::Anyone => true,
            // A rule that only a newer version knows counts as at least this strict.
            ApprovalBy::Other | ApprovalBy::Unknown(_) => who.is_some() && !self.may_have_asked,
        }
    }
}

/// Returns the terms of a call for a person; `None` for an unknown call. `who` is `None` for an unknown person.
pub(super) async fn terms(
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
