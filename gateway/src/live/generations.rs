//! Remembers the newest generation of each agent execution, as the store has it (invariant 7, fenced deltas).
//!
//! The stream may have lost the newest generation, or this gateway may not have heard of it yet. A reader may have seen
//! it at another gateway. Then it must not be shown an older one here.

use std::collections::BTreeMap;

use everturn_stream::TextKey;

use super::newest::Newest;

/// The newest generation of each agent execution.
#[derive(Debug, Default)]
pub(super) struct Generations(Newest<u32>);

impl Generations {
    /// Notes what the store has. An older answer changes nothing.
    pub(super) fn note(&mut self, newest: &BTreeMap<String, u32>) {
        for (execution, generation) in newest {
            self.0.raise(execution, *generation);
        }
    }

    /// True when a newer generation of the text's agent execution is known. The text is then of a step that is being
    /// tried again, or of an earlier step: its event is saved before the next step is claimed.
    pub(super) fn is_superseded(&self, key: &TextKey, generation: u32) -> bool {
        let newest = self.0.of(&key.agent_execution_id);
        newest.is_some_and(|newest| generation < newest)
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
}
