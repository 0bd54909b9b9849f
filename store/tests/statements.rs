//! Checks the statements in `sql/`: their heads, the indexes that they name, the condition of statements for a caller,
//! and that both databases accept them.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../build/file.rs"]
mod file;
mod support;

use std::{collections::BTreeSet, fs, path::Path};

use everturn_store::{SqliteOptions, SqliteStore, hot};
use file::{Base, Dialect, Parameter, Statement, parse, read_folder};
use sqlx::{
    AssertSqlSafe, Connection, Executor, SqlSafeStr, SqliteConnection, postgres::PgTypeInfo,
};
use support::postgres::Database;
use tempfile::TempDir;

fn statements() -> Vec<Statement> {
    let statements = read_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("sql")).unwrap();
    assert!(
        statements.len() > 150,
        "only {} were found",
        statements.len()
    );
    statements
}

fn name(statement: &Statement) -> String {
    format!("{}/{}", statement.subject, statement.name)
}

#[tokio::test]
async fn postgresql_accepts_every_statement() {
    let database = Database::migrated().await;
    let mut connection = database.connection().await;
    for statement in statements() {
        let Some(text) = statement.texts.get(&Dialect::Postgres) else {
            continue;
        };
        // The end of a statement of several parts names the part `guard`.
        if statement.subject == "parts" {
            continue;
        }
        let types: Vec<_> = text.parameters.iter().map(postgres_type).collect();
        let sql = hot::postgres(&name(&statement));
        let prepared = connection
            .prepare_with(AssertSqlSafe(sql).into_sql_str(), &types)
            .await;
        prepared.unwrap_or_else(|error| panic!("{}: {error}", text.path.display()));
    }
}

#[tokio::test]
async fn sqlite_accepts_every_statement() {
    let (_folder, mut connection) = migrated_sqlite().await;
    for statement in statements() {
        let Some(text) = statement.texts.get(&Dialect::Sqlite) else {
            continue;
        };
        let sql = hot::sqlite(&name(&statement));
        let prepared = connection.prepare(AssertSqlSafe(sql).into_sql_str()).await;
        prepared.unwrap_or_else(|error| panic!("{}: {error}", text.path.display()));
    }
}

/// A database with the tables, and the folder that keeps the database.
async fn migrated_sqlite() -> (TempDir, SqliteConnection) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("everturn.db");
    SqliteStore::open(&path, SqliteOptions::default())
        .await
        .unwrap();
    let connection = SqliteConnection::connect(&format!("sqlite://{}", path.display()))
        .await
        .unwrap();
    (folder, connection)
}

fn postgres_type(parameter: &Parameter) -> PgTypeInfo {
    let base = match parameter.kind.base {
        Base::Text if parameter.kind.is_list => "TEXT[]",
        Base::Text => "TEXT",
        Base::Bigint => "INT8",
        Base::Integer => "INT4",
        Base::Boolean => "BOOL",
        Base::Timestamp => "TIMESTAMPTZ",
        Base::Json => "JSON",
        Base::Bytes => "BYTEA",
    };
    PgTypeInfo::with_name(base)
}

#[test]
fn every_line_fits_a_reader() {
    for text in statements()
        .iter()
        .flat_map(|statement| statement.texts.values())
    {
        for (number, line) in fs::read_to_string(&text.path).unwrap().lines().enumerate() {
            let length = line.chars().count();
            assert!(
                length <= 120,
                "{}:{}: {length} characters",
                text.path.display(),
                number + 1
            );
        }
    }
}

#[test]
fn every_named_index_exists() {
    let mut indexes = BTreeSet::new();
    for database in ["postgres", "sqlite"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("migrations")
            .join(database);
        for file in fs::read_dir(folder).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let mut words = text.split_whitespace().peekable();
            while let Some(word) = words.next() {
                match word {
                    "INDEX" => indexes.extend(words.peek().map(|name| (*name).to_owned())),
                    "TABLE" => indexes.extend(words.peek().map(|name| format!("key of {name}"))),
                    _ => {}
                }
            }
        }
    }
    for statement in statements() {
        for text in statement.texts.values() {
            for index in &text.indexes {
                let is_known = indexes.contains(index) || index.starts_with("none: ");
                assert!(
                    is_known,
                    "{}: no migration makes `{index}`",
                    text.path.display()
                );
            }
        }
    }
}

