//! `[skills]`: the folders of the skills that agents may name.

use std::path::PathBuf;

use everturn_tools::skills::{self, Skills};
use serde::Deserialize;
use toml::Spanned;

use crate::checker::Checker;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SkillsTable {
    paths: Vec<Spanned<PathBuf>>,
}

impl SkillsTable {
    /// Returns the skills in the folders of `paths`. A relative path starts at the file's own folder. A broken skill
    /// is left out; it is no mistake of the configuration file.
    pub(crate) fn check(&self, check: &mut Checker<'_>) -> Skills {
        let mut folders = Vec::new();
        for path in &self.paths {
            let folder = check.path_beside_file(path);
            check.note(&folder);
            match folder.read_dir() {
                Ok(entries) => {
                    for entry in entries.filter_map(Result::ok) {
                        check.note(&entry.path().join(skills::SKILL_FILE));
                    }
                    folders.push(folder);
                }
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
