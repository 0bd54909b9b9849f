//! `[skills]`, and the skills that agents name.

use std::path::{Path, PathBuf};

use everturn_activities::tools::skills::{self, Skills};
use everturn_proto::turn::AgentTool;
use serde::Deserialize;
use toml::Spanned;

use super::check::{Checker, known_names};

/// The table as written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Table {
    paths: Vec<Spanned<PathBuf>>,
}

impl Checker<'_> {
    /// The skills in the folders of `paths`, which are relative to the file's own. A skill that is broken is no mistake of
    /// the file: it is left out.
    pub(super) fn skills(&mut self, table: &Table) -> Skills {
        let mut folders = Vec::new();
        for path in &table.paths {
            let folder = Path::new(self.file_name()).with_file_name(path.get_ref());
            match folder.read_dir() {
                Ok(_) => folders.push(folder),
                Err(error) => {
                    let message = format!(
                        "the folder of skills {} cannot be read: {error}",
                        folder.display()
                    );
                    self.wrong(path, &message);
                }
            }
        }
        Skills::read(folders.iter().map(PathBuf::as_path)).unwrap_or_else(|(folder, error)| {
            tracing::warn!(folder = %folder.display(), %error, "a folder of skills cannot be read");
            Skills::default()
        })
    }

    /// The tools by which an agent uses its skills. Any name will do when `known` is not known.
    pub(super) fn agent_skills(
        &mut self,
        named: &[Spanned<String>],
        known: Option<&Skills>,
        timeout_ms: u32,
    ) -> Vec<AgentTool> {
        let mut tools: Vec<AgentTool> = Vec::new();
        for skill in named {
            let name = skills::tool_name(skill.get_ref());
            if tools.iter().any(|tool| tool.name == name) {
                self.wrong(
                    skill,
                    &format!(
                        "skill `{}` is named twice; keep one of them",
                        skill.get_ref()
                    ),
                );
            } else if let Some(known) = known.filter(|known| !is_known(known, skill.get_ref())) {
                let names: Vec<_> = known.names().collect();
                let message = format!(
                    "there is no skill `{}`; {}",
                    skill.get_ref(),
                    known_names("skills", &names)
                );
                self.wrong(skill, &message);
            } else {
                tools.push(AgentTool {
                    name,
                    timeout_ms,
                    ..AgentTool::default()
                });
            }
        }
        tools
    }
}

fn is_known(known: &Skills, name: &str) -> bool {
    name == skills::ALL || known.knows(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{Config, ConfigError};

    const AGENT: &str = "[providers.main]\nkind = \"openai\"\n[agents.default]\nprovider = \"main\"\nmodel = \"m\"\n";

    /// The configuration beside a folder `skills` with a good skill and a broken one.
    fn load(text: &str) -> Result<Config, ConfigError> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("good", "---\nname: good\ndescription: x\n---\nDo good."),
            ("broken", "Do bad."),
        ] {
            fs::create_dir_all(directory.path().join("skills").join(name)).unwrap();
            fs::write(
                directory.path().join("skills").join(name).join("SKILL.md"),
                text,
            )
            .unwrap();
        }
        let file = directory.path().join("everturn.toml");
        fs::write(&file, text).unwrap();
        Config::load(Some(&file), &["calculate".to_owned()])
    }

    fn tools(config: &Config) -> Vec<&str> {
        config.agents[0]
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect()
    }

    #[test]
    fn agents_name_skills_and_a_broken_one_stops_nothing() {
        let config = load(&format!(
            "{AGENT}tools = [\"calculate\"]\nskills = [\"*\"]\n[skills]\npaths = [\"skills\"]\n"
        ));
        let config = config.unwrap();
        assert_eq!(tools(&config), ["calculate", "skill__*"]);
        assert_eq!(config.skills.names().collect::<Vec<_>>(), ["good"]);
        let config = load(&format!(
            "{AGENT}skills = [\"good\", \"broken\"]\n[skills]\npaths = [\"skills\"]\n"
        ))
        .unwrap();
        assert_eq!(tools(&config), ["skill__good", "skill__broken"]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, expected) in [
            (
                "[skills]\npaths = [\"nowhere\"]\n".to_owned(),
                "everturn.toml:2:10: the folder of skills",
            ),
            (
                format!("{AGENT}skills = [\"god\"]\n[skills]\npaths = [\"skills\"]\n"),
                "everturn.toml:6:11: there is no skill `god`; there are: good",
            ),
            (
                format!("{AGENT}skills = [\"good\"]\n"),
                "there is no skill `good`; no skills are configured",
            ),
            (
                format!("{AGENT}skills = [\"*\", \"*\"]\n[skills]\npaths = [\"skills\"]\n"),
                "everturn.toml:6:16: skill `*` is named twice",
            ),
            (
                "[skills]\npath = \"skills\"\n".to_owned(),
                "unknown field `path`",
            ),
        ] {
            let error = load(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_gateway_needs_no_skills() {
        let text = format!("{AGENT}skills = [\"good\"]\n[skills]\npaths = [\"nowhere\"]\n");
        let config = Config::parse(&text, "everturn.toml", None, &|_| None).unwrap();
        assert_eq!(tools(&config), ["skill__good"]);
    }
}
