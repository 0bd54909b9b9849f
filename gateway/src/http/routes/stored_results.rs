//! Results of tools that someone outside ran, whoever that is: their size, and what is answered.
//!
//! Must not be here: who may send which result (`client_tools.rs`, `remote_tools.rs`).

use chrono::{DateTime, Utc};
use everturn_proto::{Json, limits::TOOL_RESULT_MAX_BYTES};
use everturn_store::{OutsideTool, ToolEnd};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::Object};

use crate::{
    http::problem::{Code, Problem},
    schema::{Id, one_of},
};

/// A result that is stored.
#[derive(Serialize, ToSchema)]
#[schema(as = StoredResult)]
pub(super) struct StoredResultBody {
    #[schema(value_type = Id)]
    execution_id: String,
    #[schema(schema_with = statuses)]
    status: &'static str,
}

impl StoredResultBody {
    /// The answer about this tool execution.
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

/// The milliseconds from one time to another.
pub(super) fn milliseconds(from: DateTime<Utc>, to: DateTime<Utc>) -> u32 {
    u32::try_from((to - from).num_milliseconds().max(0)).unwrap_or(u32::MAX)
}

/// Refuses a result that is too large.
pub(super) fn checked_size(result: &Json) -> Result<(), Problem> {
    if result.as_str().len() <= TOOL_RESULT_MAX_BYTES {
        return Ok(());
    }
    let detail =
        format!("A result has at most {TOOL_RESULT_MAX_BYTES} bytes. Send less, or a part.");
    Err(Problem::new(Code::ResultTooLarge, detail))
}

/// True when the stored end says the same. The values are compared, because a database may write JSON differently.
pub(super) fn is_ended_by(call: &OutsideTool, end: &ToolEnd) -> bool {
    let is_same = |stored: &ToolEnd| {
        (&stored.status, stored.is_error) == (&end.status, end.is_error)
            && stored.result.to_value() == end.result.to_value()
    };
    call.record.end.as_ref().is_some_and(is_same)
}
