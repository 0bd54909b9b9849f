//! What was repaired in a message, and what was left out of the message.

/// The most flaws that a message reports; further flaws are counted.
const MAX_FLAWS: usize = 8;
/// The most characters of a flaw.
const MAX_FLAW_CHARS: usize = 200;

/// What was repaired in a message, and what was left out of it.
#[derive(Debug, Default)]
pub(in super::super) struct Flaws {
    noted: Vec<String>,
    others: usize,
}

impl Flaws {
    /// Notes a flaw.
    pub(super) fn note(&mut self, flaw: impl Into<String>) {
        if self.noted.len() < MAX_FLAWS {
            let flaw: String = flaw.into().chars().take(MAX_FLAW_CHARS).collect();
            self.noted.push(flaw);
        } else {
            self.others += 1;
        }
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }
}

impl std::fmt::Display for Flaws {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.noted.join("; "))?;
        match self.others {
            0 => Ok(()),
            others => write!(formatter, "; and {others} more"),
        }
    }
}
