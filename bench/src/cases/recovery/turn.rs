//! The turn of a killed worker: an LLM call that asks for two tools, both tools, and the answer. Counts the missing and
//! doubled events.

use std::time::Duration;

use everturn_client::Frame;
use everturn_tests::{
    events::count,
    model::{Reply, Request},
};
use serde_json::{Value, json};

/// Message with an immediate answer.
pub(super) const ANSWER: &str = "Answer at once.";

/// Message with a long LLM call.
pub(super) const LONG: &str = "Speak for long.";

/// Duration of the long LLM call.
pub(super) const LONG_CALL: Duration = Duration::from_secs(25);

/// Duration of a turn's first LLM call.
const FIRST_CALL: Duration = Duration::from_millis(500);

/// Duration of the two parallel tools, in a turn whose worker is killed during the tools.
pub(super) const TOOLS_TAKE: Duration = Duration::from_millis(500);

/// Duration of the answer.
const LAST_CALL: Duration = Duration::from_millis(1500);

/// Number of pieces of a text.
const PIECES: usize = 50;

/// Moment of the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// The model streams text before the tool calls.
    FirstCall,
    /// The tools begin.
    Tools,
    /// The model streams the answer.
    Answer,
}

impl Moment {
    /// The moments in the order of a turn.
    pub(super) const ALL: [Self; 3] = [Self::FirstCall, Self::Tools, Self::Answer];

    /// Returns the name of the moment's figure.
    pub(super) fn figure(self) -> &'static str {
        match self {
            Self::FirstCall => "first_call_s",
            Self::Tools => "tools_s",
            Self::Answer => "answer_s",
        }
    }

    /// Returns the message of the turn.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::FirstCall | Self::Answer => "Use tools.",
            Self::Tools => "Use slow tools.",
        }
    }

    /// Returns the time spent in tools after the kill.
    pub(super) fn tools_take(self) -> Duration {
        match self {
            Self::FirstCall | Self::Answer => Duration::ZERO,
            Self::Tools => TOOLS_TAKE,
        }
    }

    /// Returns the expected number of LLM calls: an interrupted call is repeated.
    fn calls(self) -> usize {
        match self {
            Self::FirstCall | Self::Answer => 3,
            Self::Tools => 2,
        }
    }
}

/// Returns the model's reply to a request.
pub(super) fn script(request: &Request) -> Reply {
    let pieces = || (0..PIECES).map(|number| format!("word{number} ")).collect();
    match request.last("user").as_str() {
        ANSWER => Reply::text("At once."),
        LONG => Reply::spread(pieces(), LONG_CALL),
        _ if request.results_since_user() > 0 => Reply::spread(pieces(), LAST_CALL),
        message => {
            let is_slow = message == Moment::Tools.message();
            let sleep_ms = if is_slow { TOOLS_TAKE.as_millis() } else { 0 };
            let input = json!({ "sleep_ms": u64::try_from(sleep_ms).unwrap_or(u64::MAX) });
            Reply::spread(pieces(), FIRST_CALL)
                .call("test_read", &input)
                .call("test_read", &input)
        }
    }
}

/// Progress of a turn, according to the frames of a reader.
#[derive(Debug, Default)]
pub(super) struct Progress {
    acts: usize,
    observes: usize,
}

impl Progress {
    /// Takes a frame, and returns true when the moment has come.
    pub(super) fn is_at(&mut self, moment: Moment, frame: &Frame) -> bool {
        let is_text = frame.event.starts_with("text_") && frame.event != "text_end";
        match frame.event.as_str() {
            "act" => self.acts += 1,
            "observe" => self.observes += 1,
            _ => {}
        }
        match moment {
            Moment::FirstCall => is_text && self.acts == 0,
            Moment::Tools => self.acts == 2,
            Moment::Answer => is_text && self.observes == 2,
        }
    }
}

/// Numbers of damaged turns.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damage {
    /// Number of turns with a missing event or with a failure.
    pub(super) lost: u64,
    /// Number of turns with a doubled event or a doubled LLM call.
    pub(super) doubled: u64,
}

impl Damage {
    /// Number of events of a turn.
    pub(super) const EVENTS: usize = 8;

    /// Expected events of a turn, by type.
    const TURN: [(&str, usize); 6] = [
        ("user_message", 1),
        ("thought", 1),
        ("act", 2),
        ("observe", 2),
        ("assistant_message", 1),
        ("complete", 1),
    ];

    /// Checks the events of a turn.
    pub(super) fn look(&mut self, events: &[Value]) {
        let whole = Self::TURN.map(|(event_type, number)| (count(events, event_type), number));
        let is_failed = |event: &Value| event["event_data"]["is_error"] == true;
        let is_lost = whole.iter().any(|(found, number)| found < number);
        self.lost += u64::from(is_lost || events.iter().any(is_failed));
        let is_doubled = whole.iter().any(|(found, number)| found > number);
        self.doubled += u64::from(is_doubled || events.len() > Self::EVENTS);
    }

    /// Checks the number of LLM calls of a turn whose worker was killed once.
    pub(super) fn look_at_calls(&mut self, calls: usize, moment: Moment) {
        self.doubled += u64::from(calls > moment.calls());
    }

    /// Checks the events of a turn without tools.
    pub(super) fn look_at_answer(&mut self, events: &[Value]) {
        let answers = count(events, "assistant_message");
        self.lost += u64::from(answers == 0 || count(events, "complete") == 0);
        self.doubled += u64::from(events.len() > 3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a turn, without those of a type, and with another one instead.
    fn damage(without: &str, instead: &[&str], calls: usize) -> Damage {
        let types = Damage::TURN
            .iter()
            .flat_map(|(event_type, number)| vec![*event_type; *number]);
        let types = types.filter(|event_type| *event_type != without);
        let events: Vec<_> = types
            .chain(instead.iter().copied())
            .map(|event_type| json!({ "event_type": event_type, "event_data": {} }))
            .collect();
        let mut damage = Damage::default();
        damage.look(&events);
        damage.look_at_calls(calls, Moment::Tools);
        damage
    }

    #[test]
    fn what_is_lost_or_doubled_is_counted() {
        let found = |damage: Damage| (damage.lost, damage.doubled);
        assert_eq!(found(damage("", &[], 2)), (0, 0));
        assert_eq!(found(damage("complete", &["error"], 2)), (1, 0));
        assert_eq!(found(damage("observe", &["observe"], 2)), (1, 0));
        assert_eq!(found(damage("", &["observe"], 2)), (0, 1));
        assert_eq!(found(damage("", &["cancelled"], 2)), (0, 1));
        assert_eq!(found(damage("", &[], 3)), (0, 1));
    }
}
