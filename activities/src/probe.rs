//! The end of a call whose outcome is unknown (invariant 6, done once). Before the model is told "unknown", the tool's
//! probe is asked whether the call has happened.
//!
//! Every call of a worker's own tool with an unknown outcome ends here. A probe is a tool of effect `read`; it gets the
//! input and the idempotency key of the call. The call itself is never made again here, whatever the probe says: the model
//! decides. The event `outcome_probed` in the end of the call tells the readers.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_proto::{
    Json,
    event::OutcomeProbed,
    words::{EventType, ToolOutcome},
};
use everturn_store::{BlobFiles, ToolCaller, ToolEnd, ToolKey, ToolRecord};
use everturn_tools::{Effect, Progress, ToolRegistry};
use temporalio_common::ActivityError;

use crate::{
    attempt::{Attempt, Ended},
    call_context, files,
    tool_threads::ToolThreads,
};

/// The pause between two calls of a probe: long enough for a server that restarts at once, and short in comparison to the
/// wait for a model.
const PAUSE: Duration = Duration::from_secs(1);

/// The time for the server of a probe to start, for each call of the probe. The worker that asks is often a new worker.
const START: Duration = Duration::from_secs(10);

/// The limits of asking a probe.
#[derive(Debug, Clone, Copy)]
pub struct ProbeLimits {
    /// The most calls of the probe for one outcome.
    pub tries: u32,
    /// The time limit of a call of the probe.
    pub timeout: Duration,
}

/// A call with an unknown outcome.
pub(crate) struct OpenCall<'a> {
    pub(crate) key: &'a ToolKey,
    pub(crate) record: &'a ToolRecord,
    pub(crate) caller: &'a ToolCaller,
    /// Why the outcome is unknown: a sentence for the model.
    pub(crate) why: String,
    pub(crate) duration_ms: u32,
}

/// What a probe has found.
enum Found {
    Happened(Json),
    NotHappened,
}

/// The words of a probe.
struct Answer {
    outcome: String,
    result: Option<Json>,
}

/// Asks the probes of a worker's own tools.
pub(crate) struct Prober<'a> {
    pub(crate) tools: &'a ToolRegistry,
    pub(crate) threads: &'a ToolThreads,
    /// The files in results.
    pub(crate) blobs: &'a BlobFiles,
    pub(crate) limits: ProbeLimits,
}

