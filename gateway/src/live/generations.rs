//! Remembers the newest generation of each agent execution, as the store has it (invariant 7, fenced deltas).
//!
//! The stream may have lost the newest generation, or this gateway may not have heard of it yet. A reader may have seen
//! it at another gateway. Then it must not be shown an older one here.

use std::collections::{BTreeMap, VecDeque};

use everturn_stream::TextKey;

/// The most agent executions that are remembered: more than can write texts at once in a conversation.
const MAX_AGENT_EXECUTIONS: usize = 256;

/// The newest generation of each agent execution.
#[derive(Debug, Default)]
pub(super) struct Generations(VecDeque<(String, u32)>);

impl Generations {
    /// Notes what the store has. An older answer changes nothing.
    pub(super) fn note(&mut self, newest: &BTreeMap<String, u32>) {
        for (execution, generation) in newest {
            let known = self.0.iter().position(|(held, _)| held == execution);
            let known = known.and_then(|at| self.0.remove(at));
            let known = known.map_or(0, |(_, generation)| generation);
            self.0
                .push_back((execution.clone(), known.max(*generation)));
            if self.0.len() > MAX_AGENT_EXECUTIONS {
                self.0.pop_front();
            }
        }
    }

    /// True when a newer generation of the text's agent execution is known. The text is then of a step that is being
    /// tried again, or of an earlier step: its event is saved before the next step is claimed.
    pub(super) fn is_superseded(&self, key: &TextKey, generation: u32) -> bool {
        let newest = self
            .0
            .iter()
            .find(|(execution, _)| *execution == key.agent_execution_id);
        newest.is_some_and(|(_, newest)| generation < *newest)
    }
}

#[cfg(test)]
mod tests {
    use everturn_stream::Part;

    use super::*;

    fn is_superseded(generations: &Generations, execution: &str, generation: u32) -> bool {
        let key = TextKey {
            agent_execution_id: execution.to_owned(),
            step: 0,
            part: Part::Text,
        };
        generations.is_superseded(&key, generation)
    }

    #[test]
    fn the_newest_generation_counts_whatever_comes_later() {
        let mut generations = Generations::default();
        assert!(!is_superseded(&generations, "run", 1));
        for generation in [3, 2] {
            generations.note(&BTreeMap::from([("run".to_owned(), generation)]));
            assert!(is_superseded(&generations, "run", 2));
            assert!(!is_superseded(&generations, "run", 3));
            assert!(!is_superseded(&generations, "other", 1));
        }
    }

    #[test]
    fn memory_is_bounded_and_what_is_in_use_stays() {
        let mut generations = Generations::default();
        for number in 0..2 * MAX_AGENT_EXECUTIONS {
            let used = ("used".to_owned(), 7);
            generations.note(&BTreeMap::from([used, (format!("run_{number}"), 1)]));
        }
        assert_eq!(generations.0.len(), MAX_AGENT_EXECUTIONS);
        assert!(is_superseded(&generations, "used", 6));
    }
}
