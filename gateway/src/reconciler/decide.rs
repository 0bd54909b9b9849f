//! Decides how to put a stalled conversation right. The code is pure: its input is the stored state, and whether a workflow
//! runs.

use chrono::{DateTime, Utc};
use everturn_proto::words::OnBusy;
use everturn_store::{Unfinished, WaitingMessage};

use crate::{config::LostTurns, turns::StartMessages};

/// The workflow starts for a conversation without a new event, before the reconciler ends the turn with an error.
const MAX_STARTS: u32 = 3;

/// The action for a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// No action: a workflow runs and knows its messages and cancels, or the waiting messages are too young.
    Wait,
    /// Signal to the running workflow, which may not know what is stored.
    Signal(Signals),
    /// Start a workflow for these messages, because no workflow runs. The number counts the starts since the last event.
    Start(StartMessages, u32),
    /// End this message with an error, because no workflow runs and the message must not have a turn later.
    FailRejected(String),
    /// End the turn of this message with an error, because no workflow runs and the turn does not go on.
    FailLost(String),
}

/// The signals for a running workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Signals {
    /// The cancel of the running turn. A running turn with a stored cancel always needs the signal: a workflow that knows
    /// the cancel is about to end the turn, and the engine drops a repeated signal.
    pub(super) cancel: Option<StoredCancel>,
    /// The waiting messages, in order.
    pub(super) messages: Vec<WaitingMessage>,
}

/// The stored cancel of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredCancel {
    /// The message of the turn.
    pub(super) message_id: String,
    /// Why the turn must end.
    pub(super) reason: String,
}

/// Decides the action. Only a message from before `stored_before` counts as waiting: the signal of a younger message may
/// still arrive.
pub(super) fn decide(
    unfinished: &Unfinished,
    is_running: bool,
    stored_before: DateTime<Utc>,
    lost_turns: LostTurns,
) -> Decision {
    let is_old = |message: &&WaitingMessage| message.since <= stored_before;
    let is_rejected = |message: &&WaitingMessage| message.on_busy == OnBusy::Reject;
    if is_running {
        return signal(unfinished, stored_before);
    }
    let turn = unfinished.turn.as_ref();
    let mut waiting = unfinished.waiting.iter();
    // A lost turn comes first, because a conversation runs one turn at a time.
    if turn.is_none()
        && let Some(rejected) = waiting.find(|message| is_rejected(message) && is_old(message))
    {
        return Decision::FailRejected(rejected.id.clone());
    }
    // The order of the turns: interrupting messages come first.
    let (interrupting, others): (Vec<_>, Vec<_>) = unfinished
        .waiting
        .iter()
        .filter(|message| !is_rejected(message))
        .partition(|message| message.on_busy == OnBusy::Interrupt);
    let mut waiting = interrupting
        .into_iter()
        .chain(others)
        .map(|message| message.id.clone());
    let first = turn
        .map(|turn| turn.message_id.clone())
        .or_else(|| waiting.next());
    let Some(first) = first else {
        return Decision::Wait;
    };
    let noted = &unfinished.noted;
    let has_moved = noted.last_sequence != unfinished.conversation.last_sequence;
    let starts = if has_moved { 0 } else { noted.starts };
    let is_ended = turn.is_some() && lost_turns == LostTurns::End;
    if is_ended || starts >= MAX_STARTS {
        return Decision::FailLost(first);
    }
    let goes_on_at = turn.map(|turn| turn.checkpoint_step.unwrap_or(0));
    let messages = StartMessages {
        first,
        goes_on_at,
        has_waiting: waiting.next().is_some(),
    };
    Decision::Start(messages, starts + 1)
}

