//! Choices that follow from a seed, so that a failing order can be repeated.

/// A source of choices (SplitMix64: small, fast, and equal on every machine).
#[derive(Debug, Clone)]
pub(crate) struct Choices(u64);

impl Choices {
    /// Makes the choices of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        let chosen = self.next().checked_rem(bound).unwrap_or(0);
        usize::try_from(chosen).unwrap_or(0)
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
