//! What every source file keeps to: a header, a length, functions that fit a screen.

use crate::repository::{Source, files};

/// The longest a file may be, however well it is ordered.
const MAX_FILE_LINES: usize = 500;
/// The longest a function may be, from `fn` to its closing brace: a reader sees it at once.
const MAX_FUNCTION_LINES: usize = 70;

#[test]
fn every_file_says_what_lives_in_it_and_fits_a_reader() {
    let files = files(&[".rs"]);
    assert!(files.len() > 50);
    let mut too_long = Vec::new();
    for Source { path, text } in files {
        assert!(text.starts_with("//! "), "{path} has no //! header");
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES {
            too_long.push(format!("{path} has {lines} lines"));
        }
    }
    assert!(
        too_long.is_empty(),
        "these files have more than {MAX_FILE_LINES} lines; split them by what they are about: {too_long:#?}"
    );
}

#[test]
fn every_function_fits_a_screen() {
    let mut count = 0;
    let mut too_long = Vec::new();
    for Source { path, text } in files(&[".rs"]) {
        for Function { name, line, lines } in functions(&text) {
            count += 1;
            if lines > MAX_FUNCTION_LINES {
                too_long.push(format!("{path}:{line}: {name} has {lines} lines"));
            }
        }
    }
    assert!(count > 1000, "only {count} functions were found");
    assert!(
        too_long.is_empty(),
        "these functions have more than {MAX_FUNCTION_LINES} lines; split them by what they do: {too_long:#?}"
    );
}

#[derive(Debug, PartialEq, Eq)]
struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

/// The functions of a file as rustfmt writes them: the body of one begins with the first `{` that ends a line, and ends with
/// a brace that stands as deep as the function itself.
fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<_> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((name, depth)) = head(line) else {
            continue;
        };
        let opening = |line: &&str| line.ends_with(['{', ';', '}']);
        let Some(head_lines) = lines[at..].iter().position(opening) else {
            continue;
        };
        // A declaration without a body, or one with nothing in it.
        if !lines[at + head_lines].ends_with('{') {
            continue;
        }
        let end = format!("{}}}", " ".repeat(depth));
        let closing = lines[at + head_lines..]
            .iter()
            .position(|line| *line == end);
        let closing = closing.unwrap_or_else(|| panic!("{name} has no end"));
        found.push(Function {
            name,
            line: at + 1,
            lines: head_lines + closing + 1,
        });
    }
    found
}

/// The name of the function that begins in this line, and how deep it stands.
fn head(line: &str) -> Option<(&str, usize)> {
    let text = line.trim_start();
    let (before, after) = text.split_once("fn ")?;
    let is_qualifier = |word: &str| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "default") || word.starts_with("pub(")
    };
    let name = after
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    let is_head = !name.is_empty() && before.split_whitespace().all(is_qualifier);
    is_head.then_some((name, line.len() - text.len()))
}

#[test]
fn functions_are_counted_from_fn_to_their_brace() {
    let text = "\
pub(crate) fn one() {
    two(|| {
        3
    });
}

trait Trait {
    fn declared(
        &self,
    );
    async fn given(
        &self,
    ) -> u32 {
        4
    }
    fn nothing() {}
}
";
    let functions = functions(text);
    let found: Vec<_> = functions
        .iter()
        .map(|function| (function.name, function.line, function.lines))
        .collect();
    assert_eq!(found, [("one", 1, 5), ("given", 11, 5)]);
}
