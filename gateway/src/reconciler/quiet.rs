//! Separates the quiet conversations with a workflow from the conversations that need a look of their own. The code is
//! pure: the input is the due checks of the store, and the running workflows in the engine's list.

use std::{collections::HashSet, num::NonZeroU32};

use everturn_store::DueCheck;

use crate::turns::RunningWorkflow;

/// The due checks of a batch, told apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToldApart {
    /// The number of conversations with a workflow that knows every message. No action follows.
    pub(super) quiet: usize,
    /// The quiet conversations with a workflow that has to act and does not act.
    pub(super) idle: Vec<String>,
    /// The conversations that may need an action, the longest due first.
    pub(super) unclear: Vec<DueCheck>,
}

/// Returns the conversations to ask the engine's list for. A conversation with a message that needs a signal gets its own
/// look anyway.
pub(super) fn to_list(due: &[DueCheck]) -> Vec<String> {
    due.iter()
        .filter(|check| !check.has_unsignalled)
        .map(|check| check.conversation_id.clone())
        .collect()
}

/// Tells the due checks apart. `running` has the conversations with a running workflow in the list. The list may be
/// behind the engine, so a conversation outside the list is unclear, and not dead.
pub(super) fn tell_apart(due: Vec<DueCheck>, running: &HashSet<String>) -> ToldApart {
    let mut told = ToldApart::default();
    for check in due {
        if check.has_unsignalled || !running.contains(&check.conversation_id) {
            told.unclear.push(check);
            continue;
        }
        told.quiet += 1;
        if check.is_idle {
            told.idle.push(check.conversation_id);
        }
    }
    told
}

/// True for a workflow with a task that fails again and again. `is_idle`: the workflow has had to act for the time of the
/// configuration.
pub(super) fn is_stuck(
    workflow: Option<RunningWorkflow>,
    is_idle: bool,
    stuck_attempts: NonZeroU32,
) -> bool {
    let attempt = workflow.map_or(0, |workflow| workflow.task_attempt);
    is_idle && attempt >= stuck_attempts.get()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn check(id: &str, has_unsignalled: bool, is_idle: bool) -> DueCheck {
        DueCheck {
            conversation_id: id.to_owned(),
            due_at: DateTime::UNIX_EPOCH,
            has_unsignalled,
            is_idle,
        }
    }

    fn ids(checks: &[DueCheck]) -> Vec<&str> {
        let ids = checks.iter().map(|check| check.conversation_id.as_str());
        ids.collect()
    }

    #[test]
    fn a_listed_workflow_that_knows_its_messages_needs_no_look() {
        let due = vec![
            check("works", false, false),
            check("idle", false, true),
            check("told nothing", true, false),
            check("lost", false, false),
        ];
        assert_eq!(to_list(&due), ["works", "idle", "lost"]);
        let running = ["works", "idle", "told nothing"].map(str::to_owned).into();
        let told = tell_apart(due, &running);
        assert_eq!((told.quiet, told.idle), (2, vec!["idle".to_owned()]));
        assert_eq!(ids(&told.unclear), ["told nothing", "lost"]);
    }

    #[test]
    fn without_a_list_every_conversation_is_unclear() {
        let due = vec![check("b", false, true), check("a", false, false)];
        let told = tell_apart(due, &HashSet::new());
        assert_eq!(told.quiet, 0);
        assert_eq!(ids(&told.unclear), ["b", "a"], "the longest due first");
    }

    #[test]
    fn a_workflow_is_stuck_when_it_has_to_act_and_its_task_has_failed_often() {
        let limit = NonZeroU32::new(5).unwrap();
        let at = |task_attempt| Some(RunningWorkflow { task_attempt });
        assert!(is_stuck(at(5), true, limit));
        assert!(!is_stuck(at(4), true, limit));
        assert!(
            !is_stuck(at(5), false, limit),
            "a tool works, or it is young"
        );
        assert!(!is_stuck(None, true, limit), "no workflow runs");
    }
}
