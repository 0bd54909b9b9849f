//! Asks the engine's list of workflows for the conversations with a running workflow.
//!
//! The list answers for many conversations at once, but may be behind the engine (docs/engine.md, the list of workflows).

use std::collections::HashSet;

use everturn_proto::ids;
use temporalio_client::tonic::Request;
use temporalio_common::protos::temporal::api::workflowservice::v1::ListWorkflowExecutionsRequest;

use super::{
    port::TurnError,
    temporal::{TemporalTurns, unavailable},
};

/// The rows of a page of the list: the engine's own limit (docs/engine.md, the list of workflows).
const PAGE: i32 = 1000;
/// The most pages of an answer. A conversation has one running workflow, and the list may still show its previous run as
/// running, so an answer for a page of conversations rarely has a second page.
const PAGES: usize = 3;

impl TemporalTurns {
    /// Returns those of the conversations whose workflow runs according to the list.
    pub(super) async fn list_running(
        &self,
        conversation_ids: &[String],
    ) -> Result<HashSet<String>, TurnError> {
        let mut running = HashSet::new();
        if conversation_ids.is_empty() {
            return Ok(running);
        }
        let mut request = ListWorkflowExecutionsRequest {
            namespace: self.namespace(),
            page_size: PAGE,
            query: query(conversation_ids),
            ..ListWorkflowExecutionsRequest::default()
        };
        let mut listed = HashSet::new();
        for _ in 0..PAGES {
            let mut service = self.client().connection().workflow_service();
            let call = service.list_workflow_executions(Request::new(request.clone()));
            let page = self.within(call).await?.map_err(unavailable)?.into_inner();
            let runs = page.executions.into_iter().filter_map(|run| run.execution);
            listed.extend(runs.map(|run| run.workflow_id));
            if page.next_page_token.is_empty() {
                break;
            }
            request.next_page_token = page.next_page_token;
        }
        let is_listed = |id: &&String| listed.contains(&ids::workflow_id(id));
        running.extend(conversation_ids.iter().filter(is_listed).cloned());
        Ok(running)
    }
}

/// Returns the list query for the running workflows of conversations.
fn query(conversation_ids: &[String]) -> String {
    let quoted = conversation_ids.iter().map(|id| {
        let id = ids::workflow_id(id).replace('\'', "''");
        format!("'{id}'")
    });
    let quoted: Vec<_> = quoted.collect();
    format!(
        "ExecutionStatus = 'Running' AND WorkflowId IN ({})",
        quoted.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_workflows_of_these_conversations_are_asked_for() {
        let ids = ["a", "b' OR '1'='1"].map(str::to_owned);
        assert_eq!(
            query(&ids),
            "ExecutionStatus = 'Running' AND WorkflowId IN ('conversation-a', 'conversation-b'' OR ''1''=''1')"
        );
    }
}
