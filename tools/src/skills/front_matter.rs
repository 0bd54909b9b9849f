//! The front matter of a SKILL.md: YAML between two lines `---`, typed and checked according to the format.

use serde::Deserialize;

/// Limits of the format (agentskills.io/specification).
const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 1024;
const MAX_COMPATIBILITY_CHARS: usize = 500;
/// Everturn's limit, because the format has none: the model gets the field together with the instructions.
const MAX_ALLOWED_TOOLS_CHARS: usize = 500;

const DELIMITER: &str = "---";

/// The fields of the front matter. Fields without a use in Everturn (`license`, `metadata`, fields of other products)
/// are skipped.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct FrontMatter {
    pub(super) name: String,
    /// The purpose of the skill and when to use it.
    pub(super) description: String,
    /// Requirements on the environment, in words.
    #[serde(default)]
    pub(super) compatibility: String,
    /// Tools suggested by the author. They grant no permission: the operator decides which tools an agent has.
    #[serde(default)]
    pub(super) allowed_tools: AllowedTools,
}

/// A text in the format, but a list in some products.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum AllowedTools {
    Text(String),
    List(Vec<String>),
}

impl Default for AllowedTools {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl AllowedTools {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::List(names) => names.join(" "),
        }
    }
}

impl FrontMatter {
    /// Returns the front matter of a SKILL.md and the instructions after it. `folder` is the name of the skill's
    /// folder.
    pub(super) fn read<'a>(text: &'a str, folder: &str) -> Result<(Self, &'a str), String> {
        let text = text.trim_start_matches('\u{FEFF}');
        let (head, instructions) = split(text).ok_or(
            "the file must begin with YAML between two lines `---`: name and description of the skill",
        )?;
        let head: Self = serde_yaml_ng::from_str(head).map_err(|error| error.to_string())?;
        head.check(folder)?;
        Ok((head, instructions.trim()))
    }

    fn check(&self, folder: &str) -> Result<(), String> {
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_framed =
            !self.name.starts_with('-') && !self.name.ends_with('-') && !self.name.contains("--");
        if self.name.is_empty()
            || self.name.len() > MAX_NAME_CHARS
            || !self.name.chars().all(is_fit)
            || !is_framed
        {
            return Err(format!(
                "`name` has 1 to {MAX_NAME_CHARS} letters a-z, digits and single `-`, and must not begin or end with `-`"
            ));
        }
        if self.name != folder {
            return Err(format!(
                "`name` is `{}`, and must be the name of the skill's folder, `{folder}`",
                self.name
            ));
        }
        if self.description.trim().is_empty() {
            return Err(
                "`description` must not be empty: write the purpose of the skill, and when to use the skill"
                    .to_owned(),
            );
        }
        let allowed_tools = match &self.allowed_tools {
            AllowedTools::Text(text) => text.chars().count(),
            AllowedTools::List(names) => names.iter().map(|name| name.chars().count() + 1).sum(),
        };
        for (field, chars, max) in [
            (
                "description",
                self.description.chars().count(),
                MAX_DESCRIPTION_CHARS,
            ),
            (
                "compatibility",
                self.compatibility.chars().count(),
                MAX_COMPATIBILITY_CHARS,
            ),
            ("allowed-tools", allowed_tools, MAX_ALLOWED_TOOLS_CHARS),
        ] {
            if chars > max {
                return Err(format!(
                    "`{field}` has {chars} characters; the limit is {max}"
                ));
            }
        }
        Ok(())
    }
}

/// Splits a SKILL.md into the front matter and the rest. The front matter keeps its delimiter line, so that line
/// numbers in errors fit the file.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let is_delimiter = line.trim_end() == DELIMITER;
        if index == 0 && !is_delimiter {
            return None;
        }
        if index > 0 && is_delimiter {
            return Some((&text[..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(head: &str) -> Result<FrontMatter, String> {
        FrontMatter::read(&format!("---\n{head}\n---\nText."), "pdf-forms").map(|(head, _)| head)
    }

    #[test]
    fn a_head_takes_what_is_written() {
        let text = "\u{FEFF}---\r\nname: pdf-forms\r\ndescription: >\r\n  Fills in\r\n  forms.\r\nlicense: MIT\r\n\
                    metadata:\r\n  author: me\r\ncompatibility: needs qpdf\r\nallowed-tools: Bash(qpdf:*) Read\r\n---\r\n\r\n\
                    # Forms\r\n---\r\nMore.\r\n";
        let (head, instructions) = FrontMatter::read(text, "pdf-forms").unwrap();
        assert_eq!(head.description.trim(), "Fills in forms.");
        assert_eq!(head.compatibility, "needs qpdf");
        assert_eq!(head.allowed_tools.into_text(), "Bash(qpdf:*) Read");
        assert_eq!(instructions, "# Forms\r\n---\r\nMore.");
        let head = read("name: pdf-forms\ndescription: x\nallowed-tools: [Read, Write]").unwrap();
        assert_eq!(head.allowed_tools.into_text(), "Read Write");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (head, expected) in [
            ("name: pdf-forms", "missing field `description`"),
            ("name: pdf-forms\ndescription: a: b", "line 3"),
            ("name: pdf-forms\ndescription: ''", "must not be empty"),
            ("name: PDF\ndescription: x", "letters a-z"),
            ("name: pdf--forms\ndescription: x", "single `-`"),
            ("name: ''\ndescription: x", "letters a-z"),
            (
                "name: other\ndescription: x",
                "must be the name of the skill's folder, `pdf-forms`",
            ),
            ("name: [a]\ndescription: x", "invalid type"),
            ("- a", "invalid type"),
        ] {
            let error = read(head).unwrap_err();
            assert!(error.contains(expected), "{head}: {error}");
        }
        let long = read(&format!(
            "name: pdf-forms\ndescription: {}",
            "x".repeat(1025)
        ))
        .unwrap_err();
        assert_eq!(long, "`description` has 1025 characters; the limit is 1024");
        for text in [
            "",
            "# Title",
            "---\nname: pdf-forms\n",
            "\n---\nname: x\n---\n",
        ] {
            assert!(
                FrontMatter::read(text, "pdf-forms")
                    .unwrap_err()
                    .contains("must begin with YAML"),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(---\n)?\\PC{0,80}(\n---\n\\PC{0,20})?") {
            let _read_or_refused = FrontMatter::read(&text, "x");
        }
    }
}
