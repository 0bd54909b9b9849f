//! Announced cancels, and the waiting attempts of this worker.
//!
//! An attempt learns of a cancel from the engine, with the answer to a heartbeat, and therefore up to one heartbeat
//! interval late. For this reason the workflow announces the cancel of its agent execution on the stream, and the
//! attempt then asks the engine at once. The engine alone decides: an unconfirmed announcement stops nothing, and after
//! a lost announcement the next heartbeat brings the cancel. Attempts send heartbeats more often while announcements may
//! be lost ([`Hearing`]).

use std::{
    collections::HashMap,
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_proto::turn::AnnounceCancelRequest;
use everturn_stream::{CancelNews, FollowedCancels, Hearing};
use everturn_tools::Progress;
use temporalio_client::{ActivityIdentifier, RpcOptions, errors::AsyncActivityError};
use temporalio_common::protos::TaskToken;
use temporalio_sdk::activities::ActivityContext;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// The pause before the first question to the engine. The announcement is earlier than the engine's knowledge by about
/// this time (docs/engine.md, a cancel comes with the end of a workflow task), and each question is a write of the
/// engine.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause between two questions.
const MAX_PAUSE: Duration = Duration::from_millis(250);
/// The time for questions after an announcement. Later, the next heartbeat brings the cancel.
const ASKING: Duration = Duration::from_secs(2);

/// The attempts of this worker, by agent execution. Clones share them. Their number is at most the number of
/// activities.
#[derive(Debug, Clone, Default)]
pub struct Cancels {
    watched: Arc<Mutex<HashMap<String, watch::Sender<()>>>>,
    /// Whether announcements arrive. Before [`Self::follow`], none arrives.
    hearing: Arc<watch::Sender<Hearing>>,
}

impl Cancels {
    /// Notifies the attempts of each announced agent execution. Never returns.
    pub async fn follow(&self, followed: FollowedCancels) -> Infallible {
        let FollowedCancels {
            mut announced,
            mut hearing,
        } = followed;
        let heard = async {
            loop {
                self.hearing.send_replace(*hearing.borrow_and_update());
                if hearing.changed().await.is_err() {
                    return;
                }
            }
        };
        let told = async {
            while let Some(agent_execution_id) = announced.recv().await {
                if let Some(watched) = self.lock().get(&agent_execution_id) {
                    watched.send_replace(());
                }
            }
        };
        tokio::join!(heard, told);
        pending().await
    }

    /// Returns whether announcements arrive now.
    pub(crate) fn hearing(&self) -> Hearing {
        *self.hearing.borrow()
    }

    /// Watches for a cancel of this agent execution from now on.
    pub(crate) fn watch(&self, agent_execution_id: &str) -> Watched {
        let mut watched = self.lock();
        let watched = watched.entry(agent_execution_id.to_owned()).or_default();
        Watched {
            cancels: self.clone(),
            agent_execution_id: agent_execution_id.to_owned(),
            announced: watched.subscribe(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watch of an attempt for a cancel. Dropping the value ends the watch.
#[derive(Debug)]
pub(crate) struct Watched {
    cancels: Cancels,
    agent_execution_id: String,
    announced: watch::Receiver<()>,
}

impl Watched {
    /// Waits until a cancel is announced and the engine confirms it. An announcement before this call counts, too.
    pub(crate) async fn cancelled(&self, ctx: &ActivityContext, progress: &Progress) {
        let mut announced = self.announced.clone();
        // The sender stays in the map as long as `self` watches.
        while announced.changed().await.is_ok() {
            if timeout(ASKING, confirmed(ctx, progress)).await.is_ok() {
                return;
            }
            let agent_execution_id = &self.agent_execution_id;
            tracing::info!(
                agent_execution_id,
                "a cancel was announced that the engine does not confirm"
            );
        }
        pending::<()>().await;
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut watched = self.cancels.lock();
        let others = watched.get(&self.agent_execution_id);
        // The receiver of `self` still counts.
        if others.is_some_and(|sender| sender.receiver_count() <= 1) {
            watched.remove(&self.agent_execution_id);
        }
    }
}

/// True when the engine asks for a cancel of the activity, and not only for a stop with another reason.
pub(crate) async fn is_requested(ctx: &ActivityContext) -> bool {
    let token = TaskToken::from(ctx.info().task_token.clone());
    let identifier = ActivityIdentifier::from_task_token(token);
    let activity = ctx.client().get_async_activity_handle(identifier);
    let details = Some(Progress::default().latest());
    let answer = activity.heartbeat(details, RpcOptions::default()).await;
    answer.is_ok_and(|answer| answer.cancel_requested)
}

/// Waits until the engine asks for a cancel of the activity, or no longer has the activity: its workflow was terminated,
/// as by the deletion of a conversation, or a later attempt has replaced the attempt. The SDK delays a heartbeat soon
/// after the last heartbeat (docs/libraries.md, Temporal SDK: heartbeats are throttled), so this function bypasses the
/// SDK.
async fn confirmed(ctx: &ActivityContext, progress: &Progress) {
    let token = TaskToken::from(ctx.info().task_token.clone());
    let identifier = ActivityIdentifier::from_task_token(token);
    let activity = ctx.client().get_async_activity_handle(identifier);
    let mut pause = FIRST_PAUSE;
    loop {
        sleep(pause).await;
        let details = Some(progress.latest());
        match activity.heartbeat(details, RpcOptions::default()).await {
            Ok(answer) if answer.cancel_requested => return,
            Ok(_) => {}
            Err(AsyncActivityError::NotFound(_)) => return,
            Err(error) => tracing::debug!(%error, "the engine could not be asked about a cancel"),
        }
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// `announce_cancel_activity`: hands the announcement over, and does not wait for the stream. The workflow's cancel
/// reaches the engine after this activity, with the end of the workflow task.
pub(crate) fn announce(news: Arc<dyn CancelNews>, request: AnnounceCancelRequest) {
    // The task ends by itself: the stream answers, or fails, within its time limit.
    tokio::spawn(async move {
        if let Err(error) = news.announce_cancel(&request.agent_execution_id).await {
            tracing::debug!(%error, "the announcement of a cancel was lost");
        }
    });
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::mpsc;

    use super::*;

    async fn announce(cancels: &Cancels, agent_execution_id: &str) {
        let (sender, announced) = mpsc::channel(1);
        sender.send(agent_execution_id.to_owned()).await.unwrap();
        drop(sender);
        let (_, hearing) = watch::channel(Hearing::default());
        // It has told everybody when it waits for ever.
        let followed = cancels.follow(FollowedCancels { announced, hearing });
        assert!(followed.now_or_never().is_none());
    }

    fn is_told(watched: &Watched) -> bool {
        watched.announced.has_changed().unwrap()
    }

    #[tokio::test]
    async fn every_attempt_of_the_agent_execution_is_told_and_no_other() {
        let cancels = Cancels::default();
        let [one, two, other] = ["run_1", "run_1", "run_2"].map(|id| cancels.watch(id));
        announce(&cancels, "run_1").await;
        assert!(is_told(&one) && is_told(&two) && !is_told(&other));
        let later = cancels.watch("run_1");
        assert!(!is_told(&later), "it begins after the announcement");
    }

    #[tokio::test]
    async fn attempts_see_whether_announcements_arrive() {
        let cancels = Cancels::default();
        assert!(!cancels.hearing().arrives, "nobody follows");
        let (_sender, announced) = mpsc::channel(1);
        let (heard, hearing) = watch::channel(Hearing::default());
        let followed = cancels.follow(FollowedCancels { announced, hearing });
        let mut followed = std::pin::pin!(followed);
        let now = Hearing {
            arrives: true,
            losses: 2,
        };
        heard.send_replace(now);
        assert!(followed.as_mut().now_or_never().is_none());
        assert_eq!(cancels.hearing(), now);
        heard.send_modify(|hearing| hearing.arrives = false);
        assert!(followed.now_or_never().is_none());
        assert!(!cancels.hearing().arrives);
    }

    #[tokio::test]
    async fn attempts_that_have_ended_are_forgotten() {
        let cancels = Cancels::default();
        let [one, two] = ["run_1", "run_1"].map(|id| cancels.watch(id));
        drop(one);
        announce(&cancels, "run_1").await;
        assert!(is_told(&two));
        drop(two);
        assert!(cancels.lock().is_empty());
        announce(&cancels, "run_1").await;
    }
}