/// A default that no insert needs would fill a column in silence that a new insert forgets.
#[tokio::test]
async fn a_column_has_a_default_only_where_an_insert_leaves_the_column_out() {
    let (_folder, mut connection) = migrated_sqlite().await;
    let defaults: Vec<(String, String)> = sqlx::query_as(
        "SELECT tables.name, columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns \
         WHERE columns.dflt_value IS NOT NULL AND tables.name NOT LIKE '_sqlx%'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert!(defaults.len() > 20, "only {} were found", defaults.len());
    let statements = statements();
    let texts = statements.iter().flat_map(|it| it.texts.values());
    let inserts: Vec<_> = texts.filter_map(|text| inserted(&text.sql)).collect();
    for (table, column) in defaults {
        let mut lists = inserts.iter().filter(|(into, _)| *into == table);
        assert!(
            lists.any(|(_, columns)| !columns.contains(column.as_str())),
            "each insert into {table} names {column}: remove the DEFAULT from both migrations"
        );
    }
}

/// The table and the columns of the first insert of a text, if the text has an insert.
fn inserted(sql: &str) -> Option<(&str, BTreeSet<&str>)> {
    let (_, into) = sql.split_once("INSERT INTO ")?;
    let (table, columns) = into.split_once('(')?;
    let (columns, _) = columns.split_once(')')?;
    let table = table.split_whitespace().next()?;
    Some((table, columns.split(',').map(str::trim).collect()))
}

/// Nobody may see what is not theirs: a statement that knows its caller has the condition of visibility.
#[test]
fn a_statement_for_a_caller_checks_the_caller() {
    let mut count = 0;
    for statement in statements() {
        for text in statement.texts.values() {
            let has = |name: &str| {
                text.parameters
                    .iter()
                    .any(|parameter| parameter.name == name)
            };
            let owner = text
                .parameters
                .iter()
                .find(|parameter| parameter.name == "owner_id");
            let is_for_caller =
                has("tenant_id") && owner.is_some_and(|owner| owner.kind.is_optional);
            let is_insert = text.sql.contains("VALUES (") && text.sql.starts_with("INSERT");
            if !is_for_caller || is_insert {
                continue;
            }
            let condition = "tenant_id = :tenant_id AND (CAST(:owner_id AS TEXT) IS NULL OR owner_id = :owner_id)";
            assert!(
                text.sql.contains(condition),
                "{} lacks `{condition}`",
                text.path.display()
            );
            count += 1;
        }
    }
    assert!(
        count > 20,
        "only {count} statements for a caller were found"
    );
}

#[test]
fn a_wrong_head_is_refused_with_its_file_and_reason() {
    let refused = |content: &str| parse(Path::new("sql/a/b.sql"), content).unwrap_err();
    let cases = [
        (
            "SELECT 1",
            "sql/a/b.sql: the head has no sentence that says what the statement does",
        ),
        (
            "-- Selects.\nSELECT 1",
            "sql/a/b.sql: the head has no line `-- Index: …`",
        ),
        (
            "-- Selects.\n-- Index: i\nSELECT 1;",
            "sql/a/b.sql: the file has one statement, without a semicolon at its end",
        ),
        (
            "-- Selects.\n-- Index: i\nSELECT :id",
            "sql/a/b.sql: the head does not declare the parameter `:id`",
        ),
        (
            "-- Selects.\n-- Index: i\n-- :id text\nSELECT ':id'",
            "sql/a/b.sql: the text does not use the parameter `:id`",
        ),
        (
            "-- Selects.\n-- Index: i\n-- :id word\nSELECT :id",
            "sql/a/b.sql: `word` is no type: text, bigint, integer, boolean, timestamp, json or bytes",
        ),
        (
            "-- Selects.\n-- Index: i\n-- :ids text[]\nSELECT :ids",
            "sql/a/b.sql: the list `:ids` must be used as `IN (:ids)`",
        ),
        (
            "-- Selects.\n-- Index: i\n-- :id\nSELECT :id",
            "sql/a/b.sql: write `-- :name type`, not `-- :id`",
        ),
    ];
    for (content, reason) in cases {
        assert_eq!(refused(content), reason);
    }
}
