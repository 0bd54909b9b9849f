//! Reads which modules of its own crate a source file names. It reads text, not Rust: as much of the language as paths
//! need.

use crate::repository::without_tests;

/// A module from its crate's root on: `http::auth` is `["http", "auth"]`, and the root is empty.
pub(crate) type ModulePath = Vec<String>;

/// The paths into its own crate that a file names: after `crate::`, `super::` or `self::`, or by the name of a module
/// that it declares. Unit tests at the end of a file and lines of comments do not count, and neither does a path that
/// only says who may use an item, as in `pub(in crate::config)`.
pub(crate) fn named_paths(text: &str, module: &[String]) -> Vec<ModulePath> {
    let text = without_tests_and_comments(text);
    let children = declared_modules(&text);
    let tokens = tokens(&text);
    let (mut at, mut named) = (0, Vec::new());
    while at < tokens.len() {
        let before = &tokens[..at];
        let is_start = before.last() != Some(&"::") && !before.ends_with(&["pub", "(", "in"]);
        let is_path = is_start && tokens.get(at + 1) == Some(&"::");
        let start = match tokens[at] {
            "crate" => Some(Vec::new()),
            "self" => Some(module.to_vec()),
            "super" => Some(module[..module.len().saturating_sub(1)].to_vec()),
            child if children.contains(&child) => Some([module, &[child.to_owned()]].concat()),
            _ => None,
        };
        at += match start {
            Some(start) if is_path => 2 + read_tree(&tokens[at + 2..], start, &mut named),
            _ => 1,
        };
    }
    named
}

/// Reads what follows a `::`, as in `use`: names, `super`, and lists in braces. Returns how many tokens it was.
fn read_tree(tokens: &[&str], mut path: ModulePath, named: &mut Vec<ModulePath>) -> usize {
    let mut at = 0;
    loop {
        match tokens.get(at) {
            Some(&"{") => {
                at += 1;
                while let Some(token) = tokens.get(at) {
                    match *token {
                        "}" => return at + 1,
                        "," => at += 1,
                        _ => at += read_tree(&tokens[at..], path.clone(), named).max(1),
                    }
                }
                return at;
            }
            Some(&"super") => drop(path.pop()),
            Some(&"self" | &"*") => {}
            Some(name) if is_name(name) => path.push((*name).to_owned()),
            _ => break,
        }
        at += 1;
        if tokens.get(at) == Some(&"as") {
            at += 2;
        }
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    named.push(path);
    at
}

fn without_tests_and_comments(text: &str) -> String {
    let lines = without_tests(text)
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Names of the modules that a file declares with `mod name;`.
fn declared_modules(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.trim().strip_suffix(';')?.rsplit_once("mod "))
        .filter(|(before, name)| (before.is_empty() || before.starts_with("pub")) && is_name(name))
        .map(|(_, name)| name)
        .collect()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::` and single signs.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("::") {
            2
        } else if is_name(rest) {
            rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_')
                .unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

#[test]
fn paths_are_read_as_rust_means_them() {
    let text = "\
mod child;
pub(crate) mod other;
use crate::{a::{self, B, c::*}, d as e};
use super::{sibling::Name, super::aunt};
pub(in crate::visible) const C: u8 = 0;
// crate::comment
fn f() { self::g::<crate::inner::T>(); child::call(); x.child(); std::child::no(); $crate::macros::x!() }
#[cfg(test)]
mod tests { use crate::tested; }
";
    let module = ["here".to_owned(), "file".to_owned()];
    let found: Vec<_> = named_paths(text, &module)
        .iter()
        .map(|path| path.join("::"))
        .collect();
    assert_eq!(
        found,
        [
            "a",
            "a::B",
            "a::c",
            "d",
            "here::sibling::Name",
            "aunt",
            "here::file::g",
            "inner::T",
            "here::file::child::call",
            "macros::x",
        ]
    );
}
