//! Remembers the newest generation of an agent execution, as the store has it (invariant 7, fenced deltas).
//!
//! The stream may have lost the newest generation, or the gateway may not have received the generation yet. A reader
//! may have seen the newest generation at another gateway. The gateway must then show no older generation to the
//! reader.

use std::collections::BTreeMap;

use everturn_stream::TextKey;

use super::newest::Newest;

/// The newest generation of every known agent execution.
#[derive(Debug, Default)]
pub(super) struct Generations(Newest<u32>);

impl Generations {
    /// Notes the generations in the store's answer. An older answer changes no generation.
    pub(super) fn note(&mut self, newest: &BTreeMap<String, u32>) {
        for (execution, generation) in newest {
            self.0.raise(execution, *generation);
        }
    }

    /// Returns true when the text's agent execution has a newer generation. The text then belongs to a retried step or
    /// to an earlier step, because the worker saves a step's event before claiming the next step.
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
