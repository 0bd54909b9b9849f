//! Numbers that look random and are the same for the same seed: what failed once can be run again.

/// SplitMix64, whose numbers are well spread for any seed, 0 and 1 included.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The numbers of a list of seeds.
    pub fn of(seeds: &[u64]) -> Self {
        Self::new(
            seeds
                .iter()
                .fold(0, |state, seed| Self::new(state ^ *seed).next()),
        )
    }

    /// A number below `limit`, which is not 0. The bias is far below what a test could notice.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    /// One of several.
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
