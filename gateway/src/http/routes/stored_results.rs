//! Results of tools that a client or a remote tool server ran: the size limit and the response.
//!
//! Must not be here: the rules for the senders of results (`client_tools.rs`, `remote_tools.rs`).

use chrono::{DateTime, Utc};
use everturn_proto::{Json, limits::TOOL_RESULT_MAX_BYTES};
use everturn_store::{OutsideTool, ToolEnd};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::{
    http::problem::{Code, Problem},
    schema::{Id, one_of},
};

/// A stored result.
#[derive(Serialize, ToSchema)]
#[schema(as = StoredResult)]
pub(super) struct StoredResultBody {
    #[schema(value_type = Id)]
    execution_id: String,
    #[schema(schema_with = statuses)]
    status: &'static str,
}

impl StoredResultBody {
    /// Returns the response for the given tool execution.
    pub(super) fn of(execution_id: String) -> Self {
        Self {
            execution_id,
            status: "stored",
        }
    }
}

fn statuses() -> Object {
    one_of(&["stored"])
}

/// Returns the milliseconds between two times.
pub(super) fn milliseconds(from: DateTime<Utc>, to: DateTime<Utc>) -> u32 {
    u32::try_from((to - from).num_milliseconds().max(0)).unwrap_or(u32::MAX)
}

/// Refuses a result over the size limit.
pub(super) fn checked_size(result: &Json) -> Result<(), Problem> {
    if result.as_str().len() <= TOOL_RESULT_MAX_BYTES {
        return Ok(());
    }
    let detail = format!(
        "A result may have at most {TOOL_RESULT_MAX_BYTES} bytes. Send a smaller result, or a part."
    );
    Err(Problem::new(Code::ResultTooLarge, detail))
}

/// Returns true when the stored end equals `end`. JSON is compared by value, because a database may reformat JSON text.
pub(super) fn is_ended_by(call: &OutsideTool, end: &ToolEnd) -> bool {
    let is_same = |stored: &ToolEnd| {
        (&stored.status, stored.is_error) == (&end.status, end.is_error)
            && stored.result.to_value() == end.result.to_value()
    };
    call.record.end.as_ref().is_some_and(is_same)
}
