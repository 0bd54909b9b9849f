//! Commands that are printed for the user's shell.

use std::{borrow::Cow, env};

/// Returns this program as the user named the program, quoted for a shell.
pub(crate) fn program() -> String {
    let program = env::args().next();
    quoted(program.as_deref().unwrap_or("everturn")).into_owned()
}

/// Quotes a word for a shell's command line where necessary.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("target/debug/everturn"), "target/debug/everturn");
        assert_eq!(quoted("/my files/it's"), r"'/my files/it'\''s'");
    }
}
