//! Skills: folders with a SKILL.md (the Agent Skills format, agentskills.io), which a model calls like tools.
//!
//! - `front_matter`: the front matter of a SKILL.md, typed and checked
//! - `folder`: a skill on disk: its instructions, and the files that a model may read
//! - `tool`: a skill as a tool
//!
//! Every skill is a tool of its own, `skill__<name>`. The model chooses a skill for a task by the description. A
//! model cannot call a tool without an offer, so an agent's list of skills is enforced like its list of tools.
//!
//! Must not be here: running code from a skill's folder. A model follows the instructions with the agent's tools.

mod folder;
mod front_matter;
mod tool;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;

use crate::{
    checked::CheckedTool,
    context::Asker,
    error::ToolError,
    names,
    registry::{ToolSet, ToolSource},
};
use folder::Skill;
use tool::SkillTool;

pub use folder::SKILL_FILE;
pub use tool::SOURCE;

/// The wildcard for all skills in an agent's list.
pub const ALL: &str = "*";

/// The most skills. Every skill is a tool in each model call of its agents, and OpenAI accepts at most 128 tools.
const MAX_SKILLS: usize = 64;

/// The skills of a worker, read once at the start.
#[derive(Clone, Default)]
pub struct Skills {
    /// The skills by the names of their tools.
    tools: Arc<ToolSet>,
    /// The names of usable skills, as agents list them, each with a number that differs for another content.
    names: BTreeMap<String, u64>,
    /// The names of skills that were left out.
    broken: BTreeSet<String>,
}

impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skills")
            .field("names", &self.names.keys())
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl Skills {
    /// Reads the skills in these folders. A skill is a subfolder with a SKILL.md. An unusable skill is left out with
    /// a warning. Returns an error for a folder that cannot be listed.
    pub fn read<'a>(
        folders: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let mut skills = Self::default();
        let mut tools = ToolSet::new();
        for folder in folders {
            for path in skill_folders(folder).map_err(|error| (folder.to_owned(), error))? {
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                match skills.checked(&path, &name) {
                    Ok((tool, content)) => {
                        tools.insert(tool.spec().name.clone(), tool);
                        skills.names.insert(name, content);
                    }
                    Err(reason) => {
                        let file = path.join(SKILL_FILE);
                        tracing::warn!(skill = name, file = %file.display(), reason, "a skill is left out");
                        skills.broken.insert(name);
                    }
                }
            }
        }
        skills.tools = Arc::new(tools);
        Ok(skills)
    }

    fn checked(&self, path: &Path, name: &str) -> Result<(CheckedTool, u64), String> {
        if self.names.contains_key(name) {
            return Err("another skill already has the name".to_owned());
        }
        if self.names.len() >= MAX_SKILLS {
            return Err(format!("a worker has at most {MAX_SKILLS} skills"));
        }
        let skill = Skill::read(path, name)?;
        let mut content = DefaultHasher::new();
        format!("{skill:?}").hash(&mut content);
        let tool = CheckedTool::new(Arc::new(SkillTool::new(skill)));
        let tool = tool.map_err(|error| error.to_string())?;
        Ok((tool, content.finish()))
    }

    /// Returns the names of the usable skills, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Returns each usable skill with a number that differs for another content.
    pub fn contents(&self) -> impl Iterator<Item = (&str, u64)> {
        let contents = self.names.iter();
        contents.map(|(name, content)| (name.as_str(), *content))
    }

    /// Returns true for the name of a usable skill or of a skill that was left out.
    pub fn knows(&self, name: &str) -> bool {
        self.names.contains_key(name) || self.broken.contains(name)
    }
}

/// Returns the entry for a skill in an agent's list of tools; [`ALL`] gives the entry for all skills.
pub fn tool_name(skill: &str) -> String {
    if skill == ALL {
        format!("{SOURCE}__{ALL}")
    } else {
        names::qualified(SOURCE, skill)
    }
}

/// Returns the subfolders of `folder` with a SKILL.md, by name.
fn skill_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.join(SKILL_FILE).is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[async_trait]
impl ToolSource for Skills {
    async fn tools(&self, _: Asker<'_>) -> Arc<ToolSet> {
        Arc::clone(&self.tools)
    }

    async fn find(&self, name: &str, _: Asker<'_>) -> Result<CheckedTool, ToolError> {
        let found = self.tools.get(name).cloned();
        found.ok_or_else(|| {
            ToolError::Failed(
                "No skill has this name. Use only the skills that you were given.".to_owned(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    fn skill(folder: &Path, name: &str, text: &str) {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join(SKILL_FILE), text).unwrap();
    }

    #[tokio::test]
    async fn broken_skills_are_left_out_and_the_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        skill(
            folder.path(),
            "good",
            "---\nname: good\ndescription: Does good.\n---\nBe good.\n",
        );
        skill(folder.path(), "no-head", "# Just text\n");
        skill(
            folder.path(),
            "other-name",
            "---\nname: good\ndescription: x\n---\n",
        );
        fs::create_dir(folder.path().join("no-skill")).unwrap();
        let skills = Skills::read([folder.path()]).unwrap();
        assert_eq!(skills.names().collect::<Vec<_>>(), ["good"]);
        assert!(skills.knows("good") && skills.knows("no-head") && skills.knows("other-name"));
        assert!(!skills.knows("no-skill"));
        assert_eq!(
            skills
                .tools(context().asker())
                .await
                .keys()
                .collect::<Vec<_>>(),
            ["skill__good"]
        );
        assert!(
            skills.find("skill__good", context().asker()).await.is_ok()
                && skills
                    .find("skill__no-head", context().asker())
                    .await
                    .is_err()
        );
    }

    #[test]
    fn the_first_of_two_skills_of_one_name_stays() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (folder, description) in [(&a, "First."), (&b, "Second.")] {
            skill(
                folder.path(),
                "x",
                &format!("---\nname: x\ndescription: {description}\n---\nDo it."),
            );
        }
        let skills = Skills::read([a.path(), b.path()]).unwrap();
        assert!(
            skills.tools["skill__x"]
                .spec()
                .description
                .contains("First.")
        );
    }

    #[test]
    fn a_worker_has_so_many_skills() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=MAX_SKILLS {
            let name = format!("s{number:03}");
            skill(
                folder.path(),
                &name,
                &format!("---\nname: {name}\ndescription: x\n---\nDo it."),
            );
        }
        assert_eq!(
            Skills::read([folder.path()]).unwrap().names().count(),
            MAX_SKILLS
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error() {
        let (path, error) = Skills::read([Path::new("no/such/folder")]).err().unwrap();
        assert_eq!(
            (path.as_path(), error.kind()),
            (Path::new("no/such/folder"), io::ErrorKind::NotFound)
        );
    }

    #[test]
    fn agents_list_skills_among_their_tools() {
        assert_eq!(tool_name("pdf-forms"), "skill__pdf-forms");
        assert!(names::covers(&tool_name(ALL), &tool_name("pdf-forms")));
        let long = tool_name(&"x".repeat(64));
        assert!(names::is_valid(&long) && names::covers(&tool_name(ALL), &long));
    }
}
