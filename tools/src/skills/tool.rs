//! A skill as a tool. A call without arguments returns the instructions. A call with the name of a file returns the
//! file.
//!
//! Events: a call for the instructions matches the skill (`skill_matched`), begins (`skill_execution_start`) and
//! hands out the instructions (`skill_execution_complete`). The model's later work is in the acts that follow; only
//! the model knows which acts belong to the skill.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_proto::words::Effect;
use everturn_proto::{
    Json, TitleTemplate,
    event::{SkillExecutionComplete, SkillExecutionStart, SkillMatched},
    words::EventType,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::folder::Skill;
use crate::{
    context::ToolContext,
    error::ToolError,
    excerpt::{Piece, piece},
    names,
    tool::{Tool, ToolOrigin, ToolSpec},
    typed,
};

/// The source of all skill tools.
pub const SOURCE: &str = "skill";

/// A skill as a tool.
pub(super) struct SkillTool {
    spec: ToolSpec,
    skill: Arc<Skill>,
}

#[derive(Deserialize)]
struct Input {
    file: Option<String>,
    #[serde(default)]
    offset: usize,
}

/// The result of a call: the instructions with their details, or a file.
#[derive(Serialize)]
struct Output<'a> {
    skill: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    text: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    compatibility: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    allowed_tools: &'a str,
    /// The readable files.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    files: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl SkillTool {
    pub(super) fn new(skill: Skill) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "file": {
                    "type": "string",
                    "description": "A file to read, from the list with the instructions. Leave the argument out for \
                                    the instructions.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Where to go on in a long text: the next_offset of the call before.",
                },
            },
            "additionalProperties": false,
        });
        let spec = ToolSpec {
            name: names::qualified(SOURCE, &skill.name),
            description: format!(
                "{} (A skill: instructions for tasks of this kind. Call the tool first, without arguments, and follow \
                 the returned instructions.)",
                skill.description
            ),
            parameters,
            title: TitleTemplate::literal(&format!("Read the skill {}", skill.name)),
            effect: Effect::Read,
            // A file system may be slow.
            is_inline: false,
        };
        Self {
            spec,
            skill: Arc::new(skill),
        }
    }

    fn instructions(&self, context: &ToolContext, offset: usize) -> Result<Json, ToolError> {
        let skill = &*self.skill;
        let Piece { text, next_offset } = piece(&skill.instructions, offset);
        let is_first = offset == 0;
        if is_first {
            self.emit(context, next_offset.is_some())?;
        }
        Ok(Json::of(&Output {
            skill: &skill.name,
            file: None,
            text,
            compatibility: if is_first { &skill.compatibility } else { "" },
            allowed_tools: if is_first { &skill.allowed_tools } else { "" },
            files: if is_first { &skill.files } else { &[] },
            next_offset,
            note: next_offset.map(cut),
        }))
    }

    fn emit(&self, context: &ToolContext, is_cut: bool) -> Result<(), ToolError> {
        let (skill_name, execution_id) = (self.skill.name.clone(), context.execution_id.clone());
        let matched = SkillMatched {
            skill_name: skill_name.clone(),
            description: self.skill.description.clone(),
            execution_id: execution_id.clone(),
        };
        let start = SkillExecutionStart {
            skill_name: skill_name.clone(),
            execution_id: execution_id.clone(),
        };
        let complete = SkillExecutionComplete {
            skill_name,
            execution_id,
            is_cut,
        };
        let events = &context.events;
        events.emit(EventType::SkillMatched, &matched)?;
        events.emit(EventType::SkillExecutionStart, &start)?;
        events.emit(EventType::SkillExecutionComplete, &complete)
    }

    async fn file(&self, file: String, offset: usize) -> Result<Json, ToolError> {
        let (skill, name) = (Arc::clone(&self.skill), file.clone());
        let read = tokio::task::spawn_blocking(move || skill.file(&name)).await;
        let text = read
            .unwrap_or_else(|_| Err("it cannot be read".to_owned()))
            .map_err(|reason| {
                let shown: String = file.chars().take(100).collect();
                ToolError::Failed(format!("File `{shown}`: {reason}."))
            })?;
        let Piece { text, next_offset } = piece(&text, offset);
        let result = Output {
            skill: &self.skill.name,
            file: Some(&file),
            text,
            compatibility: "",
            allowed_tools: "",
            files: &[],
            next_offset,
            note: next_offset.map(cut),
        };
        Ok(Json::of(&result))
    }
}

