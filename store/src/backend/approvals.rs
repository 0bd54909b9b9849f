//! Who answers an approval, and whether they may. What a gateway has noted counts, and nothing that travels through the
//! engine.

use everturn_proto::{
    turn::{CallRule, SaveApproval},
    words::{AnswersFrom, ApprovalBy, ApprovalRefusal, ApprovalState, OPERATOR},
};
use sqlx::{FromRow, types::Json as Column};

use super::{
    Connection,
    sql::outside::{ANSWERED_BY, CALL_RULE},
};
use crate::api::Result;

/// What is known of a call that waits, and of somebody who answers.
#[derive(FromRow)]
struct Terms {
    approval_rule: Column<CallRule>,
    may_have_asked: bool,
}

/// Tells whether somebody may approve a call; `None`: nobody is known. A call that is not there is approved by
/// nobody, and whoever saves an answer to it is told so.
pub(super) async fn may_approve(
    connection: &mut Connection,
    conversation_id: &str,
    execution_id: &str,
    who: Option<&str>,
) -> Result<bool> {
    let terms = terms(connection, conversation_id, execution_id, who).await?;
    Ok(terms.is_none_or(|terms| terms.lets_approve(who)))
}

/// Names who has answered, as a gateway has noted it, or returns why the answer is refused.
pub(super) async fn authenticate(
    connection: &mut Connection,
    conversation_id: &str,
    answer: &mut SaveApproval,
) -> Result<Option<ApprovalRefusal>> {
    // Nobody has answered when the time is over.
    let Some(answer_id) = answer.answer_id.clone() else {
        return Ok(None);
    };
    let noted: Option<String> = sqlx::query_scalar(ANSWERED_BY)
        .bind(conversation_id)
        .bind(&answer.execution_id)
        .bind(&answer_id)
        .fetch_optional(&mut *connection)
        .await?;
    let who = noted.as_deref().filter(|who| !who.is_empty());
    let terms = terms(connection, conversation_id, &answer.execution_id, who).await?;
    let Some(terms) = terms else {
        return Ok(None);
    };
    if noted.is_none() {
        match terms.approval_rule.answers_from() {
            AnswersFrom::Unbound | AnswersFrom::Engine => {}
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

impl Terms {
    fn lets_approve(&self, who: Option<&str>) -> bool {
        match self.approval_rule.by() {
            ApprovalBy::Anyone => true,
            // What only a newer version knows is at least as strict.
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
    let query = sqlx::query_as(CALL_RULE)
        .bind(conversation_id)
        .bind(execution_id)
        .bind(who.unwrap_or_default());
    Ok(query.fetch_optional(connection).await?)
}
