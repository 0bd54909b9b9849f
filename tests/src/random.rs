//! Pseudo-random numbers, the same for the same seed, so that a test that failed can be run again.

use fastrand::Rng;

/// A generator whose numbers are well spread for any seed, 0 and 1 included.
#[derive(Debug, Clone)]
pub struct Random(Rng);

impl Random {
    /// Makes the generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    /// Makes a generator whose seed is mixed from several.
    pub fn of(seeds: &[u64]) -> Self {
        let mix = |state: u64, seed: &u64| Rng::with_seed(state ^ *seed).u64(..);
        Self::new(seeds.iter().fold(0, mix))
    }

    /// Returns a number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    /// Returns one of the values.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}
