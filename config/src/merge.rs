//! Merges the tables of all files into one table. The values keep their positions in the files.
//!
//! An author of agents writes the files of `agents.d`, and an operator writes `everturn.toml`. Therefore a file of
//! `agents.d` has the authors' tables alone.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    agents_d::FOLDER,
    problem::Problem,
    sources::{SourceFile, Sources},
};

/// The tables that a file of `agents.d` may have. Every table has a table below for each name, like `[agents.support]`.
pub(super) const AUTHORS: [&str; 6] = [
    "agents",
    "client_tools",
    "mcp",
    "models",
    "remote_tools",
    "tools",
];
/// The tables of an operator, which only `everturn.toml` may have.
pub(super) const OPERATORS: [&str; 17] = [
    "approvals",
    "audit",
    "auth",
    "blobs",
    "codec",
    "egress",
    "gateway",
    "limits",
    "metrics",
    "postgres",
    "processes",
    "providers",
    "reconciler",
    "reload",
    "skills",
    "tenant_budget",
    "worker",
];

type Entry<'s> = (Spanned<std::borrow::Cow<'s, str>>, Spanned<DeValue<'s>>);

/// Merges the tables of all files.
pub(super) fn tables(sources: &Sources) -> Result<Spanned<DeTable<'_>>, Vec<Problem>> {
    let mut merged = DeTable::new();
    let mut problems = Vec::new();
    for file in sources.files() {
        match parsed(sources, file) {
            Ok(table) if file.begin == 0 => merged = table,
            Ok(table) => add(&mut merged, table, sources, &mut problems),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        Ok(Spanned::new(0..0, merged))
    } else {
        Err(problems)
    }
}

/// Returns the operator's tables, without positions. A file with mistakes has none.
pub(super) fn operators(sources: &Sources) -> toml::Table {
    let main = sources.files().next();
    let tables = main.and_then(|file| file.text.parse::<toml::Table>().ok());
    let mut tables = tables.unwrap_or_default();
    // A running process reads skills again.
    tables.retain(|name, _| !AUTHORS.contains(&name) && name != "skills");
    tables
}

fn parsed<'s>(sources: &Sources, file: &'s SourceFile) -> Result<DeTable<'s>, Problem> {
    match DeTable::parse(&file.text) {
        Ok(table) => Ok(moved_table(table.into_inner(), file.begin)),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            Err(sources.problem(file.begin + at, error.message().to_owned()))
        }
    }
}

/// Adds the tables of a file of `agents.d`.
fn add<'s>(
    merged: &mut DeTable<'s>,
    file: DeTable<'s>,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    for (key, value) in file {
        let word = key.get_ref().as_ref();
        let (at, is_authors) = (key.span().start, AUTHORS.contains(&word));
        if OPERATORS.contains(&word) {
            problems.push(sources.problem(at, not_of_author(word)));
            continue;
        }
        let earlier = merged.get_mut(word).map(Spanned::get_mut);
        match (earlier, value.get_ref()) {
            (Some(DeValue::Table(earlier)), DeValue::Table(_)) if is_authors => {
                let DeValue::Table(table) = value.into_inner() else {
                    continue;
                };
                for entry in table {
                    add_entry(earlier, word, entry, sources, problems);
                }
            }
            // The types of the tables' fields refuse an unknown key, and a value that is no table.
            _ => drop(merged.insert(key, value)),
        }
    }
}

fn add_entry<'s>(
    earlier: &mut DeTable<'s>,
    table: &str,
    (name, value): Entry<'s>,
    sources: &Sources,
    problems: &mut Vec<Problem>,
) {
    let text = name.get_ref().as_ref();
    if let Some((first, _)) = earlier.get_key_value(text) {
        let first = sources.location(first.span().start);
        let message = format!("[{table}.{text}] is also in {first}; remove one of the two tables");
        problems.push(sources.problem(name.span().start, message));
    } else {
        earlier.insert(name, value);
    }
}

fn not_of_author(table: &str) -> String {
    format!(
        "[{table}] is a table of the operator and belongs into everturn.toml; a file of {FOLDER} has only tables of {}",
        AUTHORS.join(", ")
    )
}

/// Moves the positions of a table's keys and values by `by` bytes.
fn moved_table(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    if by == 0 {
        return table;
    }
    let entries = table.into_iter().map(|(key, value)| {
        let span = moved(key.span(), by);
        (Spanned::new(span, key.into_inner()), moved_value(value, by))
    });
    entries.collect()
}

fn moved_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = moved(value.span(), by);
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(moved_table(table, by)),
        DeValue::Array(items) => DeValue::Array(
            items
                .into_iter()
                .map(|item| moved_value(item, by))
                .collect(),
        ),
        plain => plain,
    };
    Spanned::new(span, value)
}

fn moved(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}
