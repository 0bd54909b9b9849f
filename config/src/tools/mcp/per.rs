//! `per` of an MCP server: who shares a connection, which decides whether its secrets may come from files per tenant.

use everturn_tools::mcp::SecretFile;
use serde::Deserialize;
use toml::Spanned;

use crate::checker::Checker;

/// Who shares a connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PerWord {
    #[default]
    Worker,
    Tenant,
    /// A connection per person who consents. No file writes the word: the grant `authorization_code` decides.
    #[serde(skip)]
    Person,
}

impl PerWord {
    /// Returns the file of a secret. Only a connection per tenant may have a file per tenant.
    pub(super) fn file(
        self,
        key: &str,
        path: &Spanned<String>,
        check: &mut Checker<'_>,
    ) -> SecretFile {
        let beside = check.path_beside_file(path);
        let file = SecretFile::new(beside.display().to_string());
        if file.is_per_tenant() && self == Self::Worker {
            check.wrong(
                path,
                format!("`{{tenant}}` in `{key}` needs `per = \"tenant\"`, or the grant `authorization_code` in `oauth`"),
            );
        }
        file
    }
}
