//! Tool calls answered from outside: by a person, a client or a remote tool.

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, Utc};
use everturn_proto::words::{ToolKind, ToolStatus};

use super::{
    Database, approvals,
    dialect::{list, words},
    key_of_caller, runnable_approvals,
    sql::{self, outside, tools},
};
use crate::{
    api::{
        Access, ClientToolClaim, NewAnswer, NewAuditEntry, NotedAnswer, OutsideTool, OutsideTools,
        PageLimit, Result, ResultSender, ToolEnd,
    },
    columns::now,
    rows::ranked::RankedRow,
};

/// The most noted answers per call. The turn takes the first valid answer, so further answers exist only if they arrive
/// before the turn stores its choice.
const MAX_ANSWERS: i64 = 32;

#[async_trait]
impl OutsideTools for Database {
    async fn waiting_tools(
        &self,
        access: &Access,
        conversation_id: &str,
        limit: PageLimit,
    ) -> Result<Vec<OutsideTool>> {
        let query = sql::for_caller(outside::WAITING_TOOLS, access, conversation_id);
        let query = query
            .bind(i64::from(limit.rows) + 1)
            .bind(i64::from(limit.bytes));
        let rows: Vec<RankedRow<OutsideTool>> = self.read(query.fetch_all(self.reader())).await?;
        let (waiting, _) = limit.cut(rows);
        Ok(waiting)
    }

    async fn outside_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
    ) -> Result<Option<OutsideTool>> {
        let query = sql::for_caller(outside::OUTSIDE_TOOL, access, conversation_id);
        let query = query.bind(execution_id);
        self.read(query.fetch_optional(self.reader())).await
    }

    async fn store_result(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        sender: ResultSender<'_>,
        end: ToolEnd,
    ) -> Result<Option<OutsideTool>> {
        let runnable = runnable_approvals();
        let (kind, status, run_id) = match sender {
            ResultSender::Client => (ToolKind::Client, ToolStatus::Pending, None),
            ResultSender::RemoteTool { run_id } => {
                (ToolKind::Remote, ToolStatus::Running, Some(run_id))
            }
        };
        // A single statement decides. The end of the turn locks the same record and therefore comes before or after
        // this statement.
        let query = tools::ended::<(String,)>(words(outside::STORE_RESULT), &end, now())?
            .bind(conversation_id)
            .bind(execution_id)
            .bind(&access.tenant_id)
            .bind(&access.owner_id)
            .bind(list(&runnable))
            .bind(kind.as_str())
            .bind(status.as_str())
            .bind(run_id);
        let call = self.in_time(async { Ok(query.fetch_all(&mut *self.single().await?).await?) });
        self.in_claim_share(&key_of_caller(access, conversation_id), call)
            .await?;
        self.outside_tool(access, conversation_id, execution_id)
            .await
    }

    async fn note_answer(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        answer: NewAnswer<'_>,
        audit: Option<&NewAuditEntry>,
    ) -> Result<NotedAnswer> {
        if answer.approves {
            let may = self.in_time(async {
                let connection = &mut *self.single().await?;
                let who = answer.answered_by;
                approvals::may_approve(connection, conversation_id, execution_id, who).await
            });
            if !may.await? {
                return Ok(NotedAnswer::NeedsOther);
            }
        }
        let query = sql::for_caller(outside::NOTE_ANSWER, access, conversation_id)
            .bind(execution_id)
            .bind(answer.id)
            .bind(answer.answered_by.unwrap_or_default())
            .bind(now())
            .bind(MAX_ANSWERS);
        let is_made = Option::is_some;
        let call = self.audited(audit, is_made, async |connection| {
            Ok(query.fetch_optional(&mut *connection).await?)
        });
        let noted: Option<(String,)> = call.await?;
        Ok(match noted {
            Some(_) => NotedAnswer::Noted,
            None => NotedAnswer::TooMany,
        })
    }

    async fn claim_client_tool(
        &self,
        access: &Access,
        conversation_id: &str,
        execution_id: &str,
        claimant: &str,
        until: DateTime<Utc>,
    ) -> Result<Option<ClientToolClaim>> {
        // A single statement decides which client gets the call.
        let query = sql::for_caller(outside::CLAIM_CLIENT_TOOL, access, conversation_id);
        let query = query
            .bind(execution_id)
            .bind(claimant)
            .bind(until.trunc_subsecs(3))
            .bind(now());
        let call =
            self.in_time(async { Ok(query.fetch_optional(&mut *self.single().await?).await?) });
        let key = key_of_caller(access, conversation_id);
        let claimed: Option<(i64,)> = self.in_claim_share(&key, call).await?;
        if let Some((claims,)) = claimed {
            let is_repeated = claims > 1;
            return Ok(Some(ClientToolClaim::Run { is_repeated }));
        }
        let query = sql::for_caller(outside::CLIENT_TOOL_CLAIM, access, conversation_id);
        let query = query.bind(execution_id);
        let held: Option<(DateTime<Utc>,)> = self.read(query.fetch_optional(self.reader())).await?;
        Ok(held.map(|(until,)| ClientToolClaim::Held { until }))
    }
}
