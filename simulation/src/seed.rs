//! Choices that follow from a seed, so that a failing order can be repeated, and made shorter.

/// A source of choices: the numbers of a list, and then the numbers of a seed, or only the first choice.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    /// The state of SplitMix64 (small, fast, and equal on every machine); `None`: the first choice, again and again.
    random: Option<u64>,
    /// The choices to repeat.
    list: Vec<u32>,
    /// The choices so far.
    made: Vec<u32>,
}

impl Choices {
    /// Makes the choices of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Some(seed ^ 0x5851_f42d_4c95_7f2d),
            list: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Repeats choices, and makes the first choice after them.
    pub(crate) fn repeat(list: Vec<u32>) -> Self {
        Self {
            random: None,
            list,
            made: Vec::new(),
        }
    }

    /// Returns the choices so far.
    pub(crate) fn made(&self) -> Vec<u32> {
        self.made.clone()
    }

    fn next(&mut self) -> u64 {
        if let Some(known) = self.list.get(self.made.len()) {
            return u64::from(*known);
        }
        let Some(state) = &mut self.random else {
            return 0;
        };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        let chosen = self.next().checked_rem(bound).unwrap_or(0);
        self.made.push(u32::try_from(chosen).unwrap_or(u32::MAX));
        usize::try_from(chosen).unwrap_or(0)
    }

    /// Returns true `times` in 100 times. The first choice is false.
    pub(crate) fn percent(&mut self, times: usize) -> bool {
        self.below(100) + times >= 100
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
