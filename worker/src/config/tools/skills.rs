//! `[skills]`: the folders whose skills agents may name.

use std::path::PathBuf;

use everturn_activities::tools::skills::Skills;
use serde::Deserialize;
use toml::Spanned;

use crate::config::checker::Checker;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct SkillsTable {
    paths: Vec<Spanned<PathBuf>>,
}

impl SkillsTable {
    /// The skills in the folders of `paths`, which are relative to the file's own. A skill that is broken is no mistake
    /// of the file: it is left out.
    pub(in crate::config) fn check(&self, check: &mut Checker<'_>) -> Skills {
        let mut folders = Vec::new();
        for path in &self.paths {
            let folder = check.path_beside_file(path.get_ref());
            match folder.read_dir() {
                Ok(_) => folders.push(folder),
                Err(error) => check.wrong(
                    path,
                    format!(
                        "the folder of skills {} cannot be read: {error}",
                        folder.display()
                    ),
                ),
            }
        }
        Skills::read(folders.iter().map(PathBuf::as_path)).unwrap_or_else(|(folder, error)| {
            tracing::warn!(folder = %folder.display(), %error, "a folder of skills cannot be read");
            Skills::default()
        })
    }
}
