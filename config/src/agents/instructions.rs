//! `instructions` and `instructions_file`: the text that tells an agent its task.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use toml::Spanned;

use crate::checker::Checker;

/// The limit exists because each request to a model contains the instructions, and because the store keeps each
/// definition of an agent. Larger texts are for skills, which a model reads when needed.
const MAX_BYTES: u64 = 256 * 1024;

/// `instructions` and `instructions_file`, as written.
type Keys<'a> = (Option<&'a Spanned<String>>, Option<&'a Spanned<PathBuf>>);

/// Returns the instructions; `None` without instructions, and after a mistake.
pub(super) fn read(check: &mut Checker<'_>, keys: Keys<'_>) -> Option<String> {
    match keys {
        (None, None) => None,
        (Some(text), None) => {
            let size = text.get_ref().len();
            if size as u64 > MAX_BYTES {
                check.wrong(text, too_long(&"`instructions`", size));
            }
            Some(text.get_ref().clone())
        }
        (None, Some(path)) => {
            let file = check.file_beside(path);
            let text = text_of(&file);
            text.map_err(|problem| check.wrong(path, problem)).ok()
        }
        (Some(text), Some(_)) => {
            check.wrong(
                text,
                "an agent has `instructions` or `instructions_file`; remove either key",
            );
            None
        }
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let read = || -> io::Result<String> {
        let mut text = String::new();
        // One byte over the limit is enough to notice a file that is too long.
        File::open(path)?
            .take(MAX_BYTES + 1)
            .read_to_string(&mut text)?;
        Ok(text)
    };
    let shown = path.display();
    let text =
        read().map_err(|error| format!("the instructions {shown} cannot be read: {error}"))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(too_long(&shown, text.len()));
    }
    if text.trim().is_empty() {
        return Err(format!("the file {shown} has no instructions"));
    }
    Ok(text)
}

fn too_long(what: &dyn std::fmt::Display, bytes: usize) -> String {
    format!(
        "{what} has {bytes} bytes or more, but the limit is {MAX_BYTES}; move a part into a skill"
    )
}
