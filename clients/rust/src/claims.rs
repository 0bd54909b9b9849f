//! Claims of client tools. Several programs and devices may see a call; the claim makes sure that only one runs the
//! tool.

use std::time::Duration;

use serde_json::json;

use crate::{error::ClientError, gateway::GatewayClient};

/// Answer to a claim of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Run the tool. Repeat the claim every 10 seconds until the result is posted, because a claim lasts 30 seconds.
    Run {
        /// True when another client had begun the call and died: the tool may have had its effect.
        is_repeated: bool,
    },
    /// Another client runs the tool. Claim again after the given time.
    Held(Duration),
    /// The call no longer waits for a result.
    Over,
}

impl GatewayClient {
    /// Claims a call of a client tool. Claim before running the tool. `claimant` is an id chosen by the program, for
    /// itself or for the current run of the tool.
    pub async fn claim_client_tool(
        &self,
        conversation_id: &str,
        execution_id: &str,
        claimant: &str,
    ) -> Result<Claim, ClientError> {
        let path = format!("/conversations/{conversation_id}/client-tools/{execution_id}/claim");
        match self.post(&path, &json!({ "claimant": claimant })).await {
            Ok(claimed) => {
                let is_repeated = claimed["is_repeated"].as_bool();
                let is_repeated = is_repeated.ok_or(ClientError::Unexpected("is_repeated"))?;
                Ok(Claim::Run { is_repeated })
            }
            Err(ClientError::Refused(problem)) => match problem.code.as_str() {
                "client_tool_claimed" => {
                    let least = Duration::from_secs(1);
                    Ok(Claim::Held(problem.retry_after.unwrap_or(least).max(least)))
                }
                "client_tool_answered" | "client_tool_expired" => Ok(Claim::Over),
                _ => Err(problem.into()),
            },
            Err(error) => Err(error),
        }
    }
}