impl Prober<'_> {
    /// Returns the end of a call with an unknown outcome: as the tool's probe says, or "unknown".
    pub(crate) async fn end_open_call(
        &self,
        attempt: &Attempt<'_>,
        call: OpenCall<'_>,
    ) -> Result<ToolEnd, ActivityError> {
        let Some(probe) = self.tools.probe_of(&call.record.call.tool_name) else {
            return Ok(ToolEnd::unknown(&call.why, call.duration_ms));
        };
        let ProbeLimits { tries, timeout } = self.limits;
        let started = Instant::now();
        let (mut made, mut failure) = (0, String::new());
        let asked = async {
            loop {
                made += 1;
                failure = match self.ask(attempt, &call, &probe).await {
                    Ok(found) => return Some(found),
                    Err(failure) => failure,
                };
                if made >= tries {
                    return None;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let limit = (START + timeout + PAUSE).saturating_mul(tries);
        let found = match attempt.run(&Progress::default(), limit, asked).await {
            Ended::Done(found) => found,
            Ended::OutOfTime => None,
            Ended::Stopped => return Err(attempt.stopped()),
        };
        if found.is_none() && failure.is_empty() {
            "the time of the call was over".clone_into(&mut failure);
        }
        let took = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        let duration_ms = call.duration_ms.saturating_add(took);
        let outcome = outcome_of(found.as_ref());
        tracing::info!(probe, %outcome, failure, execution_id = call.key.execution_id, "a probe was asked for the outcome of a call");
        let failure = found.is_none().then_some(failure.as_str());
        let event = event(&call, &probe, outcome, failure, made);
        let mut end = match found {
            Some(Found::Happened(result)) => {
                let result = files::keep(self.blobs, attempt, call.key, result).await?;
                ToolEnd::of_tool(&call.key.execution_id, result, false, duration_ms)
            }
            Some(Found::NotHappened) => ToolEnd::failed(&not_happened(&call.why), duration_ms),
            None => ToolEnd::unknown(&call.why, duration_ms),
        };
        end.events.insert(0, event);
        Ok(end)
    }

    /// Calls the probe once. The error says why the answer tells no outcome.
    async fn ask(
        &self,
        attempt: &Attempt<'_>,
        call: &OpenCall<'_>,
        probe: &str,
    ) -> Result<Found, String> {
        let context = call_context::of_probe(attempt, call.key, call.record, call.caller);
        let found = self.tools.find(probe, context.asker()).await;
        let found = found.map_err(|error| error.to_string())?;
        if found.spec().effect != Effect::Read {
            return Err(format!(
                "tool `{probe}` has the effect `{}`, and a probe must only read",
                found.spec().effect
            ));
        }
        let input = call.record.call.tool_input.clone().unwrap_or_default();
        let input = input_of_probe(input, &found.spec().parameters);
        found.validate(&input)?;
        // The end of the call of the probe cancels the tasks of the probe outside its future.
        let _ends_with_call = context.cancellation.clone().drop_guard();
        let run = self.threads.run(Arc::clone(found.tool()), context, input);
        let timeout = self.limits.timeout;
        let answered = tokio::time::timeout(timeout, run).await;
        let late = |_| format!("it did not answer within {} s", timeout.as_secs_f64());
        let answer = answered.map_err(late)?.map_err(|error| error.to_string())?;
        found_in(&answer)
    }
}

/// Returns the input of the probe: the inputs of the call that the probe's schema names. A schema without names gets the whole
/// input.
fn input_of_probe(input: Json, schema: &serde_json::Value) -> Json {
    let Some(names) = schema["properties"].as_object() else {
        return input;
    };
    match input.decode::<BTreeMap<String, Json>>() {
        Ok(mut values) => {
            values.retain(|name, _| names.contains_key(name));
            Json::of(&values)
        }
        Err(_not_an_object) => input,
    }
}

/// Reads the answer of a probe: an object with `outcome`, alone, as a text, in the body of an HTTP response, or beside the
/// text of an MCP result.
fn found_in(answer: &Json) -> Result<Found, String> {
    let Some(answer) = answer_in(answer, 3) else {
        return Err("its answer has no field `outcome`".to_owned());
    };
    match ToolOutcome::from(answer.outcome.as_str()) {
        ToolOutcome::Happened => Ok(Found::Happened(answer.result.unwrap_or_else(|| {
            Json::of(&serde_json::json!({ "outcome": ToolOutcome::Happened.as_str() }))
        }))),
        ToolOutcome::NotHappened => Ok(Found::NotHappened),
        ToolOutcome::StillUnknown => Err("it does not know the outcome".to_owned()),
        ToolOutcome::Unknown(word) => Err(format!("its answer has the unknown outcome `{word}`")),
    }
}

/// `depth` is the number of layers around the answer: a result of MCP may have a structure with a text in it.
fn answer_in(answer: &Json, depth: u32) -> Option<Answer> {
    if let Ok(text) = answer.decode::<String>() {
        return answer_in(&Json::parse(text).ok()?, depth.checked_sub(1)?);
    }
    let mut fields: BTreeMap<String, Json> = answer.decode().ok()?;
    let outcome = fields.get("outcome");
    if let Some(outcome) = outcome.and_then(|outcome| outcome.decode().ok()) {
        let result = fields.remove("result");
        return Some(Answer { outcome, result });
    }
    let depth = depth.checked_sub(1)?;
    let inner = ["body", "structured", "structuredContent"];
    let mut inner = inner.iter().filter_map(|name| fields.get(*name));
    inner.find_map(|value| answer_in(value, depth))
}

fn outcome_of(found: Option<&Found>) -> ToolOutcome {
    match found {
        Some(Found::Happened(_)) => ToolOutcome::Happened,
        Some(Found::NotHappened) => ToolOutcome::NotHappened,
        None => ToolOutcome::StillUnknown,
    }
}

fn not_happened(why: &str) -> String {
    format!(
        "{why} A check has shown that the call did not happen and had no effect. Call the tool again if you still need it."
    )
}

fn event(
    call: &OpenCall<'_>,
    probe: &str,
    outcome: ToolOutcome,
    failure: Option<&str>,
    tries: u32,
) -> (EventType, Json) {
    let OpenCall { key, record, .. } = call;
    let data = OutcomeProbed {
        execution_id: key.execution_id.clone(),
        tool_name: record.call.tool_name.clone(),
        call_id: record.call.call_id.clone(),
        probe: probe.to_owned(),
        outcome: outcome.into(),
        reason: call.why.clone(),
        message: failure.map(bounded).unwrap_or_default(),
        tries,
        agent_execution_id: key.agent_execution_id.clone(),
        step: key.step,
    };
    (EventType::OutcomeProbed, Json::of(&data))
}

/// The most characters of a probe's failure in the event.
const MAX_FAILURE_CHARS: usize = 2000;

fn bounded(failure: &str) -> String {
    failure.chars().take(MAX_FAILURE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(answer: &serde_json::Value) -> Result<Option<String>, String> {
        found_in(&Json::of(answer)).map(|found| match found {
            Found::Happened(result) => Some(result.as_str().to_owned()),
            Found::NotHappened => None,
        })
    }

    #[test]
    fn an_answer_is_read_alone_as_text_in_a_body_and_in_a_structure() {
        let happened = json!({"outcome": "happened", "result": {"id": 7}, "more": 1});
        let text = happened.to_string();
        for answer in [
            happened.clone(),
            json!(text),
            json!({"status": 200, "body": happened}),
            json!({"status": 200, "body": text, "content_type": "text/plain"}),
            json!({"structured": happened, "content": ["It is paid."]}),
        ] {
            assert_eq!(
                read(&answer),
                Ok(Some(r#"{"id":7}"#.to_owned())),
                "{answer}"
            );
        }
        let bare = json!({"outcome": "happened"});
        assert_eq!(
            read(&bare),
            Ok(Some(r#"{"outcome":"happened"}"#.to_owned()))
        );
        assert_eq!(read(&json!({"outcome": "not_happened"})), Ok(None));
    }

    #[test]
    fn every_other_answer_tells_no_outcome() {
        for answer in [
            json!({"outcome": "unknown"}),
            json!({"outcome": "perhaps"}),
            json!({"outcome": true}),
            json!({"done": true}),
            json!("happened"),
            json!(["happened"]),
            json!({"body": {"body": {"body": {"body": {"outcome": "happened"}}}}}),
            json!(null),
        ] {
            assert!(read(&answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn a_probe_gets_the_inputs_that_it_names() {
        let input = Json::parse(r#"{"amount":1.50,"to":"ann"}"#).unwrap();
        let of = |schema| input_of_probe(input.clone(), &schema).as_str().to_owned();
        assert_eq!(
            of(json!({"properties": {"amount": {}}})),
            r#"{"amount":1.50}"#
        );
        assert_eq!(of(json!({"properties": {}})), "{}");
        assert_eq!(of(json!({"type": "object"})), input.as_str());
    }

    proptest! {
        /// SECURITY.md names this harness.
        #[test]
        fn any_answer_of_a_probe_is_an_outcome_or_none(text in "[\\[\\]{}\":,0-9a-z_\\\\]{0,60}", word in "happened|not_happened|[a-z]{0,8}") {
            let given = Json::parse(text.clone()).unwrap_or_else(|_| Json::of(&text));
            let _ = found_in(&given);
            let answer = Json::of(&json!({"outcome": word, "result": given}));
            prop_assert_eq!(found_in(&answer).is_ok(), word == "happened" || word == "not_happened");
        }
    }
}
