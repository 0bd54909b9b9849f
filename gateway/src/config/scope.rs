//! Scopes: the rights of a caller.

use std::fmt;

use everturn_store::Reach;

/// One right of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Read conversations and follow streams: GET.
    Read,
    /// Change conversations: create, send, cancel and the like.
    Write,
    /// Answer approvals. `write` does not include `approve`, because a user who talks to an agent need not be the
    /// person who allows the agent's tools.
    Approve,
    /// Read the content of LLM calls: the agent's instructions, and every message that a model was sent. `read` does not
    /// include `calls`, because the instructions of an agent need not be known to the users of the agent.
    Calls,
    /// Decrypt the engine's payloads of the whole tenant. Only the scope `codec` grants decryption.
    Codec,
    /// Administer the caller's own tenant: its audit trail, keys and usage. Only `admin:all` includes `admin`.
    Admin,
    /// Administer every tenant. `admin:all` includes `admin`.
    AdminAll,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 7] = [
        Self::Read,
        Self::Write,
        Self::Approve,
        Self::Calls,
        Self::Codec,
        Self::Admin,
        Self::AdminAll,
    ];

    /// The scopes of callers without a credential, and the scopes that a token's words grant by default. An operator
    /// must grant the remaining scopes explicitly.
    pub const OF_USERS: [Self; 3] = [Self::Read, Self::Write, Self::Approve];

    /// Returns the scope's word in tokens and configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Approve => "approve",
            Self::Calls => "calls",
            Self::Codec => "codec",
            Self::Admin => "admin",
            Self::AdminAll => "admin:all",
        }
    }

    /// Returns the scope of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }

    /// Returns the bits of the scope and of the scopes included in it.
    fn bits(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Approve => 4,
            Self::Admin => 8,
            Self::AdminAll => 16 | Self::Admin.bits(),
            Self::Codec => 32,
            Self::Calls => 64,
        }
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Returns the set of every scope.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Returns [`Scope::OF_USERS`].
    pub fn of_users() -> Self {
        Scope::OF_USERS.into_iter().collect()
    }

    /// Returns the scopes of the person who runs `everturn dev`: [`Scope::OF_USERS`] and [`Scope::Calls`].
    pub fn of_developer() -> Self {
        Scope::OF_USERS.into_iter().chain([Scope::Calls]).collect()
    }

    /// Returns a scope of the set that `others` lacks.
    pub fn beyond(self, others: Self) -> Option<Scope> {
        let mut own = Scope::ALL.into_iter().filter(|scope| self.has(*scope));
        own.find(|scope| !others.has(*scope))
    }

    /// Reads words separated by spaces. Unknown words grant no scope.
    pub fn parse(text: &str) -> Self {
        text.split(' ').filter_map(Scope::of).collect()
    }

    /// Returns true when the set has the scope.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & scope.bits() == scope.bits()
    }

    /// Returns the tenants that a credential with the scopes has rights over.
    pub fn reach(self) -> Reach {
        if self.has(Scope::AdminAll) {
            Reach::All
        } else {
            Reach::Tenant
        }
    }

    /// Iterates over the words of the scopes, in the order of [`Scope::ALL`].
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        Scope::ALL
            .into_iter()
            .filter(move |scope| self.has(*scope))
            .map(Scope::as_str)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(
            scopes
                .into_iter()
                .fold(0, |bits, scope| bits | scope.bits()),
        )
    }
}

impl fmt::Display for Scopes {
    /// Writes the words separated by spaces, as [`Scopes::parse`] reads them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for text in [
            "",
            "read",
            "read write",
            "read write approve",
            "admin",
            "read admin admin:all",
        ] {
            assert_eq!(Scopes::parse(text).to_string(), text);
        }
        assert_eq!(
            Scopes::parse("approve read read later").to_string(),
            "read approve"
        );
        assert!(Scopes::parse("READ write").words().eq(["write"]));
        assert_eq!(Scopes::of_users(), Scopes::parse("read write approve"));
        assert_eq!(
            Scopes::all(),
            Scopes::parse("read write approve calls codec admin:all")
        );
    }

    #[test]
    fn an_admin_of_all_is_one_and_not_the_other_way_round() {
        let [one, all] = ["admin", "admin:all"].map(Scopes::parse);
        assert!(all.has(Scope::Admin) && !one.has(Scope::AdminAll));
        assert_eq!(all.beyond(one), Some(Scope::AdminAll));
        assert_eq!(one.beyond(all), None);
        assert!(all.reach().covers(one.reach()) && !one.reach().covers(all.reach()));
        assert_eq!(
            Scopes::parse("read admin").beyond(one),
            Some(Scope::Read),
            "an admin without `read` creates no key with `read`"
        );
    }
}
