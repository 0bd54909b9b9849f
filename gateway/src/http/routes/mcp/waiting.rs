//! Waits for the end of a turn. The store alone says how the turn ended; the frames of the conversation only tell when to
//! ask the store, and how far the turn is.

use std::time::Duration;

use everturn_store::{Conversation, TurnResult, TurnState};
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep, sleep_until};

use super::{progress, task_id::TaskId};
use crate::{
    http::{
        extract::Caller,
        problem::{Code, Problem},
        state::GatewayState,
    },
    limits::StreamPermit,
    live::{Cursor, LiveFrame, LiveReader, ReaderEnd},
};

/// A call that waits for the end of the turn. Dropping the wait has no effect on the turn.
pub(super) struct Waiting {
    state: GatewayState,
    caller: Caller,
    conversation: Conversation,
    pub(super) task: TaskId,
    reader: Option<LiveReader>,
    /// Resolves when the caller's credential is no longer valid.
    until: BoxFuture<'static, ()>,
    deadline: Instant,
    _permit: StreamPermit,
}

/// The next step of a wait.
pub(super) enum Step {
    /// The turn did a step, in a few words.
    Progress(String),
    /// The turn has ended.
    Ended(TurnState),
    /// The longest wait is over, and the turn goes on.
    Late,
    /// The wait ends without a result, and the turn goes on.
    Refused(Problem),
    /// The gateway stops. Another gateway takes the same call.
    Stopping,
}

impl Waiting {
    pub(super) fn new(
        state: &GatewayState,
        caller: &Caller,
        conversation: Conversation,
        task: TaskId,
        permit: StreamPermit,
    ) -> Self {
        Self {
            until: state.auth.end_of(caller),
            deadline: Instant::now() + state.config.mcp_wait,
            state: state.clone(),
            caller: caller.clone(),
            conversation,
            task,
            reader: None,
            _permit: permit,
        }
    }

    /// Waits for the next step. Cancel safe: a dropped future loses at most a step's progress.
    pub(super) async fn next(&mut self) -> Step {
        loop {
            let Some(reader) = &mut self.reader else {
                match self.look().await {
                    Ok(Some(state)) => return Step::Ended(state),
                    Ok(None) => continue,
                    // The store is back soon, or the wait ends at its deadline.
                    Err(problem) if problem.code() == Code::StoreUnavailable => {}
                    Err(problem) => return Step::Refused(problem),
                }
                if let Some(step) = self.pause().await {
                    return step;
                }
                continue;
            };
            let frame = tokio::select! {
                biased;
                () = self.state.closing.cancelled() => return Step::Stopping,
                () = &mut self.until => return Step::Refused(expired()),
                () = sleep_until(self.deadline) => return Step::Late,
                frame = reader.next() => frame,
            };
            match frame {
                Ok(rendered) => {
                    if self.ends(&rendered.frame) {
                        self.reader = None;
                    } else if let Some(progress) = self.progress(&rendered.frame) {
                        return Step::Progress(progress);
                    }
                }
                Err(end) => {
                    self.reader = None;
                    if end == ReaderEnd::Unreadable
                        && let Some(step) = self.pause().await
                    {
                        return step;
                    }
                }
            }
        }
    }

    /// Asks the store for the turn's end. Without an end, begins to read the frames behind the answer.
    async fn look(&mut self) -> Result<Option<TurnState>, Problem> {
        let name = &self.task.conversation;
        // The conversation is read before the turn, so the end of a running turn has a larger sequence number.
        self.conversation = self.state.conversation(&self.caller, name).await?;
        let TurnResult { state, .. } =
            found(&self.state, &self.caller, &self.conversation, &self.task).await?;
        if matches!(state, TurnState::Ended { .. }) {
            return Ok(Some(state));
        }
        let cursor = Cursor::at(self.conversation.last_sequence);
        self.reader = Some(self.state.reader(&self.caller, &self.conversation, cursor));
        Ok(None)
    }

    /// Waits for the gateway's interval between two questions to the store.
    async fn pause(&mut self) -> Option<Step> {
        let pause = self
            .state
            .config
            .poll_interval
            .max(Duration::from_millis(50));
        tokio::select! {
            biased;
            () = self.state.closing.cancelled() => Some(Step::Stopping),
            () = &mut self.until => Some(Step::Refused(expired())),
            () = sleep_until(self.deadline) => Some(Step::Late),
            () = sleep(pause) => None,
        }
    }

    /// Returns true for a frame after which the store may know another state of the turn.
    fn ends(&self, frame: &LiveFrame) -> bool {
        match frame {
            LiveFrame::Reset { .. } => true,
            LiveFrame::Event(event) => {
                event.ends_turn() && event.message_id == self.task.message_id
            }
            _ => false,
        }
    }

    fn progress(&self, frame: &LiveFrame) -> Option<String> {
        let is_of_turn = frame.message_id() == self.task.message_id;
        if is_of_turn {
            progress::of_frame(frame)
        } else {
            None
        }
    }
}

fn expired() -> Problem {
    let detail = "The credential has ended. Call again with another credential.";
    Problem::new(Code::Unauthenticated, detail)
}

/// Returns the state of a task's turn.
pub(super) async fn found(
    state: &GatewayState,
    caller: &Caller,
    conversation: &Conversation,
    task: &TaskId,
) -> Result<TurnResult, Problem> {
    let results = &state.ports.turn_results;
    let found = results
        .turn_result(&caller.access, &conversation.id, &task.message_id)
        .await?;
    found.ok_or_else(|| {
        let detail = format!("The conversation has no message `{}`.", task.message_id);
        Problem::new(Code::NotFound, detail)
    })
}
