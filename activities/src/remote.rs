//! A remote tool before and after its activity: the claim, and the record of its end (invariant 6, done once).
//!
//! A worker of the operator runs the activity itself, in the language of any Temporal SDK, without access to the store.
//! Therefore the workflow claims first, and its run is the claimant. The run schedules the activity together with the
//! claim's result or not at all, so a run that claims again has not scheduled the activity.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use everturn_proto::{
    ConversationName, Json,
    limits::REMOTE_INPUT_MAX_BYTES,
    turn::{
        ClaimedRemoteTool, RecordRemoteToolRequest, RemoteToolInput, RemoteToolResult,
        RunToolRequest, RunToolResult, record_remote_tool_request::End,
    },
    words::FailureCode,
};
use everturn_store::{ToolCaller, ToolClaim, ToolClaims, ToolEnd, ToolKey, ToolRecord};
use everturn_supervisor::failpoint;
use everturn_telemetry::trace;
use everturn_tools::{Asker, ToolRegistry};
use serde_json::json;
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::{
    call_context::idempotency_key,
    elsewhere::{Peers, lacks_tool, removed_tool},
    failure as fail,
    run_tool::{INTERRUPTED, agreed, key_of, no_tool},
    save::Saver,
    store_call::once,
};

/// Claims and records the tools of other workers.
#[derive(Clone)]
pub(crate) struct RemoteTools {
    pub(crate) tool_claims: Arc<dyn ToolClaims>,
    pub(crate) tools: Arc<ToolRegistry>,
    /// Saves the observe of a tool.
    pub(crate) saver: Saver,
    pub(crate) peers: Peers,
}

impl RemoteTools {
    /// Claims the tool for the workflow's run. Records the failure of an impossible call as the call's end.
    pub(crate) async fn claim(
        &self,
        ctx: &ActivityContext,
        request: RunToolRequest,
    ) -> Result<ClaimedRemoteTool, ActivityError> {
        let run_id = ctx.info().workflow_run_id.clone().ok_or_else(|| {
            fail::permanent(
                FailureCode::Internal,
                "The claim of a remote tool belongs to no workflow run.",
            )
        })?;
        let key = key_of(request);
        failpoint::reach_in("tool.before_claim", &key.conversation_id, &key.execution_id).await;
        let claim = once(ctx, self.tool_claims.claim_tool(&key, &run_id)).await?;
        failpoint::reach_in("tool.after_claim", &key.conversation_id, &key.execution_id).await;
        let refused = match claim {
            // A remote tool asks nobody, so its call never waits for an answer.
            ToolClaim::Ended(_) | ToolClaim::Asks(_) => return Ok(ClaimedRemoteTool::default()),
            ToolClaim::OutcomeUnknown { .. } => ToolEnd::unknown(INTERRUPTED, 0),
            ToolClaim::Run { record, caller } => {
                let missing = lacks_tool(&self.tools, &record.call);
                let elsewhere = missing.as_ref();
                let elsewhere = elsewhere.and_then(|it| self.peers.left_to_others(ctx, it));
                if let Some(elsewhere) = elsewhere {
                    once(ctx, self.tool_claims.release_tool(&key, &run_id)).await?;
                    return Err(elsewhere);
                }
                let refusal = match missing {
                    Some(_) => Some(removed_tool(&record.call.tool_name)),
                    None => self.refusal(&record, &caller).await,
                };
                match refusal {
                    Some(message) => ToolEnd::failed(&message, 0),
                    None => return Ok(claimed(key, record, caller, run_id)),
                }
            }
        };
        once(ctx, self.tool_claims.finish_tool(&key, refused)).await?;
        Ok(ClaimedRemoteTool::default())
    }

    /// Records the end of the tool. The result is shortened and checked like any tool's.
    pub(crate) async fn record(
        &self,
        ctx: &ActivityContext,
        request: RecordRemoteToolRequest,
    ) -> Result<RunToolResult, ActivityError> {
        let (Some(tool), Some(end)) = (request.tool, request.end) else {
            return Err(fail::permanent(
                FailureCode::Internal,
                "The record names no tool or no end.",
            ));
        };
        let may_observe = tool.may_observe;
        let key = key_of(tool);
        let end = match end {
            End::Result(result) => {
                let result = json_of(result);
                ToolEnd::of_tool(&key.execution_id, result, false, request.duration_ms)
            }
            End::Failed(message) => ToolEnd::failed(&message, request.duration_ms),
            End::Unknown(message) => ToolEnd::unknown(&message, request.duration_ms),
        };
        failpoint::reach_in(
            "tool.before_record",
            &key.conversation_id,
            &key.execution_id,
        )
        .await;
        let stored = once(ctx, self.tool_claims.finish_tool(&key, end)).await?;
        failpoint::reach_in("tool.after_record", &key.conversation_id, &key.execution_id).await;
        Ok(RunToolResult {
            status: stored.status.into(),
            observed: may_observe && self.saver.observe(key).await,
            question: None,
        })
    }

