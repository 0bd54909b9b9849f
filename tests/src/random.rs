//! Pseudo-random numbers, the same for the same seed, so that a test that failed can be run again.

/// SplitMix64, whose numbers are well spread for any seed, 0 and 1 included.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Makes the generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Makes a generator whose seed is mixed from several.
    pub fn of(seeds: &[u64]) -> Self {
        Self::new(
            seeds
                .iter()
                .fold(0, |state, seed| Self::new(state ^ *seed).next()),
        )
    }

    /// Returns a number below `limit`, which must not be 0. Its bias is far below what a test could notice.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    /// Returns one of the values.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