fn cut(next_offset: usize) -> String {
    format!("The text was cut here; call again with offset {next_offset} for the next part.")
}

#[async_trait]
impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn origin(&self) -> ToolOrigin {
        ToolOrigin::Skill
    }

    async fn run(&self, context: ToolContext, input: Json) -> Result<Json, ToolError> {
        let Input { file, offset } = typed::read(&input)?;
        match file {
            Some(file) => self.file(file, offset).await,
            None => self.instructions(&context, offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use everturn_proto::limits::TOOL_RESULT_INLINE_BYTES;
    use serde_json::Value;

    use super::*;
    use crate::{checked::CheckedTool, testing};

    /// A skill with these instructions and one file of 30,000 bytes.
    fn tool(instructions: &str) -> (tempfile::TempDir, CheckedTool) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("incident");
        fs::create_dir(&root).unwrap();
        let head =
            "---\nname: incident\ndescription: For incidents.\nallowed-tools: calculate\n---\n";
        fs::write(root.join("SKILL.md"), format!("{head}{instructions}")).unwrap();
        fs::write(root.join("long.md"), "0123456789".repeat(3000)).unwrap();
        let skill = Skill::read(&root, "incident").unwrap();
        (
            folder,
            CheckedTool::new(Arc::new(SkillTool::new(skill))).unwrap(),
        )
    }

    async fn call(
        tool: &CheckedTool,
        input: Value,
    ) -> Result<(Value, Vec<(String, Value)>), String> {
        let (result, events) = testing::call(tool, input).await?;
        assert!(
            result.to_string().len() <= TOOL_RESULT_INLINE_BYTES,
            "the model sees it whole"
        );
        Ok((result, events))
    }

    #[tokio::test]
    async fn instructions_are_handed_out_with_three_events() {
        let (_folder, tool) = tool("First look, then act.");
        let (result, events) = call(&tool, json!({})).await.unwrap();
        assert_eq!(
            result,
            json!({
                "skill": "incident",
                "text": "First look, then act.",
                "allowed_tools": "calculate",
                "files": ["long.md"],
            })
        );
        let id = "exec_0123456789ab";
        let of = |kind: &str, data: Value| (kind.to_owned(), data);
        let matched =
            json!({"skill_name": "incident", "description": "For incidents.", "execution_id": id});
        assert_eq!(
            events,
            [
                of("skill_matched", matched),
                of(
                    "skill_execution_start",
                    json!({"skill_name": "incident", "execution_id": id})
                ),
                of(
                    "skill_execution_complete",
                    json!({"skill_name": "incident", "execution_id": id, "is_cut": false})
                ),
            ]
        );
    }

    #[tokio::test]
    async fn long_texts_are_read_in_pieces() {
        let (_folder, tool) = tool(&"Step \"by\" step.\n".repeat(2000));
        for input in [json!({}), json!({"file": "long.md"})] {
            let (mut read, mut next) = (String::new(), Some(0));
            while let Some(offset) = next {
                let mut input = input.clone();
                input["offset"] = json!(offset);
                let (result, events) = call(&tool, input.clone()).await.unwrap();
                assert_eq!(events.is_empty(), offset > 0 || input.get("file").is_some());
                read.push_str(result["text"].as_str().unwrap());
                next = result["next_offset"]
                    .as_u64()
                    .map(|next| usize::try_from(next).unwrap());
                assert_eq!(result["note"].is_string(), next.is_some());
            }
            assert!(read.len() >= 29_999, "{} bytes", read.len());
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_said() {
        let (_folder, tool) = tool("Look.");
        for (input, expected) in [
            (
                json!({"file": "../../etc/passwd"}),
                "File `../../etc/passwd`: skill `incident` has no file with this name",
            ),
            (json!({"file": 5}), "/file"),
            (json!({"offset": -1}), "/offset"),
            (json!({"path": "x"}), "path"),
        ] {
            let message = call(&tool, input).await.unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
