//! Reads the list of conversations page by page.

use serde_json::Value;

use crate::{
    error::ClientError,
    gateway::GatewayClient,
    list::{ListFilter, ListedConversation},
};

/// The most conversations of a page (`docs/api/conversations.md`).
const MAX_PAGE: u32 = 200;

impl GatewayClient {
    /// Returns at most `limit` calls of all conversations that wait for an approval, the nearest deadline first, and
    /// whether no further call waits. Each call has the fields of `InboxApproval` (`docs/api/tool-calls.md`). The key needs
    /// the scope `approve`.
    pub async fn waiting_approvals(&self, limit: u32) -> Result<(Vec<Value>, bool), ClientError> {
        let mut found = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let left = limit - u32::try_from(found.len()).unwrap_or(limit);
            if left == 0 {
                return Ok((found, false));
            }
            let page_limit = left.min(MAX_PAGE).to_string();
            let mut query = vec![("state", "waiting"), ("limit", page_limit.as_str())];
            query.extend(after.as_deref().map(|after| ("after", after)));
            let page = self.get("/approvals", &query).await?;
            let calls = page["approvals"].as_array();
            found.extend(
                calls
                    .ok_or(ClientError::Unexpected("approvals"))?
                    .iter()
                    .cloned(),
            );
            let Some(next) = page["next_after"].as_str() else {
                return Ok((found, true));
            };
            after = Some(next.to_owned());
        }
    }

    /// Returns at most `limit` conversations, the last updated first, and whether the list has no more conversations.
    pub async fn conversations(
        &self,
        filter: &ListFilter,
        limit: u32,
    ) -> Result<(Vec<ListedConversation>, bool), ClientError> {
        let mut found = Vec::new();
        let mut before: Option<String> = None;
        loop {
            let left = limit - u32::try_from(found.len()).unwrap_or(limit);
            if left == 0 {
                return Ok((found, false));
            }
            let page_limit = left.min(MAX_PAGE).to_string();
            let mut query = vec![("limit", page_limit.as_str())];
            query.extend(filter.agent.as_deref().map(|agent| ("agent", agent)));
            query.extend(filter.search.as_deref().map(|text| ("search", text)));
            let party = filter.waiting_for.as_deref();
            query.extend(party.map(|party| ("waiting_for", party)));
            query.extend(before.as_deref().map(|before| ("before", before)));
            let page = self.get("/conversations", &query).await?;
            let rows = page["conversations"].as_array();
            let rows = rows.ok_or(ClientError::Unexpected("conversations"))?;
            for row in rows {
                let row = ListedConversation::of(row);
                found.push(row.ok_or(ClientError::Unexpected("id"))?);
            }
            let Some(next) = page["next_before"].as_str() else {
                return Ok((found, true));
            };
            before = Some(next.to_owned());
        }
    }
}