    /// Returns the reason why the call cannot succeed and needs no activity. The text is for the model.
    async fn refusal(&self, record: &ToolRecord, caller: &ToolCaller) -> Option<String> {
        let call = &record.call;
        if !call.names_a_tool() {
            return Some(no_tool(&call.tool_name));
        }
        let input = call.tool_input.clone().unwrap_or_default();
        let bytes = input.as_str().len();
        if bytes > REMOTE_INPUT_MAX_BYTES {
            return Some(format!(
                "The arguments have {bytes} bytes; the limit of the tool is {REMOTE_INPUT_MAX_BYTES}."
            ));
        }
        let asker = Asker {
            tenant_id: &caller.tenant_id,
            owner_id: caller.owner_id.as_deref(),
            agent: &caller.agent,
        };
        match self.tools.find(&call.tool_name, asker).await {
            Ok(tool) => agreed(&tool, call)
                .and_then(|()| tool.validate(&input))
                .err(),
            Err(error) => Some(error.to_string()),
        }
    }
}

fn claimed(
    key: ToolKey,
    record: ToolRecord,
    caller: ToolCaller,
    run_id: String,
) -> ClaimedRemoteTool {
    let call = record.call;
    let idempotency_key = idempotency_key(&key);
    let input = RemoteToolInput {
        tool_name: call.tool_name,
        tool_input: Some(call.tool_input.unwrap_or_default()),
        tool_call_id: call.call_id,
        execution_id: key.execution_id,
        conversation_id: ConversationName::of_id(&key.conversation_id).to_owned(),
        message_id: key.message_id,
        idempotency_key,
        attempt: record.attempt,
        effect: call.effect,
        run_id,
        agent_execution_id: key.agent_execution_id,
        depth: caller.depth,
        tenant_id: caller.tenant_id,
        owner_id: caller.owner_id.unwrap_or_default(),
        agent: caller.agent,
    };
    ClaimedRemoteTool {
        input: Some(input),
        headers: trace::headers().into_iter().collect(),
    }
}

/// Returns the result of an SDK as JSON: from JSON, from nothing, or from bytes, which become base64 with their type.
fn json_of(result: RemoteToolResult) -> Json {
    let RemoteToolResult { encoding, data } = result;
    match encoding.as_str() {
        "" | "binary/null" => Json::default(),
        encoding => match String::from_utf8(data) {
            Ok(text) if encoding.starts_with("json/") => {
                Json::parse(text.clone()).unwrap_or_else(|_| Json::of(&text))
            }
            Ok(text) => base64(encoding, text.as_bytes()),
            Err(error) => base64(encoding, error.as_bytes()),
        },
    }
}

fn base64(encoding: &str, data: &[u8]) -> Json {
    Json::of(&json!({ "encoding": "base64", "type": encoding, "data": STANDARD.encode(data) }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(encoding: &str, data: &[u8]) -> serde_json::Value {
        json_of(RemoteToolResult {
            encoding: encoding.into(),
            data: data.into(),
        })
        .to_value()
    }

    #[test]
    fn results_of_every_encoding_are_shown() {
        assert_eq!(shown("json/plain", br#"{"n":1}"#), json!({"n": 1}));
        assert_eq!(shown("json/protobuf", b"{}"), json!({}));
        assert_eq!(
            (shown("", b""), shown("binary/null", b"")),
            (json!(null), json!(null))
        );
        let bytes = json!({"encoding": "base64", "type": "binary/plain", "data": "/w=="});
        assert_eq!(shown("binary/plain", b"\xff"), bytes);
        assert_eq!(shown("json/plain", b"no json"), json!("no json"));
    }

    proptest! {
        #[test]
        fn any_result_of_another_worker_is_json(
            encoding in "|binary/(null|plain)|json/(plain|protobuf)|\\PC{0,9}", data in prop::collection::vec(any::<u8>(), 0..30),
            text in "[\\[\\]{}\":,0-9a-z\\\\]{0,20}",
        ) {
            for data in [data, text.into_bytes()] {
                let json = json_of(RemoteToolResult { encoding: encoding.clone(), data });
                prop_assert!(Json::parse(json.as_str()).is_ok(), "{}", json.as_str());
            }
        }
    }
}
