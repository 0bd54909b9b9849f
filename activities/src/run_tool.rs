//! `tool_execution_activity`: one tool execution (invariant 6, done once).
//!
//! Claim → run → record → save the observe. After a run with an unknown outcome, the tool's probe is asked (`probe.rs`). A
//! tool that asks a person ends the attempt with a stored question (`questions.rs`). The activity records every known outcome
//! before its return; "unknown" is only for an attempt that left no record. A tool that is stopped from outside records nothing: the end of the turn,
//! or the claim of the next attempt, decides the meaning.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_proto::{
    Json,
    limits::TOOL_ATTEMPTS,
    turn::{AgentDefinition, AskedQuestion, RunToolRequest, RunToolResult, ToolCall},
};
use everturn_store::{
    BlobFiles, ToolCaller, ToolClaim, ToolClaims, ToolEnd, ToolKey, ToolRecord, TurnInputs,
    WorkerId,
};
use everturn_supervisor::failpoint;
use everturn_tools::{CheckedTool, Question, ToolContext, ToolError, ToolRegistry};
use temporalio_common::ActivityError;
use temporalio_sdk::activities::ActivityContext;

use crate::{
    attempt::{Attempt, Ended, Ends},
    call_context,
    elsewhere::{Peers, lacks_tool, removed_tool},
    failure as fail, files,
    known_agents::KnownAgents,
    probe::{OpenCall, ProbeLimits, Prober},
    questions::{self, QuestionLimits},
    save::Saver,
    tool_progress::Shown,
    tool_threads::ToolThreads,
};

/// The text for the model about a tool whose worker was lost at every attempt.
const LOST_TOO_OFTEN: &str = "The tool's worker was lost each time while the tool ran.";
/// The text for the model about a `once` tool whose earlier attempt left no record.
pub(crate) const INTERRUPTED: &str = "The tool was interrupted and must not run twice.";

/// Runs the tools of this worker.
#[derive(Clone)]
pub(crate) struct ToolRunner {
    pub(crate) tool_claims: Arc<dyn ToolClaims>,
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) agents: Arc<KnownAgents>,
    pub(crate) inputs: Arc<dyn TurnInputs>,
    pub(crate) threads: ToolThreads,
    pub(crate) probes: ProbeLimits,
    pub(crate) questions: QuestionLimits,
    /// The files in results.
    pub(crate) blobs: BlobFiles,
    /// Saves the observe of a tool.
    pub(crate) saver: Saver,
    /// The worker's name in claims.
    pub(crate) worker: WorkerId,
    pub(crate) peers: Peers,
    pub(crate) ends: Ends,
}

impl ToolRunner {
    pub(crate) async fn run_tool(
        &self,
        ctx: &ActivityContext,
        request: RunToolRequest,
    ) -> Result<RunToolResult, ActivityError> {
        let (may_observe, may_ask) = (request.may_observe, request.may_ask);
        let key = key_of(request);
        let attempt = &Attempt::begin(&self.ends, ctx, &key.agent_execution_id);
        let at = |point| failpoint::reach_in(point, &key.conversation_id, &key.execution_id);
        at("tool.before_claim").await;
        // One name for every claim of this attempt: after a lost answer, the repeated claim still gets the tool.
        let claimant = self.worker.claimant();
        let claim = attempt
            .insist(|| self.tool_claims.claim_tool(&key, &claimant))
            .await?;
        at("tool.after_claim").await;
        let end = match claim {
            ToolClaim::Ended(record) => {
                return Ok(RunToolResult {
                    status: record.status.into(),
                    ..RunToolResult::default()
                });
            }
            ToolClaim::Asks(record) => {
                let question = record.question.unwrap_or_default();
                return Ok(questions::waits(&key.execution_id, &question));
            }
            ToolClaim::OutcomeUnknown { record, caller } => {
                let ran = Ran::Open(INTERRUPTED.to_owned(), 0);
                self.end(attempt, &key, &record, &caller, ran).await?
            }
            ToolClaim::Run { record, .. } if record.call.unusable().is_some() => {
                ToolEnd::failed(record.call.unusable().unwrap_or_default(), 0)
            }
            ToolClaim::Run { record, caller } => {
                let missing = lacks_tool(&self.tools, &record.call);
                let elsewhere = missing.as_ref();
                let elsewhere = elsewhere.and_then(|it| self.peers.left_to_others(ctx, it));
                if let Some(elsewhere) = elsewhere {
                    attempt
                        .insist(|| self.tool_claims.release_tool(&key, &claimant))
                        .await?;
                    return Err(elsewhere);
                }
                let ran = match missing {
                    Some(_) => {
                        Ran::Ended(ToolEnd::failed(&removed_tool(&record.call.tool_name), 0))
                    }
                    None => self.run(attempt, &key, &record, &caller).await?,
                };
                match self.asked(may_ask, &record, ran) {
                    Ok(asked) => return self.ask(attempt, &key, record.attempt, asked).await,
                    Err(ran) => self.end(attempt, &key, &record, &caller, ran).await?,
                }
            }
        };
        at("tool.before_record").await;
        let stored = attempt
            .insist(|| self.tool_claims.finish_tool(&key, end.clone()))
            .await?;
        at("tool.after_record").await;
        Ok(RunToolResult {
            status: stored.status.into(),
            observed: may_observe && self.saver.observe(key).await,
            question: None,
        })
    }

