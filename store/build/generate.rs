//! Writes the Rust code of the statements for one dialect. Must not be here: reading of files.

#![allow(clippy::format_collect, reason = "the generated code is small")]

use std::{collections::BTreeMap, fmt::Write as _};

use crate::file::{Base, Dialect, Kind, Parameter, Piece, Statement, Text, pieces};

/// Returns the module of a dialect: a module for each subject, a struct for each statement.
pub(crate) fn module(statements: &[Statement], dialect: Dialect) -> String {
    let mut subjects: BTreeMap<&str, String> = BTreeMap::new();
    for statement in statements {
        if let Some(text) = statement.texts.get(&dialect) {
            let code = subjects.entry(&statement.subject).or_default();
            code.push_str(&statement_code(statement, text, dialect));
        }
    }
    let module = |(subject, code): (&str, String)| {
        format!(
            "/// The statements of `sql/{subject}/`.\npub(crate) mod {subject} {{\nuse super::*;\n\n{code}}}\n"
        )
    };
    subjects.into_iter().map(module).collect()
}

/// Returns a table of all texts, for tests.
pub(crate) fn table(statements: &[Statement]) -> String {
    let row = |statement: &Statement| {
        let Statement {
            subject,
            name,
            texts,
        } = statement;
        let sql = |dialect| texts.get(&dialect).map(|text| numbered(text, dialect));
        let (sqlite, postgres) = (sql(Dialect::Sqlite), sql(Dialect::Postgres));
        format!(
            "Text {{ name: \"{subject}/{name}\", sqlite: {sqlite:?}, postgres: {postgres:?} }},\n"
        )
    };
    let rows: String = statements.iter().map(row).collect();
    format!("&[\n{rows}]\n")
}

/// Returns the struct of a statement, and the implementation of `Statement` or `Rows`.
fn statement_code(statement: &Statement, text: &Text, dialect: Dialect) -> String {
    let (name, fields) = (camel_case(&statement.name), fields(statement, dialect));
    let parameters = || fields.iter().map(|(parameter, _)| *parameter);
    let lifetime = parameters()
        .any(|parameter| parameter.kind.borrows())
        .then(|| "'a".to_owned());
    let json = parameters().filter(|parameter| parameter.kind.base == Base::Json);
    let json: Vec<_> = json.map(|parameter| camel_case(&parameter.name)).collect();
    let bounds = json.iter().map(|name| format!("{name}: Serialize"));
    let with_bounds = generics(lifetime.iter().cloned().chain(bounds));
    let of = generics(lifetime.iter().chain(&json).cloned());

    let comment: String = text
        .comment
        .iter()
        .map(|line| format!("/// {line}\n"))
        .collect();
    let body = match &fields[..] {
        [] => ";".to_owned(),
        fields => {
            let fields: String = fields
                .iter()
                .map(|(parameter, is_bound)| field(parameter, *is_bound))
                .collect();
            format!(" {{\n{fields}}}")
        }
    };
    let (of_trait, constants) = if text.is_many_rows {
        ("Rows", row_constants(text, dialect))
    } else {
        let sql = numbered(text, dialect);
        (
            "Statement",
            format!("const TEXT: &'static str = {sql:?};\n"),
        )
    };
    let bind = bind(text);
    format!(
        "{comment}pub(crate) struct {name}{of}{body}\n\n\
         impl{with_bounds} {of_trait} for {name}{of} {{\n{constants}\n{bind}}}\n\n"
    )
}

fn field(parameter: &Parameter, is_bound: bool) -> String {
    let Parameter { name, comment, .. } = parameter;
    let comment = if comment.is_empty() {
        format!("`:{name}`")
    } else {
        comment.clone()
    };
    let allow = if is_bound {
        ""
    } else {
        "#[allow(dead_code, reason = \"a parameter of the other database's text\")]\n"
    };
    format!(
        "/// {comment}\n{allow}pub(crate) {name}: {},\n",
        rust_type(parameter)
    )
}

/// Returns the constants of an insert of many rows. The text is split at the row of values.
fn row_constants(text: &Text, dialect: Dialect) -> String {
    let sql = numbered(text, dialect);
    let parameters = text.parameters.len();
    let begin = sql.find("VALUES (").map(|at| at + "VALUES ".len());
    let found = begin.and_then(|begin| Some((begin, end_of_brackets(&sql, begin)?)));
    let Some((begin, end)) = found else {
        let path = text.path.display();
        panic!("{path}: an insert of many rows has `VALUES (…)`, the values of one row");
    };
    let (before, row, after) = (&sql[..begin], &sql[begin..end], &sql[end..]);
    assert!(
        !before.contains('$') && !after.contains('$'),
        "{}: an insert of many rows has every parameter in its `VALUES (…)`",
        text.path.display()
    );
    format!(
        "const BEFORE: &'static str = {before:?};\nconst ROW: &'static str = {row:?};\n\
         const PARAMETERS: usize = {parameters};\nconst AFTER: &'static str = {after:?};\n"
    )
}

