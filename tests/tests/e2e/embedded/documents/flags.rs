//! The commands of `temporal` in the documents have flags that exist.

use std::collections::{BTreeMap, BTreeSet};

use everturn_tests::{blocks, temporal};
use tokio::process::Command;

#[tokio::test]
async fn temporal_knows_the_flags_of_its_commands() {
    let mut flags: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for block in blocks::all().iter().filter(|block| block.is_shell()) {
        for command in block.shell_commands() {
            if command[0] != "temporal" {
                continue;
            }
            let is_flag = |word: &&String| word.starts_with('-');
            let names = command.iter().take_while(|word| !is_flag(word));
            let names: Vec<_> = names.skip(1).map(String::as_str).collect();
            let of_command = flags.entry(names.join(" ")).or_default();
            let shown = command.iter().filter(is_flag);
            let names = shown.filter_map(|flag| flag.split('=').next());
            of_command.extend(names.map(|flag| (flag.to_owned(), block.place())));
        }
    }
    assert!(flags.len() > 5, "{flags:?}");
    let mut wrong = Vec::new();
    for (command, shown) in flags {
        let names = command.split(' ');
        let help = Command::new(temporal::binary())
            .args(names)
            .arg("--help")
            .output();
        let help = String::from_utf8(help.await.unwrap().stdout).unwrap();
        let is_known = help.contains(&format!("temporal {command}"));
        let unknown = shown.iter().filter(|(flag, _)| {
            let mut words = help.split(|c: char| c.is_whitespace() || c == ',' || c == '=');
            !is_known || !words.any(|word| word == flag)
        });
        wrong.extend(unknown.map(|(flag, place)| format!("{place}: temporal {command} {flag}")));
    }
    assert!(
        wrong.is_empty(),
        "temporal does not know:\n{}",
        wrong.join("\n")
    );
}