    /// Returns the question of the tool, or the result of an attempt without a question that a person can be asked.
    fn asked(&self, may_ask: bool, record: &ToolRecord, ran: Ran) -> Result<AskedQuestion, Ran> {
        match ran {
            Ran::Asks(question) if may_ask => {
                let asked = self.questions.asked(*question, record.question.as_ref());
                asked.map_err(|message| Ran::Ended(ToolEnd::failed(&message, 0)))
            }
            ran => Err(ran),
        }
    }

    /// Stores the question, and ends the attempt: the turn waits without a worker.
    async fn ask(
        &self,
        attempt: &Attempt<'_>,
        key: &ToolKey,
        number: u32,
        asked: AskedQuestion,
    ) -> Result<RunToolResult, ActivityError> {
        // The saver counts its failed calls itself.
        attempt
            .insist_on_blobs(|| self.saver.ask(key, number, &asked))
            .await?;
        Ok(questions::waits(&key.execution_id, &asked))
    }

    /// Returns the end of an attempt.
    async fn end(
        &self,
        attempt: &Attempt<'_>,
        key: &ToolKey,
        record: &ToolRecord,
        caller: &ToolCaller,
        ran: Ran,
    ) -> Result<ToolEnd, ActivityError> {
        let (why, duration_ms) = match ran {
            Ran::Ended(end) => return Ok(end),
            Ran::Open(why, duration_ms) => (why, duration_ms),
            // The call is a hook's: no turn waits.
            Ran::Asks(question) => {
                return Ok(ToolEnd::failed(&ToolError::Asks(question).to_string(), 0));
            }
        };
        let call = OpenCall {
            key,
            record,
            caller,
            why,
            duration_ms,
        };
        let prober = Prober {
            tools: &self.tools,
            threads: &self.threads,
            blobs: &self.blobs,
            limits: self.probes,
        };
        prober.end_open_call(attempt, call).await
    }

    /// Runs the tool, unless the name or the arguments are wrong.
    async fn run(
        &self,
        attempt: &Attempt<'_>,
        key: &ToolKey,
        record: &ToolRecord,
        caller: &ToolCaller,
    ) -> Result<Ran, ActivityError> {
        let tool_name = &record.call.tool_name;
        if !record.call.names_a_tool() {
            return Ok(Ran::Ended(ToolEnd::failed(&no_tool(tool_name), 0)));
        }
        if record.attempt > TOOL_ATTEMPTS {
            return Ok(Ran::Ended(ToolEnd::failed(LOST_TOO_OFTEN, 0)));
        }
        let context = call_context::of_call(attempt, key, record, caller);
        // At the end of the attempt, the guard cancels the tool's tasks outside the future.
        let _ends_with_attempt = context.cancellation.clone().drop_guard();
        let (progress, events) = (context.progress.clone(), context.events.clone());
        let wait = context.wait.clone();
        let input = record.call.tool_input.clone().unwrap_or_default();
        let started = Instant::now();
        let agent = self
            .finding_agent(attempt, record, &caller.agent_hash)
            .await?;
        let ran = self.ran(record, agent.as_ref(), context, input);
        let shown = Shown {
            stream: &*self.saver.stream,
            log: &caller.log_id,
            key,
            tool_name: &record.call.tool_name,
        };
        let ran = shown.meanwhile(&progress, ran);
        let limit = Duration::from_millis(record.call.timeout_ms.into());
        let ended = attempt.run(&progress, limit, ran).await;
        let duration_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        match ended {
            Ended::Done(Ok(result)) => {
                let result = files::keep(&self.blobs, attempt, key, result).await?;
                let end = ToolEnd::of_tool(&key.execution_id, result, false, duration_ms);
                Ok(Ran::Ended(end.with_events(events.take())))
            }
            Ended::Done(Err(ToolError::Asks(question))) => Ok(Ran::Asks(question)),
            Ended::Done(Err(error)) => failed(record, &error, duration_ms),
            Ended::OutOfTime => Ok(out_of_time(record, wait.reason(), duration_ms)),
            Ended::Stopped => Err(attempt.stopped()),
        }
    }

