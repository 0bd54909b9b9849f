//! SQL is in the files of `store/sql/`, where a reader finds the statement, its parameters and its index.
//!
//! String literals outside tests are read. `PRAGMA`, `SET` and `BEGIN` are settings of a connection, not statements about
//! rows. The machinery of migrations asks the database for its version before the tables exist.

use crate::repository::{Source, files, is_test, without_tests};

/// The machinery of migrations, and the benchmark and the oracles of the simulation, which look at the database from outside the
/// product.
const MAY: [&str; 4] = [
    "store/src/schema_range.rs",
    "store/src/postgres/schema.rs",
    "bench/",
    "simulation/src/oracles.rs",
];

/// How statements about rows begin.
const BEGINNINGS: [&str; 4] = ["SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM "];

#[test]
fn sql_is_in_files() {
    let mut found = Vec::new();
    for Source { path, text } in files(&[".rs"]) {
        if is_test(&path) || MAY.iter().any(|may| path.starts_with(may)) {
            continue;
        }
        for (number, line) in without_tests(&text).lines().enumerate() {
            if let Some(statement) = statement(line) {
                found.push(format!("{path}:{}: {statement}", number + 1));
            }
        }
    }
    assert!(
        found.is_empty(),
        "move the statement to a file in store/sql:\n{}",
        found.join("\n")
    );
}

/// The beginning of a statement in a string literal of the line.
fn statement(line: &str) -> Option<&str> {
    let is_comment = line.trim_start().starts_with("//");
    let literals = line.split('"').skip(1).step_by(2);
    let is_statement = |literal: &&str| {
        BEGINNINGS
            .iter()
            .any(|beginning| literal.trim_start().starts_with(beginning))
    };
    literals.filter(|_| !is_comment).find(is_statement)
}

#[test]
fn statements_are_found_in_literals() {
    assert_eq!(
        statement(r#"    let text = "SELECT 1 FROM t WHERE a = $1";"#),
        Some("SELECT 1 FROM t WHERE a = $1")
    );
    assert_eq!(
        statement(r#"    const TEXT: &str = "UPDATE a SET b = $1 \"#),
        Some(r"UPDATE a SET b = $1 \")
    );
    assert_eq!(
        statement(r#"    sqlx::query("SET statement_timeout = 5")"#),
        None
    );
    assert_eq!(statement(r#"    /// "SELECT 1" ends the statement."#), None);
}
