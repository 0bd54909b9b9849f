//! What a caller may do.

use std::fmt;

/// One thing a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Read conversations and follow their streams: GET.
    Read,
    /// Change them: create, send, cancel and so on.
    Write,
    /// Answer approvals. Not part of `write`: who may talk to an agent need not be who allows its tools.
    Approve,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Approve];

    /// Its word, as in tokens and configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Approve => "approve",
        }
    }

    /// The scope of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }

    fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Approve => 4,
        }
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Every scope there is.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Reads words between spaces. Words that this version does not know allow nothing.
    pub fn parse(text: &str) -> Self {
        text.split(' ').filter_map(Scope::of).collect()
    }

    /// True when this scope is among them.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Their words, in the order of [`Scope::ALL`].
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        Scope::ALL
            .into_iter()
            .filter(move |scope| self.has(*scope))
            .map(Scope::as_str)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Display for Scopes {
    /// Words between spaces, as [`Scopes::parse`] reads them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for text in ["", "read", "read write", "read write approve"] {
            assert_eq!(Scopes::parse(text).to_string(), text);
        }
        assert_eq!(
            Scopes::parse("approve read read later").to_string(),
            "read approve"
        );
        assert!(Scopes::parse("READ write").words().eq(["write"]));
        assert_eq!(Scopes::all(), Scopes::parse("read write approve"));
    }
}
