//! Payloads that a run must not take: the codec has refused the payload, or the payload has the key of another tenant.
//!
//! - A signal is dropped, and never fails the workflow task, because anybody in the engine's namespace may send signals.
//! - An update is refused by its validator, before the update enters the history.
//! - An input ends the run. Only a missing key fails the workflow task, and another worker with the key goes on.
//! - The end of an activity or of a sub-agent fails the workflow task, because the run has asked for it. A turn must not
//!   go on without what its own work has brought.
//!
//! Must not be here: how a payload is opened (`codec/`), the meaning of a refusal (`proto/src/payload.rs`).

use std::convert::Infallible;

use everturn_proto::{Lenient, ids, payload, turn::TurnInput, words::PayloadRefusal};
use temporalio_common::{
    data_converters::PayloadConversionError,
    protos::temporal::api::{common::v1::Payload, failure::v1::Failure},
};
use temporalio_workflow::{
    ActivityExecutionError, ChildWorkflowExecutionError, SyncWorkflowContext, WorkflowContext,
};

use crate::AgentExecution;

/// The text of a failed workflow task whose run has an unreadable end of an activity or of a sub-agent.
const UNREADABLE: &str = "This worker cannot read the end of an activity or of a sub-agent of the run. The log of the worker \
    names the reason. Give this worker every key of the ring of [codec], or turn `require` off until the run has ended.";

/// Returns the label of the input's tenant.
fn label(input: &TurnInput) -> String {
    ids::fairness_key(input.tenant())
}

/// Returns why the run must not take its input. The input itself names the tenant.
pub(crate) fn refusal_of_input(input: &Lenient<TurnInput>) -> Option<PayloadRefusal> {
    match &input.0 {
        Ok(turn) => input.refusal(&label(turn)),
        Err(_) => input.unopened(),
    }
}

/// Returns the text with which a run with a refused input must end. Without the key, the function fails the workflow task
/// and never returns.
pub(crate) async fn take_input<W>(
    ctx: &WorkflowContext<W>,
    refusal: Option<PayloadRefusal>,
) -> Result<(), String> {
    match refusal {
        None => Ok(()),
        Some(missing @ PayloadRefusal::NoKey) => match fail_task(ctx, missing.text()).await {},
        Some(
            refusal @ (PayloadRefusal::InClear
            | PayloadRefusal::Malformed
            | PayloadRefusal::ForeignTenant
            | PayloadRefusal::Unknown(_)),
        ) => Err(refusal.text().to_owned()),
    }
}

/// Fails the workflow task. The engine gives the task to a worker again, and the run begins anew from its history.
pub(crate) async fn fail_task<W>(ctx: &WorkflowContext<W>, text: &'static str) -> Infallible {
    ctx.force_task_fail(text);
    std::future::pending().await
}

/// Waits for the end of an activity, and fails the workflow task when this worker cannot read the end.
pub(crate) async fn readable<W, T>(
    ctx: &WorkflowContext<W>,
    activity: impl Future<Output = Result<T, ActivityExecutionError>>,
) -> Result<T, ActivityExecutionError> {
    let ended = activity.await;
    let is_unreadable = match &ended {
        Ok(_) => false,
        Err(ActivityExecutionError::Serialization(error)) => has_no_value(error),
        Err(error) => error.failure().is_some_and(has_refused_text),
    };
    if is_unreadable {
        match fail_task(ctx, UNREADABLE).await {}
    }
    ended
}

/// Waits for the end of a sub-agent, and fails the workflow task when this worker cannot read the end.
pub(crate) async fn readable_child<W, T>(
    ctx: &WorkflowContext<W>,
    child: impl Future<Output = Result<T, ChildWorkflowExecutionError>>,
) -> Result<T, ChildWorkflowExecutionError> {
    let ended = child.await;
    let is_unreadable = match &ended {
        Err(ChildWorkflowExecutionError::Serialization(error)) => has_no_value(error),
        // No decision depends on the text of a failed sub-agent.
        Ok(_) | Err(_) => false,
    };
    if is_unreadable {
        match fail_task(ctx, UNREADABLE).await {}
    }
    ended
}

