//! Remembers the texts that are replaced by events of the reader.

use everturn_proto::event::Event;
use everturn_stream::TextKey;

use super::newest::Newest;
use crate::fields::Fields;

/// The sealed steps of agent executions. The texts of a sealed step have been replaced by an event.
#[derive(Debug, Default)]
pub(super) struct Seals(Newest<Sealed>);

/// The sealed steps of an agent execution. The later variant covers more steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sealed {
    /// The steps up to this number, because the steps of an agent execution follow one another.
    UpTo(u32),
    /// Every step, because the agent execution has ended.
    All,
}

impl Seals {
    /// Notes the steps sealed by an event. Most events seal no step.
    pub(super) fn note(&mut self, event: &Event) {
        let event_type = event.event_type();
        let is_end = event_type.ends_agent_execution();
        if !is_end && !event_type.holds_text_of_a_step() {
            return;
        }
        let fields = Fields::of_event(event);
        // Old events name neither step nor agent execution. Old events cannot replace an open text.
        let Some(execution) = fields
            .get::<String>("agent_execution_id")
            .filter(|id| !id.is_empty())
        else {
            return;
        };
        let sealed = if is_end {
            Some(Sealed::All)
        } else {
            fields.get("step").map(Sealed::UpTo)
        };
        if let Some(sealed) = sealed {
            self.0.raise(&execution, sealed);
        }
    }

    /// Returns true when the reader has the event that replaced the text.
    pub(super) fn cover(&self, key: &TextKey) -> bool {
        let own = self.0.of(&key.agent_execution_id);
        own.is_some_and(|sealed| Sealed::UpTo(key.step) <= sealed)
    }
}

#[cfg(test)]
mod tests {
    use everturn_proto::Json;
    use everturn_stream::Part;

    use super::*;

    fn noted(events: &[(&str, &str)]) -> Seals {
        let mut seals = Seals::default();
        for (event_type, data) in events {
            let (event_type, event_data) = ((*event_type).to_owned(), Json::parse(*data).ok());
            seals.note(&Event {
                event_type,
                event_data,
                ..Event::default()
            });
        }
        seals
    }

    fn covers(seals: &Seals, execution: &str, step: u32) -> bool {
        seals.cover(&TextKey {
            agent_execution_id: execution.to_owned(),
            step,
            part: Part::Reasoning,
        })
    }

    #[test]
    fn thought_seals_its_step_and_those_before() {
        let seals = noted(&[("thought", r#"{"agent_execution_id":"run","step":1}"#)]);
        assert!(covers(&seals, "run", 0) && covers(&seals, "run", 1));
        assert!(!covers(&seals, "run", 2) && !covers(&seals, "other", 1));
    }

    #[test]
    fn end_seals_all_steps() {
        for end in ["complete", "error", "cancelled"] {
            assert!(
                covers(
                    &noted(&[(end, r#"{"agent_execution_id":"run"}"#)]),
                    "run",
                    7
                ),
                "{end}"
            );
        }
    }

    #[test]
    fn other_and_old_events_seal_nothing() {
        let seals = noted(&[
            ("act", r#"{"agent_execution_id":"run","step":3}"#),
            ("thought", r#"{"thought":"old"}"#),
            ("thought", r#"{"agent_execution_id":5,"step":"x"}"#),
            ("thought", r#"{"agent_execution_id":"","step":0}"#),
            ("thought", "null"),
        ]);
        assert!(!covers(&seals, "run", 0) && !covers(&seals, "", 0));
    }
}
