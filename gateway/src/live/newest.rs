//! The highest known value of an agent execution, in a bounded map for one conversation.

use std::num::NonZeroUsize;

use lru::LruCache;

/// The most agent executions in the map: more than can write texts at once in a conversation.
const MAX_AGENT_EXECUTIONS: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The highest value of an agent execution. Beyond the limit, the map removes the agent execution with the oldest
/// raise. Lookups do not count as use, because a writing agent execution raises its value with every step.
#[derive(Debug)]
pub(super) struct Newest<V>(LruCache<String, V>);

impl<V> Default for Newest<V> {
    fn default() -> Self {
        // Most conversations have few agent executions, so the map does not allocate its full size at the start.
        Self(LruCache::sparse(MAX_AGENT_EXECUTIONS))
    }
}

impl<V: Copy + Ord> Newest<V> {
    /// Notes a value of an agent execution. A value below the known value changes no entry.
    pub(super) fn raise(&mut self, execution: &str, value: V) {
        if let Some(known) = self.0.get_mut(execution) {
            *known = value.max(*known);
        } else {
            self.0.put(execution.to_owned(), value);
        }
    }

    /// Returns the highest value of an agent execution.
    pub(super) fn of(&self, execution: &str) -> Option<V> {
        self.0.peek(execution).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_value_counts_whatever_comes_later() {
        let mut newest = Newest::default();
        for value in [2, 3, 1] {
            newest.raise("run", value);
        }
        assert_eq!((newest.of("run"), newest.of("other")), (Some(3), None));
    }

    #[test]
    fn memory_is_bounded_and_the_agent_execution_in_use_stays() {
        let mut newest = Newest::default();
        for number in 0..2 * MAX_AGENT_EXECUTIONS.get() {
            newest.raise("used", 7);
            newest.raise(&format!("run_{number}"), 1);
            newest.of("run_0");
        }
        assert_eq!(newest.0.len(), MAX_AGENT_EXECUTIONS.get());
        assert_eq!((newest.of("used"), newest.of("run_0")), (Some(7), None));
    }
}