/// True for a payload that is no JSON. Workers of Everturn write only JSON, so the codec has refused the payload.
fn has_no_value(error: &PayloadConversionError) -> bool {
    matches!(error, PayloadConversionError::WrongEncoding)
}

/// True when the codec has refused the text of a failure or of its causes.
fn has_refused_text(failure: &Failure) -> bool {
    let mut next = Some(failure);
    while let Some(failure) = next {
        let text = failure.encoded_attributes.as_ref();
        if text.and_then(payload::unopened).is_some() {
            return true;
        }
        next = failure.cause.as_deref();
    }
    false
}

impl AgentExecution {
    /// Returns the content of a signal; `None` for a signal that the run drops: a refused or an unreadable one.
    ///
    /// Whether a worker can open a payload depends on its keys and on `require`, and both change. Therefore the history has
    /// a marker for each refused signal, and a replay follows the history: a signal that was dropped stays dropped, also
    /// at a worker with the key. A signal that was taken fails the workflow task of a worker that cannot open it.
    pub(crate) fn taken<T>(
        &mut self,
        ctx: &SyncWorkflowContext<Self>,
        signal: Lenient<T>,
    ) -> Option<T> {
        self.signals = self.signals.wrapping_add(1);
        let marker = format!("refused-signal-{}", self.signals);
        // A run with an unusable input takes no signal, because the run ends.
        let label = self.input.as_ref().map(label).ok()?;
        match signal.refusal(&label) {
            Some(refusal) => {
                if !ctx.patched(&marker) {
                    ctx.force_task_fail(refusal.text());
                }
                None
            }
            None if ctx.is_replaying() && ctx.patched(&marker) => None,
            None => signal.0.ok(),
        }
    }

    /// Returns why the run must not take the result of a remote tool.
    pub(crate) fn refusal_of_result(&self, result: &Payload) -> Option<PayloadRefusal> {
        let label = self.input.as_ref().map(label).ok()?;
        payload::refusal(result, &label)
    }

    /// Returns why the run must not take an answer to an approval.
    pub(crate) fn refusal_of<T>(&self, answer: &Lenient<T>) -> Option<PayloadRefusal> {
        let label = self.input.as_ref().map(label).ok()?;
        answer.refusal(&label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: Option<Payload>, cause: Option<Failure>) -> Failure {
        Failure {
            encoded_attributes: text,
            cause: cause.map(Box::new),
            ..Failure::default()
        }
    }

    #[test]
    fn a_refused_text_is_found_at_any_depth() {
        let refused = || Some(payload::refused(&PayloadRefusal::NoKey));
        let readable = || Some(Payload::default());
        assert!(has_refused_text(&failure(refused(), None)));
        let deep = failure(
            None,
            Some(failure(readable(), Some(failure(refused(), None)))),
        );
        assert!(has_refused_text(&deep));
        let whole = failure(readable(), Some(failure(None, None)));
        assert!(!has_refused_text(&whole));
    }

    #[test]
    fn an_input_is_for_the_tenant_that_it_names() {
        let input = |tenant: &str| TurnInput {
            tenant_id: Some(tenant.to_owned()),
            ..TurnInput::default()
        };
        let state = AgentExecution::begin(Ok(input("acme")));
        let result = |label: &str| payload::opened_for(Payload::default(), label.to_owned());
        assert_eq!(state.refusal_of_result(&result("acme")), None);
        assert_eq!(state.refusal_of_result(&result("")), None);
        let foreign = state.refusal_of_result(&result("beta"));
        assert_eq!(foreign, Some(PayloadRefusal::ForeignTenant));
        assert_eq!(refusal_of_input(&Lenient::from(input("acme"))), None);
    }
}
