//! Who shares a connection to a server, and so whose files its secrets may be in.

use std::path::Path;

use everturn_activities::tools::mcp::SecretFile;
use serde::Deserialize;
use toml::Spanned;

use crate::config::checker::Checker;

/// Who shares a connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PerWord {
    #[default]
    Worker,
    Tenant,
}

impl PerWord {
    /// A file with a secret. Only connections of tenants have files of tenants.
    pub(super) fn file(
        self,
        key: &str,
        path: &Spanned<String>,
        check: &mut Checker<'_>,
    ) -> SecretFile {
        let beside = check.path_beside_file(Path::new(path.get_ref()));
        let file = SecretFile::new(beside.display().to_string());
        if file.is_per_tenant() && self != Self::Tenant {
            check.wrong(
                path,
                format!("`{{tenant}}` in `{key}` needs `per = \"tenant\"`"),
            );
        }
        file
    }
}
