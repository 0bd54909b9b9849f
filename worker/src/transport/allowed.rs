//! The connections that may work without TLS, by their names on the command line.

/// A connection of Everturn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Database,
    Redis,
    Temporal,
}

impl Link {
    const ALL: [Self; 3] = [Self::Database, Self::Redis, Self::Temporal];

    fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Redis => "redis",
            Self::Temporal => "temporal",
        }
    }
}

/// The connections to other machines that may work without TLS, or without a check of the server's certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedPlaintext(Vec<Link>);

impl AllowedPlaintext {
    /// Parses names separated by commas. An empty text means no connection.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim);
        let links = names.filter(|name| !name.is_empty()).map(|name| {
            let found = Link::ALL.into_iter().find(|link| link.name() == name);
            found.ok_or_else(|| {
                let known = Link::ALL.map(Link::name).join(", ");
                format!(
                    "`{name}` is not a connection; name connections of {known} that may go without TLS"
                )
            })
        });
        links.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn has(&self, link: Link) -> bool {
        self.0.contains(&link)
    }
}

impl std::fmt::Display for AllowedPlaintext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.0.iter().map(|link| link.name()).collect();
        f.write_str(&names.join(","))
    }
}
