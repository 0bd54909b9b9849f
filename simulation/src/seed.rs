//! Choices that follow from a seed, so that a failing order can be repeated.

use fastrand::Rng;

/// A source of choices, which are equal on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Choices(Rng);

impl Choices {
    /// Makes the choices of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// Returns a number below `bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        if bound == 0 {
            return 0;
        }
        // `u64`, because a machine with 32 bits would draw another `usize`.
        usize::try_from(self.0.u64(..bound)).unwrap_or(0)
    }

    /// Returns true `times` in 100 times.
    pub(crate) fn percent(&mut self, times: usize) -> bool {
        self.below(100) < times
    }

    /// Returns a chosen value; `None` for an empty list.
    pub(crate) fn one_of<T>(&mut self, values: Vec<T>) -> Option<T> {
        if values.is_empty() {
            return None;
        }
        let chosen = self.below(values.len());
        values.into_iter().nth(chosen)
    }
}