    /// Finds the tool of a call, checks the arguments, and runs the tool. `finding` is the agent of a call of `find_tools`.
    async fn ran(
        &self,
        record: &ToolRecord,
        finding: Option<&AgentDefinition>,
        context: ToolContext,
        input: Json,
    ) -> Result<Json, ToolError> {
        if let Some(agent) = finding {
            context.wait.end();
            return self.find_tools(agent, context.asker(), &input).await;
        }
        let name = &record.call.tool_name;
        let found = self.tools.find(name, context.asker()).await?;
        agreed(&found, &record.call).map_err(ToolError::Failed)?;
        found.validate(&input).map_err(ToolError::Failed)?;
        context.wait.end();
        let tool = Arc::clone(found.tool());
        self.threads.run(tool, context, input).await
    }
}

/// The result of an attempt.
enum Ran {
    /// The attempt has an end.
    Ended(ToolEnd),
    /// The tool may or may not have had its effect: why, and the duration in milliseconds.
    Open(String, u32),
    /// The tool asks a person.
    Asks(Box<Question>),
}

/// Decides the consequence of a tool's error. A known failure is recorded. After a temporary error the tool runs again,
/// if its effect allows another run and an attempt is left.
fn failed(record: &ToolRecord, error: &ToolError, duration_ms: u32) -> Result<Ran, ActivityError> {
    let may_run_again = record.call.may_run_again();
    let may_repeat = may_run_again && record.attempt < TOOL_ATTEMPTS;
    let message = error.to_string();
    match error {
        ToolError::Unavailable { retry_after, .. } if may_repeat => {
            Err(fail::tool_unavailable(message, *retry_after))
        }
        ToolError::Interrupted(_) if may_repeat => Err(fail::tool_unavailable(message, None)),
        ToolError::Interrupted(_) if !may_run_again => Ok(Ran::Open(message, duration_ms)),
        _ => Ok(Ran::Ended(ToolEnd::failed(&message, duration_ms))),
    }
}

/// `waited_for` is the reason of a call that has not reached its tool.
fn out_of_time(record: &ToolRecord, waited_for: Option<String>, duration_ms: u32) -> Ran {
    let seconds = f64::from(record.call.timeout_ms) / 1000.0;
    if let Some(reason) = waited_for {
        let message = format!(
            "The tool was not called, because the call waited for {reason} for {seconds} s."
        );
        return Ran::Ended(ToolEnd::failed(&message, duration_ms));
    }
    let message = format!("The tool did not finish within {seconds} s and was stopped.");
    if record.call.may_run_again() {
        Ran::Ended(ToolEnd::failed(&message, duration_ms))
    } else {
        Ran::Open(message, duration_ms)
    }
}

/// Checks that the tool is still the tool of the call's time, or the tool that a person has approved. The error is for
/// the model.
pub(crate) fn agreed(tool: &CheckedTool, call: &ToolCall) -> Result<(), String> {
    let name = &call.tool_name;
    if call.rule().refused {
        return Err(format!(
            "The definition of tool `{name}` differs from the definition at an earlier use in the conversation. The \
             tool was not run, and must not be used in the conversation any more."
        ));
    }
    let agreed_on = &call.definition_hash;
    if agreed_on.is_empty() || *agreed_on == tool.spec().definition_hash() {
        return Ok(());
    }
    Err(format!(
        "The definition of tool `{name}` has changed since the call was made. The tool was not run. Read the new \
         definition, and call the tool again if you still need a result."
    ))
}

pub(crate) fn key_of(request: RunToolRequest) -> ToolKey {
    ToolKey {
        conversation_id: request.conversation_id,
        message_id: request.message_id,
        agent_execution_id: request.agent_execution_id,
        step: request.step,
        execution_id: request.execution_id,
        epoch: request.epoch,
    }
}

/// Returns the error of a call whose tool the agent does not have, or not any more.
pub(crate) fn no_tool(tool_name: &str) -> String {
    format!(
        "There is no tool `{tool_name}`, or the tool was removed. Use only the tools you were given."
    )
}
