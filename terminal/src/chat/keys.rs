//! The terminal as a device: raw mode, and pauses for the user's own editor.

use std::{
    env,
    io::{self, Write},
    process::Stdio,
};

use anyhow::Context;
use crossterm::{
    event::{DisableBracketedPaste, EnableBracketedPaste},
    execute, terminal,
};

/// Raw mode: keys arrive one by one, and pastes as a whole. Dropping `Raw` restores the terminal.
pub(super) struct Raw;

impl Raw {
    pub(super) fn begin() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Self;
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _cannot_be_helped = execute!(io::stdout(), DisableBracketedPaste);
        let _cannot_be_helped = terminal::disable_raw_mode();
        let _cannot_be_helped =
            write!(io::stdout(), "\x1b[?25h").and_then(|()| io::stdout().flush());
    }
}

/// Returns the user's own editor, if the environment names one.
pub(super) fn own_editor() -> Option<String> {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(|name| env::var(name).ok());
    named
        .map(|text| text.trim().to_owned())
        .find(|text| !text.is_empty())
}

/// Lets the user edit a text in the user's own editor. The caller must not read the terminal meanwhile. The text is in
/// a temporary file that only this user can read.
pub(super) async fn edited(editor: &str, text: &str) -> anyhow::Result<String> {
    let mut file = tempfile::Builder::new()
        .prefix("everturn-")
        .suffix(".json")
        .tempfile()
        .context("cannot make a file for the editor")?;
    file.write_all(text.as_bytes())?;
    let path = file.path().to_owned();
    let status = tokio::process::Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(&path)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .status()
        .await
        .with_context(|| format!("cannot run the editor `{editor}`"))?;
    anyhow::ensure!(
        status.success(),
        "the editor `{editor}` ended with {status}"
    );
    // Some editors replace the file by a new file. Therefore the text is read by path.
    Ok(std::fs::read_to_string(&path)?)
}
