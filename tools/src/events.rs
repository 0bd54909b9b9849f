//! Events that a tool adds to its turn, like a plan or a recognised pattern.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everturn_proto::{
    Json,
    limits::{TOOL_EVENTS_MAX, TOOL_RESULT_MAX_BYTES},
    words::EventType,
};
use serde::Serialize;

use crate::error::ToolError;

/// The most bytes of one call's events together: the limit of a result.
const MAX_BYTES: usize = TOOL_RESULT_MAX_BYTES;

/// The events of one call, in order. The events are saved before the `observe`, and only if the tool succeeds. Clones
/// share the events.
#[derive(Debug, Clone, Default)]
pub struct ToolEvents(Arc<Mutex<Vec<(EventType, Json)>>>);

impl ToolEvents {
    /// Adds an event. A tool may emit only the types of [`EventType::may_be_emitted_by_tools`]. The runtime writes
    /// the other types, and a tool could use them to forge, for example, the turn's end.
    ///
    /// # Errors
    ///
    /// A [`ToolError::Failed`] for a type that tools may not emit, and beyond 100 events or 1 MiB.
    pub fn emit(&self, event_type: EventType, data: &impl Serialize) -> Result<(), ToolError> {
        if !event_type.may_be_emitted_by_tools() {
            return Err(ToolError::Failed(format!(
                "The tool tried to emit the event `{event_type}`, which a tool must not do."
            )));
        }
        let data = Json::of(data);
        let mut events = self.lock();
        let bytes: usize = events.iter().map(|(_, data)| data.stored_len()).sum();
        if events.len() >= TOOL_EVENTS_MAX || bytes + data.stored_len() > MAX_BYTES {
            return Err(ToolError::Failed(format!(
                "The tool emitted more than {TOOL_EVENTS_MAX} events or {MAX_BYTES} bytes of events."
            )));
        }
        events.push((event_type, data));
        Ok(())
    }

    /// Removes and returns the events so far.
    pub fn take(&self) -> Vec<(EventType, Json)> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(EventType, Json)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_emits_only_what_a_tool_may_emit() {
        let events = ToolEvents::default();
        let unknown = EventType::Unknown("from_the_future".to_owned());
        for event_type in EventType::ALL.iter().chain([&unknown]) {
            let emitted = events.clone().emit(event_type.clone(), &1);
            assert_eq!(emitted.is_ok(), event_type.may_be_emitted_by_tools());
        }
        let emitted = events.take();
        let emitted: Vec<&str> = emitted.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(
            emitted,
            [
                "work_plan",
                "step_start",
                "step_end",
                "pattern_match",
                "skill_matched",
                "skill_execution_start",
                "skill_execution_complete"
            ]
        );
        assert_eq!(events.take(), []);
    }

    #[test]
    fn events_are_bounded() {
        let many = ToolEvents::default();
        for _ in 0..TOOL_EVENTS_MAX {
            many.emit(EventType::PatternMatch, &1).unwrap();
        }
        many.emit(EventType::PatternMatch, &1).unwrap_err();
        let large = ToolEvents::default();
        let data = "x".repeat(MAX_BYTES);
        large.emit(EventType::PatternMatch, &data).unwrap_err();
    }
}
