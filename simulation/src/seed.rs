//! Choices that follow from a seed, so that a failing order can be repeated, and made shorter.

use fastrand::Rng;

/// A source of choices, which are equal on every machine: the numbers of a list, and then the numbers of a seed, or only the
/// first choice.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    /// The numbers of the seed; `None`: the first choice, again and again.
    random: Option<Rng>,
    /// The choices to repeat.
    list: Vec<u32>,
    /// The choices so far.
    made: Vec<u32>,
}

impl Choices {
    /// Makes the choices of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Some(Rng::with_seed(seed)),
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

    fn next(&mut self, bound: u64) -> u64 {
        if let Some(known) = self.list.get(self.made.len()) {
            return u64::from(*known).checked_rem(bound).unwrap_or(0);
        }
        match &mut self.random {
            // `u64`, because a machine with 32 bits would draw another `usize`.
            Some(random) if bound > 0 => random.u64(..bound),
            _ => 0,
        }
    }

    /// Returns a number below `bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let chosen = self.next(u64::try_from(bound).unwrap_or(u64::MAX));
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
