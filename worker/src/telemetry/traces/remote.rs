//! Sends the span of a remote tool's activity to the tool's worker, in the header that the OpenTelemetry plugins of
//! Temporal's SDKs read.
//!
//! The claim of the call returns the span beside the activity's input (`RemoteCall`). Therefore the history has the span,
//! and a replay finds an identical one. The workflow decides nothing by the span.

use std::collections::BTreeMap;

use everturn_codec::left_clear;
use everturn_proto::RemoteCall;
use temporalio_common::protos::temporal::api::common::v1::Payload;
use temporalio_sdk::workflow_interceptors::{
    CancellableWorkflowOutboundFuture, ScheduleActivityInput, ScheduleActivityResult,
    WorkflowInterceptor, WorkflowInterceptorConstructor, WorkflowInterceptorContext, WorkflowNext,
};

/// The header of Temporal's SDKs.
const HEADER: &str = "_tracer-data";

/// Adds the header to each activity of a remote tool whose call has headers.
pub fn tells_remote_tools() -> WorkflowInterceptorConstructor {
    WorkflowInterceptorConstructor::new(|_| ToRemoteTools)
}

struct ToRemoteTools;

impl WorkflowInterceptor for ToRemoteTools {
    fn schedule_activity(
        &self,
        _: WorkflowInterceptorContext,
        mut input: ScheduleActivityInput,
        next: WorkflowNext<
            'static,
            ScheduleActivityInput,
            CancellableWorkflowOutboundFuture<ScheduleActivityResult>,
        >,
    ) -> CancellableWorkflowOutboundFuture<ScheduleActivityResult> {
        if let Some(header) = input.input_ref::<RemoteCall>().and_then(header) {
            input.headers_mut().insert(HEADER.to_owned(), header);
        }
        next.run(input)
    }
}

fn header(call: &RemoteCall) -> Option<Payload> {
    if call.headers.is_empty() {
        return None;
    }
    let fields: BTreeMap<_, _> = call.headers.iter().collect();
    let mut header = Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: serde_json::to_vec(&fields).ok()?,
        ..Payload::default()
    };
    // The header stays in clear, because SDKs read headers without their codec. It contains only ids of a trace.
    left_clear(&mut header);
    Some(header)
}
