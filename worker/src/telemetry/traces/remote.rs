//! Sends the span of a remote tool's activity to the tool's worker, in the header that the OpenTelemetry plugins of
//! Temporal's SDKs read.
//!
//! The activity's input (`RemoteToolInput`) already contains the span. Therefore the history has the span, and a
//! replay finds an identical one. The workflow decides nothing by the span.

use std::collections::BTreeMap;

use everturn_codec::left_clear;
use everturn_proto::turn::RemoteToolInput;
use everturn_telemetry::trace::{TRACE_PARENT, TRACE_STATE};
use temporalio_common::protos::temporal::api::common::v1::Payload;
use temporalio_sdk::workflow_interceptors::{
    CancellableWorkflowOutboundFuture, ScheduleActivityInput, ScheduleActivityResult,
    WorkflowInterceptor, WorkflowInterceptorConstructor, WorkflowInterceptorContext, WorkflowNext,
};

/// The header of Temporal's SDKs.
const HEADER: &str = "_tracer-data";

/// Adds the header to each activity whose input contains a span.
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
        if let Some(header) = input.input_ref::<RemoteToolInput>().and_then(header) {
            input.headers_mut().insert(HEADER.to_owned(), header);
        }
        next.run(input)
    }
}

fn header(input: &RemoteToolInput) -> Option<Payload> {
    let fields = [
        (TRACE_PARENT, &input.traceparent),
        (TRACE_STATE, &input.tracestate),
    ];
    let fields: BTreeMap<_, _> = fields
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    if fields.is_empty() {
        return None;
    }
    let mut header = Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: serde_json::to_vec(&fields).ok()?,
        ..Payload::default()
    };
    // The header stays in clear, because SDKs read headers without their codec. It contains only ids of a trace.
    left_clear(&mut header);
    Some(header)
}
