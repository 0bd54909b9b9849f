//! The shell commands of the documents can be run: their syntax is right, `everturn` knows its arguments, and the files of
//! the repository exist. `tests/tests/e2e/embedded/documents/mod.rs` runs every block without a word of `NOT_RUN`.

use std::process::Command;

use clap::{CommandFactory, error::ErrorKind};
use everturn_tests::blocks::{self, Block, FOLLOWS, NOT_RUN};
use everturn_worker::cli::Cli;

use crate::repository::{files, root};

/// Folders of the repository that a command may name.
const FOLDERS: [&str; 5] = ["clients/", "deploy/", "docs/", "examples/", "scripts/"];

/// Fails with all mistakes that `find` has found in the blocks of shell commands.
fn check(what: &str, find: impl Fn(&Block) -> Vec<String>) {
    let shell: Vec<_> = blocks::all().into_iter().filter(Block::is_shell).collect();
    assert!(shell.len() > 100, "only {} blocks were found", shell.len());
    let wrong = shell.iter().flat_map(|block| {
        let found = find(block).into_iter();
        found.map(|wrong| format!("{}: {wrong}", block.place()))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn a_block_that_is_not_run_says_why() {
    let tests = files(&[".rs"]).into_iter();
    let tests: Vec<_> = tests
        .filter(|file| file.path.starts_with("tests/tests/e2e/"))
        .collect();
    let known: Vec<_> = NOT_RUN.iter().map(|(word, _)| *word).collect();
    check("the word behind the language is wrong", |block| {
        let Some(word) = &block.word else {
            return Vec::new();
        };
        let Some((_, commands)) = NOT_RUN.iter().find(|(known, _)| known == word) else {
            return match word.as_str() {
                FOLLOWS => Vec::new(),
                _ => vec![format!("`{word}` is none of {known:?} and `{FOLLOWS}`")],
            };
        };
        let has_one = commands.iter().any(|command| block.text.contains(command));
        let is_named = || tests.iter().any(|test| test.text.contains(&block.document));
        if !commands.is_empty() && !has_one {
            vec![format!("a block with `{word}` has one of {commands:?}")]
        } else if word == "own-test" && !is_named() {
            vec![format!("no end-to-end test names {}", block.document)]
        } else {
            Vec::new()
        }
    });
}

#[test]
fn the_shell_can_read_every_block() {
    check("the shell cannot read", |block| {
        let shell = Command::new(&block.language)
            .args(["-n", "-c", &block.text])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&shell.stderr).into_owned();
        (!shell.status.success())
            .then_some(said)
            .into_iter()
            .collect()
    });
}

#[test]
fn everturn_knows_the_arguments_of_its_commands() {
    check("`everturn` would refuse", |block| {
        let is_ours = |command: &&Vec<String>| {
            let program = command[0].rsplit('/').next();
            program == Some("everturn") && !command[0].starts_with("./clients")
        };
        let commands = block.shell_commands();
        let ours = commands.iter().filter(is_ours);
        let refused = ours.filter_map(|command| {
            let error = Cli::command().try_get_matches_from(command).err()?;
            let is_shown = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
            (!is_shown.contains(&error.kind())).then(|| format!("{}\n{error}", command.join(" ")))
        });
        refused.collect()
    });
}

#[test]
fn files_of_the_repository_that_commands_name_exist() {
    check("there is no such file", |block| {
        let commands = block.shell_commands();
        let words = commands.iter().flatten();
        let paths = words.map(|word| word.trim_start_matches("./"));
        let ours = paths.filter(|path| FOLDERS.iter().any(|folder| path.starts_with(folder)));
        // `npm pack` makes the archive of the client.
        let is_made = |path: &&str| path.contains("/everturn-client-");
        let missing = ours.filter(|path| !is_made(path) && !root().join(path).exists());
        missing.map(str::to_owned).collect()
    });
}
