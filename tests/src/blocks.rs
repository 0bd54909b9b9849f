//! The blocks of code in the documents, so that tests run everything that a reader is told to write or to run.
//!
//! CONTRIBUTING.md, "Blocks of code" has the rules for a writer.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// A block of code in a document.
pub struct Block {
    /// The document, as a path from the root of the repository.
    pub document: String,
    /// The line of the first fence.
    pub line: usize,
    /// The heading above the block.
    pub heading: String,
    /// The first word behind the fence, like `sh`.
    pub language: String,
    /// The second word behind the fence, which says how tests treat a block of shell commands: [`FOLLOWS`], or a word of
    /// [`NOT_RUN`].
    pub word: Option<String>,
    /// The content, without the indentation of the fence.
    pub text: String,
}

/// The word of a block of shell commands that end by no means of their own. A test stops them when they have printed
/// something.
pub const FOLLOWS: &str = "follows";

/// The words of blocks of shell commands that tests only check and do not run. A block has one of the words behind its own
/// word; without such words, any block may have the word.
pub const NOT_RUN: [(&str, &[&str]); 6] = [
    (
        "build",
        &[
            "make ",
            "cargo ",
            "npm ",
            "npx ",
            "pip ",
            "git ",
            "sha256sum ",
        ],
    ),
    ("docker", &["docker "]),
    ("kubernetes", &["kubectl ", "helm "]),
    (
        "systemd",
        &["systemctl ", "systemd-run ", "/etc/systemd/system/"],
    ),
    ("production", &[]),
    ("own-test", &[]),
];

impl Block {
    /// True for a block of shell commands.
    pub fn is_shell(&self) -> bool {
        ["sh", "bash"].contains(&self.language.as_str())
    }

    /// True for a block that the end-to-end test runs: shell commands or a program in JavaScript, without a word that says
    /// why not.
    pub fn is_run(&self) -> bool {
        let runs = self.is_shell() || self.language == "js";
        runs && self.word.as_deref().is_none_or(|word| word == FOLLOWS)
    }

    /// The commands of a block for the shell, as words. Variables before a command are left out.
    pub fn shell_commands(&self) -> Vec<Vec<String>> {
        let text = self.text.replace("\\\n", " ").replace("$(", " ; ");
        let (mut commands, mut statement) = (Vec::new(), String::new());
        for line in text.lines() {
            statement.push_str(line);
            // A quoted text may go on in the next line.
            if let Some(words) = shlex::split(&statement) {
                statement.clear();
                commands.extend(
                    words
                        .split(|word| ends_command(word))
                        .map(without_variables),
                );
            } else {
                statement.push('\n');
            }
        }
        commands.retain(|command| !command.is_empty());
        commands
    }

    /// `document:line`, as editors read it.
    pub fn place(&self) -> String {
        format!("{}:{}", self.document, self.line)
    }
}

fn ends_command(word: &str) -> bool {
    ["|", "||", "&", "&&", ";", "do", "then", "{", "!"].contains(&word)
}

/// A command without the variables that are set for the command, and without the end of a `$(…)` around the command.
fn without_variables(words: &[String]) -> Vec<String> {
    let is_variable = |word: &&String| {
        let (name, _) = word.split_once('=').unwrap_or_default();
        !name.is_empty() && !name.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_')
    };
    let command = words.iter().skip_while(is_variable);
    let command = command.map(|word| match word.strip_suffix([')', ';']) {
        Some(before) if !word.contains('(') => before.to_owned(),
        _ => word.clone(),
    });
    command.collect()
}

/// The part of a document in which its reader is.
enum Within {
    Heading,
    Block,
    Prose,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The blocks of all documents for users, in the order of the documents' paths and of the lines.
pub fn all() -> Vec<Block> {
    let mut documents = vec!["README.md".to_owned()];
    for folder in ["docs", "clients", "examples", "deploy"] {
        collect(&root().join(folder), &mut documents);
    }
    documents.sort();
    documents.iter().flat_map(|document| of(document)).collect()
}

fn collect(folder: &Path, documents: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if name != "node_modules" {
                collect(&path, documents);
            }
        } else if path.extension().is_some_and(|ending| ending == "md") {
            documents.push(path.strip_prefix(root()).unwrap().display().to_string());
        }
    }
}

/// The blocks of a document, which is named by its path from the root.
pub fn of(document: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let mut blocks: Vec<Block> = Vec::new();
    let (mut heading, mut within) = (String::new(), Within::Prose);
    for (event, range) in Parser::new(&text).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                within = Within::Heading;
                heading.clear();
            }
            Event::End(TagEnd::Heading(_) | TagEnd::CodeBlock) => within = Within::Prose,
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(information))) => {
                within = Within::Block;
                let mut words = information.split_whitespace().map(str::to_owned);
                blocks.push(Block {
                    document: document.to_owned(),
                    line: text[..range.start].matches('\n').count() + 1,
                    heading: heading.clone(),
                    language: words.next().unwrap_or_default(),
                    word: words.next(),
                    text: String::new(),
                });
            }
            Event::Text(text) | Event::Code(text) => match (&within, blocks.last_mut()) {
                (Within::Heading, _) => heading.push_str(&text),
                (Within::Block, Some(block)) => block.text.push_str(&text),
                _ => {}
            },
            _ => {}
        }
    }
    blocks
}

/// Returns the commands that a document shows under a heading, as one script.
pub fn commands(document: &str, heading: &str) -> String {
    let blocks = of(document).into_iter();
    let commands: String = blocks
        .filter(|block| block.language == "sh" && block.heading == heading)
        .map(|block| block.text)
        .collect();
    assert!(
        !commands.is_empty(),
        "{document} has no commands under `{heading}`"
    );
    commands
}
