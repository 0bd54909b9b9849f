//! The commands of a document, so that a test runs what a reader is told to run.

use std::{fs, path::Path};

/// Returns the commands that a document shows under a heading, as one script: the blocks `sh` up to the next heading.
pub fn commands(document: &str, heading: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(document);
    let text = fs::read_to_string(file).unwrap();
    let (mut is_under, mut is_command) = (false, false);
    let mut commands = String::new();
    for line in text.lines() {
        match line {
            "```sh" => is_command = true,
            "```" => is_command = false,
            _ if is_command && is_under => commands.extend([line, "\n"]),
            _ if !is_command && line.starts_with('#') => {
                is_under = line.trim_start_matches('#').trim() == heading;
            }
            _ => {}
        }
    }
    assert!(
        !commands.is_empty(),
        "{document} has no commands under `{heading}`"
    );
    commands
}
