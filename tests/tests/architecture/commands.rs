//! The commands and variables that the documents tell a reader to use exist.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};
use everturn_worker::cli::Cli;

use crate::repository::{Source, files, read};

/// Words that a reader replaces by their own.
fn is_placeholder(word: &str) -> bool {
    word.starts_with(['<', '$', '…', '"', '\'', '['])
}

/// What a document shows as code: the lines of its blocks, and the spans within its sentences.
fn shown_code(text: &str) -> Vec<String> {
    let mut code = Vec::new();
    for (at, part) in text.split("```").enumerate() {
        if at % 2 == 1 {
            let joined = part.replace("\\\n", " ");
            code.extend(joined.lines().skip(1).map(str::to_owned));
        } else {
            let sentence = part.replace('\n', " ");
            code.extend(sentence.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    code
}

#[test]
fn commands_of_the_documents_exist() {
    let mut cli = Cli::command();
    cli.build();
    let (mut count, mut wrong) = (0, Vec::new());
    for Source { path, text } in files(&[".md"]) {
        for code in shown_code(&text) {
            for command in code.split(['|', ';', '&', '(', ')']) {
                let words: Vec<_> = command.split_whitespace().collect();
                // Variables may stand before the program.
                let at = words.iter().position(|word| !word.contains('='));
                let Some((program, arguments)) = at.and_then(|at| words[at..].split_first()) else {
                    continue;
                };
                if program.rsplit('/').next() != Some("everturn") {
                    continue;
                }
                count += 1;
                if let Err(unknown) = check(&cli, arguments) {
                    wrong.push(format!("{path}: {unknown} in `{}`", command.trim()));
                }
            }
        }
    }
    assert!(count > 20, "only {count} commands were found");
    assert!(
        wrong.is_empty(),
        "everturn does not know:\n{}",
        wrong.join("\n")
    );
}

/// Follows subcommands and flags; gives the first one that does not exist.
fn check<'a>(mut command: &Command, words: &[&'a str]) -> Result<(), &'a str> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some(flag) = word.strip_prefix("--") {
            let (name, value) = flag
                .split_once('=')
                .map_or((flag, None), |(name, value)| (name, Some(value)));
            if matches!(name, "" | "help" | "version") {
                continue;
            }
            let argument = command
                .get_arguments()
                .find(|argument| argument.get_long() == Some(name))
                .ok_or(*word)?;
            if argument.get_action().takes_values() && value.is_none() {
                words.next();
            }
        } else if let Some(next) = command.find_subcommand(word) {
            command = next;
        } else {
            let takes_more = command.get_positionals().next().is_some();
            if !takes_more && !is_placeholder(word) && command.has_subcommands() {
                return Err(word);
            }
        }
    }
    Ok(())
}

#[test]
fn make_targets_that_are_named_exist() {
    let makefile = read("Makefile");
    let targets: BTreeSet<_> = makefile
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()))
        .filter_map(|line| line.split_once(':'))
        .map(|(target, _)| target)
        .collect();
    assert!(targets.len() > 15, "{targets:?}");
    let mut wrong = Vec::new();
    let mut check = |path: &str, code: &str| {
        let mut words = code
            .split_whitespace()
            .skip_while(|word| word.contains('='));
        if words.next() != Some("make") {
            return;
        }
        let target = words.find(|word| !word.contains('='));
        if let Some(target) =
            target.filter(|target| !is_placeholder(target) && !targets.contains(target))
        {
            wrong.push(format!("{path}: make {target}"));
        }
    };
    for Source { path, text } in files(&[".md"]) {
        for code in shown_code(&text) {
            code.split(['|', ';', '&', '#'])
                .for_each(|command| check(&path, command));
        }
    }
    for Source { path, text } in files(&[".rs", ".sh", ".toml", ".py"]) {
        for line in text.lines() {
            line.split('`')
                .skip(1)
                .step_by(2)
                .for_each(|code| check(&path, code));
        }
    }
    assert!(
        wrong.is_empty(),
        "there is no such target:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn variables_of_the_documents_are_read() {
    let sources = files(&[".rs", "Makefile", ".sh", ".py"]);
    let known: BTreeSet<_> = sources
        .iter()
        .flat_map(|source| variables(&source.text))
        .collect();
    let mut wrong = Vec::new();
    for Source { path, text } in files(&[".md", ".toml"]) {
        for variable in variables(&text).filter(|variable| !known.contains(variable)) {
            wrong.push(format!("{path}: {variable}"));
        }
    }
    assert!(wrong.is_empty(), "nobody reads:\n{}", wrong.join("\n"));
}

fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_')
        .filter(|word| word.starts_with("EVERTURN_") && word.len() > "EVERTURN_".len())
}