/// Returns the end of the brackets that open at `begin`.
fn end_of_brackets(sql: &str, begin: usize) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, letter) in sql[begin..].char_indices() {
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(begin + at + 1),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the function that binds the parameters.
fn bind(text: &Text) -> String {
    let bind = |Parameter { name, kind, .. }: &Parameter| match (
        kind.base,
        kind.is_optional,
        kind.is_list,
    ) {
        (_, _, true) => format!("values.bind(list(self.{name}));\n"),
        (Base::Json, true, _) => format!("values.bind(self.{name}.map(Json));\n"),
        (Base::Json, false, _) => format!("values.bind(Json(self.{name}));\n"),
        _ => format!("values.bind(self.{name});\n"),
    };
    let values = if text.parameters.is_empty() {
        "_values"
    } else {
        "values"
    };
    let binds: String = text.parameters.iter().map(bind).collect();
    format!("fn bind(self, {values}: &mut Values<'_>) {{\n{binds}}}\n")
}

/// Returns the parameters of a statement in every dialect, those of `dialect` first, and whether `dialect` binds them.
fn fields(statement: &Statement, dialect: Dialect) -> Vec<(&Parameter, bool)> {
    let mut fields: Vec<(&Parameter, bool)> = Vec::new();
    let own = statement.texts.get(&dialect).into_iter();
    for (text, is_bound) in own
        .map(|text| (text, true))
        .chain(statement.texts.values().map(|text| (text, false)))
    {
        for parameter in &text.parameters {
            if fields.iter().all(|(known, _)| known.name != parameter.name) {
                fields.push((parameter, is_bound));
            }
        }
    }
    fields
}

/// Returns the text with `$1` for the first parameter of the head, and with the dialect's lists, clock and row locks.
fn numbered(text: &Text, dialect: Dialect) -> String {
    let mut sql = String::new();
    for piece in pieces(&text.sql) {
        match piece {
            Piece::Words(words) => sql.push_str(words),
            Piece::Parameter(name) => {
                let at = text
                    .parameters
                    .iter()
                    .position(|parameter| parameter.name == name);
                let at =
                    at.unwrap_or_else(|| panic!("`file::parse` refuses an undeclared `:{name}`"));
                let (number, kind) = (at + 1, text.parameters[at].kind);
                if kind.is_list {
                    write!(sql, "\u{0}{number}").expect("a String takes every text");
                } else {
                    write!(sql, "${number}").expect("a String takes every text");
                }
            }
        }
    }
    in_words_of(dialect, &with_clock(&with_lists(&sql, dialect), dialect))
}

/// The present time by PostgreSQL's clock, to the millisecond like every time of a column.
const POSTGRES_CLOCK: &str = "date_trunc('milliseconds', clock_timestamp())";

/// Writes `CLOCK(:now)`, the present time, and `CLOCK(:until, :now)`, a time that the process has computed from its
/// `:now`, in the words of the dialect. In PostgreSQL the clock of the database counts, because the clocks of the
/// processes differ. A file of SQLite belongs to one machine, whose clock every process reads.
fn with_clock(sql: &str, dialect: Dialect) -> String {
    let mut parts = sql.split("CLOCK(");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (times, rest) = part
            .split_once(')')
            .unwrap_or_else(|| panic!("CLOCK( has no end: {sql}"));
        let (time, now) = match times.split_once(", ") {
            Some((until, now)) => (until, Some(now)),
            None => (times, None),
        };
        match (dialect, now) {
            (Dialect::Sqlite, _) => result.push_str(time),
            (Dialect::Postgres, None) => result.push_str(POSTGRES_CLOCK),
            (Dialect::Postgres, Some(now)) => {
                write!(result, "{time} + ({POSTGRES_CLOCK} - {now})")
                    .expect("a String takes every text");
            }
        }
        result.push_str(rest);
    }
    result
}

/// Writes `x IN (:ids)` in the words of the dialect. The length of the list does not change the text. A list among the
/// inserted values stays a parameter.
fn with_lists(sql: &str, dialect: Dialect) -> String {
    let mut parts = sql.split('\u{0}');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(end);
        let Some(before) = result.strip_suffix("IN (") else {
            write!(result, "${number}{rest}").expect("a String takes every text");
            continue;
        };
        let rest = rest.strip_prefix(')').unwrap_or(rest);
        result = match (dialect, before.strip_suffix("NOT ")) {
            (Dialect::Sqlite, _) => format!("{before}IN (SELECT value FROM json_each(${number}))"),
            (Dialect::Postgres, Some(before)) => format!("{before}<> ALL(${number})"),
            (Dialect::Postgres, None) => format!("{before}= ANY(${number})"),
        };
        result.push_str(rest);
    }
    result
}

/// Parts of a text in PostgreSQL's words, and the same in SQLite's. A row lock has no words in SQLite, whose transaction has
/// the whole file.
const WORDS: [(&str, &str); 4] = [
    (" FOR UPDATE OF c SKIP LOCKED", ""),
    (" FOR UPDATE SKIP LOCKED", ""),
    (" FOR UPDATE", ""),
    ("json_object_agg(", "json_group_object("),
];

fn in_words_of(dialect: Dialect, sql: &str) -> String {
    match dialect {
        Dialect::Postgres => sql.to_owned(),
        Dialect::Sqlite => WORDS
            .iter()
            .fold(sql.to_owned(), |sql, (postgres, sqlite)| {
                sql.replace(postgres, sqlite)
            }),
    }
}

fn rust_type(parameter: &Parameter) -> String {
    let Kind {
        base,
        is_optional,
        is_list,
    } = parameter.kind;
    let json = camel_case(&parameter.name);
    let base = match base {
        _ if is_list => "&'a [String]",
        Base::Text => "&'a str",
        Base::Bigint => "i64",
        Base::Integer => "i32",
        Base::Boolean => "bool",
        Base::Timestamp => "DateTime<Utc>",
        Base::Json => &json,
        Base::Bytes => "&'a [u8]",
    };
    if is_optional {
        format!("Option<{base}>")
    } else {
        base.to_owned()
    }
}

impl Kind {
    fn borrows(self) -> bool {
        self.is_list || matches!(self.base, Base::Text | Base::Bytes)
    }
}

fn generics(names: impl Iterator<Item = String>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("<{}>", names.join(", "))
    }
}

fn camel_case(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}
