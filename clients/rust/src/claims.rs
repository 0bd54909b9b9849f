//! Claims of client tools: of several programs and devices that see a call, one runs it.

use std::time::Duration;

use serde_json::json;

use crate::{error::ClientError, gateway::GatewayClient};

/// Answer to a claim of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Run the tool, and claim the call again every 10 seconds until its result is posted: a claim holds for 30 seconds.
    Run {
        /// True when another client had begun the call, and died: the tool may have had its effect.
        is_repeated: bool,
    },
    /// Another client runs it. Claim it again after this time.
    Held(Duration),
    /// Nobody waits for it any more.
    Over,
}

impl GatewayClient {
    /// Claims a call of a client tool, before the tool runs. `claimant` is the program's own id of itself, or of this run of
    /// the call.
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