fn signal(unfinished: &Unfinished, stored_before: DateTime<Utc>) -> Decision {
    let signalled_until = unfinished.noted.signalled_until;
    let is_unknown = |message: &&WaitingMessage| {
        message.on_busy != OnBusy::Reject
            && message.since <= stored_before
            && signalled_until.is_none_or(|until| message.since > until)
    };
    let messages = unfinished.waiting.iter().filter(is_unknown).cloned();
    let cancelled = unfinished
        .turn
        .as_ref()
        .zip(unfinished.cancel_reason.as_ref());
    let signals = Signals {
        cancel: cancelled.map(|(turn, reason)| StoredCancel {
            message_id: turn.message_id.clone(),
            reason: reason.clone(),
        }),
        messages: messages.collect(),
    };
    if signals == Signals::default() {
        Decision::Wait
    } else {
        Decision::Signal(signals)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use chrono::TimeDelta;
    use everturn_store::{CheckNote, Conversation, UnfinishedTurn};

    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    fn message(id: &str, on_busy: OnBusy, second: i64) -> WaitingMessage {
        WaitingMessage {
            id: id.to_owned(),
            on_busy,
            since: at(second),
        }
    }

    fn unfinished(turn: Option<&str>, waiting: &[WaitingMessage]) -> Unfinished {
        let conversation = Conversation {
            id: "c".to_owned(),
            log_id: "log".into(),
            tenant_id: "t".to_owned(),
            owner_id: None,
            agent: "default".to_owned(),
            title: None,
            model: None,
            message_count: 0,
            last_sequence: 7,
            created_at: at(0),
            active_at: at(0),
        };
        Unfinished {
            conversation,
            turn: turn.map(|id| UnfinishedTurn {
                message_id: id.to_owned(),
                checkpoint_step: Some(2),
            }),
            cancel_reason: None,
            waiting: waiting.to_vec(),
            noted: CheckNote::default(),
        }
    }

    fn starts(first: &str, goes_on_at: Option<u32>, has_waiting: bool, number: u32) -> Decision {
        let messages = StartMessages {
            first: first.to_owned(),
            goes_on_at,
            has_waiting,
        };
        Decision::Start(messages, number)
    }

    fn of(unfinished: &Unfinished, is_running: bool) -> Decision {
        decide(unfinished, is_running, at(100), LostTurns::Resume)
    }

    #[test]
    fn a_lost_turn_goes_on_with_what_waits() {
        let waiting = [
            message("a", OnBusy::Queue, 1),
            message("young", OnBusy::Steer, 500),
        ];
        let lost = unfinished(Some("m"), &waiting);
        assert_eq!(of(&lost, false), starts("m", Some(2), true, 1));
        let waits = unfinished(None, &waiting);
        assert_eq!(of(&waits, false), starts("a", None, true, 1));
        assert_eq!(
            decide(&lost, false, at(100), LostTurns::End),
            Decision::FailLost("m".to_owned())
        );
        assert_eq!(
            decide(&waits, false, at(100), LostTurns::End),
            starts("a", None, true, 1),
            "a waiting message is not lost"
        );
    }

    #[test]
    fn an_interrupting_message_comes_first() {
        let waiting = [
            message("a", OnBusy::Queue, 1),
            message("i", OnBusy::Interrupt, 2),
        ];
        let waits = unfinished(None, &waiting);
        assert_eq!(of(&waits, false), starts("i", None, true, 1));
    }

    #[test]
    fn a_turn_that_never_moves_is_ended() {
        let mut lost = unfinished(Some("m"), &[]);
        lost.noted = CheckNote {
            starts: MAX_STARTS,
            last_sequence: 7,
            signalled_until: None,
        };
        assert_eq!(of(&lost, false), Decision::FailLost("m".to_owned()));
        lost.conversation.last_sequence = 8;
        assert_eq!(
            of(&lost, false),
            starts("m", Some(2), false, 1),
            "it has moved"
        );
    }

    #[test]
    fn a_running_workflow_is_told_once_of_old_messages() {
        let waiting = [
            message("a", OnBusy::Queue, 1),
            message("s", OnBusy::Steer, 50),
            message("r", OnBusy::Reject, 2),
            message("young", OnBusy::Queue, 500),
        ];
        let mut busy = unfinished(Some("m"), &waiting);
        let signal = |messages: &[WaitingMessage]| {
            Decision::Signal(Signals {
                cancel: None,
                messages: messages.to_vec(),
            })
        };
        assert_eq!(of(&busy, true), signal(&waiting[..2]));
        busy.noted.signalled_until = Some(at(20));
        assert_eq!(of(&busy, true), signal(&waiting[1..2]));
        busy.noted.signalled_until = Some(at(90));
        assert_eq!(of(&busy, true), Decision::Wait);
    }

    #[test]
    fn a_running_workflow_is_told_of_a_stored_cancel() {
        let waiting = [message("a", OnBusy::Queue, 1)];
        let mut busy = unfinished(Some("m"), &waiting);
        busy.noted.signalled_until = Some(at(90));
        busy.cancel_reason = Some("why".to_owned());
        let cancel = StoredCancel {
            message_id: "m".to_owned(),
            reason: "why".to_owned(),
        };
        let signals = Signals {
            cancel: Some(cancel),
            messages: Vec::new(),
        };
        assert_eq!(of(&busy, true), Decision::Signal(signals.clone()));
        busy.noted.signalled_until = None;
        let both = Signals {
            messages: waiting.to_vec(),
            ..signals
        };
        assert_eq!(of(&busy, true), Decision::Signal(both));
        assert_eq!(
            of(&busy, false),
            starts("m", Some(2), true, 1),
            "the new run reads the cancel"
        );
    }

    #[test]
    fn a_message_that_is_to_be_rejected_never_runs_later() {
        let waiting = [
            message("r", OnBusy::Reject, 1),
            message("young", OnBusy::Reject, 500),
            message("a", OnBusy::Queue, 2),
        ];
        let rejected = unfinished(None, &waiting);
        assert_eq!(of(&rejected, false), Decision::FailRejected("r".to_owned()));
        let beside_a_lost_turn = unfinished(Some("m"), &rejected.waiting);
        assert_eq!(
            of(&beside_a_lost_turn, false),
            starts("m", Some(2), true, 1)
        );
        let rest = unfinished(None, &waiting[1..]);
        assert_eq!(of(&rest, false), starts("a", None, false, 1));
        let young = unfinished(None, &waiting[1..2]);
        assert_eq!(of(&young, false), Decision::Wait);
    }
}
