//! Reads the event log. Every method is one statement, and therefore reads one snapshot of the database.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use everturn_proto::turn::ToolCall;

use super::{
    Database,
    statement::Statement as _,
    statements::events::{
        ConversationStatus, Events, EventsBefore, LastCommon, LastSequences, Links,
    },
};
use crate::{
    api::{
        Access, ApprovedCall, ConversationHead, EventLinks, EventLog, EventPage, EventReader,
        PageLimit, Result, WantedLinks,
    },
    columns::narrow,
    rows::{
        conversations::{EventRow, LinkRow, StatusRow},
        ranked::RankedRow,
    },
};

#[async_trait]
impl EventReader for Database {
    async fn events(
        &self,
        access: &Access,
        log: &EventLog,
        from_sequence: u32,
        limit: PageLimit,
    ) -> Result<EventPage> {
        let select = Events {
            conversation_id: &log.conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            // Event numbers begin at 1 and have no gaps.
            from_sequence: i64::from(from_sequence.max(1)),
            row_limit: i64::from(limit.rows) + 1,
            log_id: log.id.as_str(),
            most_bytes: i64::from(limit.bytes),
        };
        let query = select.query_as()?;
        let rows: Vec<RankedRow<EventRow>> = self.read(query.fetch_all(self.reader())).await?;
        let (mut rows, has_more) = limit.cut(rows);
        let generations = rows.first_mut().and_then(|row| row.generations.take());
        Ok(EventPage {
            events: rows
                .into_iter()
                .map(|row| row.into_event(&log.conversation_id))
                .collect(),
            has_more,
            generations: generations.map_or_else(BTreeMap::new, |column| column.0),
        })
    }

    async fn events_before(
        &self,
        access: &Access,
        log: &EventLog,
        before: u32,
        limit: PageLimit,
    ) -> Result<EventPage> {
        let select = EventsBefore {
            conversation_id: &log.conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            before_sequence: i64::from(before),
            row_limit: i64::from(limit.rows) + 1,
            log_id: log.id.as_str(),
            most_bytes: i64::from(limit.bytes),
        };
        let query = select.query_as()?;
        let rows: Vec<RankedRow<EventRow>> = self.read(query.fetch_all(self.reader())).await?;
        let (mut rows, has_more) = limit.cut(rows);
        rows.reverse();
        let events = rows.into_iter();
        Ok(EventPage {
            events: events
                .map(|row| row.into_event(&log.conversation_id))
                .collect(),
            has_more,
            generations: BTreeMap::new(),
        })
    }

    async fn event_links(
        &self,
        access: &Access,
        log: &EventLog,
        wanted: &WantedLinks,
    ) -> Result<EventLinks> {
        let select = Links {
            conversation_id: &log.conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            log_id: log.id.as_str(),
            agent_execution_ids: &wanted.agent_executions,
            execution_ids: &wanted.tool_executions,
        };
        let query = select.query_as()?;
        let rows: Vec<LinkRow> = self.read(query.fetch_all(self.reader())).await?;
        let mut links = EventLinks::default();
        for LinkRow {
            id,
            call_id,
            tool_input,
            title_template,
        } in rows
        {
            if let Some(call_id) = call_id {
                links.parent_calls.insert(id, call_id);
            } else if let Some(input) = tool_input {
                let call = ToolCall {
                    tool_input: Some(input.0),
                    title_template: title_template.unwrap_or_default(),
                    ..ToolCall::default()
                };
                let approved = ApprovedCall {
                    title: call.title(),
                    tool_input: call.tool_input.unwrap_or_default(),
                };
                links.approved_calls.insert(id, approved);
            }
        }
        Ok(links)
    }

    async fn last_common(
        &self,
        access: &Access,
        log: &EventLog,
        before: u32,
        saved_by: DateTime<Utc>,
    ) -> Result<u32> {
        let select = LastCommon {
            conversation_id: &log.conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
            log_id: log.id.as_str(),
            before_sequence: i64::from(before),
            saved_by,
        };
        let query = select.query_as()?;
        let last: Option<(i64,)> = self.read(query.fetch_optional(self.reader())).await?;
        last.map_or(Ok(0), |(last,)| narrow(last))
    }

    async fn conversation_head(
        &self,
        access: &Access,
        conversation_id: &str,
    ) -> Result<Option<ConversationHead>> {
        let select = ConversationStatus {
            conversation_id,
            tenant_id: &access.tenant_id,
            owner_id: access.owner_id.as_deref(),
        };
        let query = select.query_as()?;
        let row: Option<StatusRow> = self.read(query.fetch_optional(self.reader())).await?;
        Ok(row.map(ConversationHead::from))
    }

    async fn last_sequences(&self, conversation_ids: &[String]) -> Result<Vec<(EventLog, u32)>> {
        if conversation_ids.is_empty() {
            return Ok(Vec::new());
        }
        let query = LastSequences { conversation_ids }.query_as()?;
        let rows: Vec<(String, String, i64)> = self.read(query.fetch_all(self.reader())).await?;
        rows.into_iter()
            .map(|(conversation_id, log_id, last_sequence)| {
                let id = log_id.into();
                let log = EventLog {
                    conversation_id,
                    id,
                };
                Ok((log, narrow(last_sequence)?))
            })
            .collect()
    }

    async fn check(&self) -> Result<()> {
        self.check_room()?;
        let nobody = Access::tenant("check");
        self.conversation_head(&nobody, "check").await.map(drop)
    }
}
