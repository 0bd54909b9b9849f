//! Writes the Rust code of the statements for one dialect. Must not be here: reading of files.

use std::fmt::Write as _;

use crate::file::{Base, Dialect, Kind, Parameter, Piece, Statement, Text, pieces};

/// Returns the module of a dialect: a module for each subject, a struct for each statement.
pub(crate) fn module(statements: &[Statement], dialect: Dialect) -> String {
    let mut code = String::new();
    let mut subject = "";
    for statement in statements {
        let Some(text) = statement.texts.get(&dialect) else {
            continue;
        };
        if statement.subject != subject {
            if !subject.is_empty() {
                code.push_str("}\n\n");
            }
            subject = &statement.subject;
            write_line(
                &mut code,
                &format!("/// The statements of `sql/{subject}/`."),
            );
            write_line(&mut code, &format!("pub(crate) mod {subject} {{"));
            write_line(&mut code, "    use super::*;\n");
        }
        write_statement(&mut code, statement, text, dialect);
    }
    if !subject.is_empty() {
        code.push_str("}\n");
    }
    code
}

/// Returns a table of all texts, for tests.
pub(crate) fn table(statements: &[Statement]) -> String {
    let mut code = String::from("&[\n");
    for Statement {
        subject,
        name,
        texts,
    } in statements
    {
        let sql = |dialect| texts.get(&dialect).map(|text| numbered(text, dialect));
        let (sqlite, postgres) = (sql(Dialect::Sqlite), sql(Dialect::Postgres));
        write_line(
            &mut code,
            &format!(
                "    Text {{ name: \"{subject}/{name}\", sqlite: {sqlite:?}, postgres: {postgres:?} }},"
            ),
        );
    }
    code.push_str("]\n");
    code
}

fn write_line(code: &mut String, line: &str) {
    code.push_str(line);
    code.push('\n');
}

fn write_statement(code: &mut String, statement: &Statement, text: &Text, dialect: Dialect) {
    let parameters = fields(statement, dialect);
    let name = camel_case(&statement.name);
    let json: Vec<_> = parameters
        .iter()
        .filter(|(parameter, _)| parameter.kind.base == Base::Json)
        .collect();
    let json: Vec<_> = json
        .into_iter()
        .map(|(parameter, _)| camel_case(&parameter.name))
        .collect();
    let borrows = parameters
        .iter()
        .any(|(parameter, _)| parameter.kind.borrows());
    let lifetime = borrows.then(|| "'a".to_owned());
    let of = generics(lifetime.iter().chain(&json).cloned());
    let with_bounds = generics(
        lifetime
            .iter()
            .cloned()
            .chain(json.iter().map(|name| format!("{name}: Serialize"))),
    );

    for line in &text.comment {
        write_line(code, &format!("    /// {line}"));
    }
    let is_unit = parameters.is_empty();
    write_line(
        code,
        &format!(
            "    pub(crate) struct {name}{of}{}",
            if is_unit { ";" } else { " {" }
        ),
    );
    for (parameter, is_bound) in &parameters {
        match parameter.comment.as_str() {
            "" => write_line(code, &format!("        /// `:{}`", parameter.name)),
            comment => write_line(code, &format!("        /// {comment}")),
        }
        if !is_bound {
            write_line(
                code,
                "        #[allow(dead_code, reason = \"the other database's text has this parameter\")]",
            );
        }
        write_line(
            code,
            &format!(
                "        pub(crate) {}: {},",
                parameter.name,
                rust_type(parameter)
            ),
        );
    }
    if !is_unit {
        write_line(code, "    }\n");
    }
    if text.is_many_rows {
        write_rows(code, &name, &of, &with_bounds, text, dialect);
    } else {
        let sql = numbered(text, dialect);
        write_line(
            code,
            &format!("    impl{with_bounds} Statement for {name}{of} {{"),
        );
        write_line(
            code,
            &format!("        const TEXT: &'static str = {sql:?};\n"),
        );
        write_bind(code, text);
    }
    write_line(code, "    }\n");
}

/// Writes the implementation for an insert of many rows. The text is split at the row of parameters.
fn write_rows(
    code: &mut String,
    name: &str,
    of: &str,
    with_bounds: &str,
    text: &Text,
    dialect: Dialect,
) {
    let sql = numbered(text, dialect);
    let row = |at: usize| format!("${at}");
    let row: Vec<_> = (1..=text.parameters.len()).map(row).collect();
    let row = format!("VALUES ({})", row.join(", "));
    let Some((before, after)) = sql.split_once(&row) else {
        let path = text.path.display();
        panic!(
            "{path}: an insert of many rows has `VALUES (…)` with every parameter once, in the order of the head"
        );
    };
    write_line(
        code,
        &format!("    impl{with_bounds} Rows for {name}{of} {{"),
    );
    write_line(
        code,
        &format!(
            "        const BEFORE: &'static str = {:?};",
            format!("{before}VALUES ")
        ),
    );
    write_line(
        code,
        &format!("        const COLUMNS: usize = {};", text.parameters.len()),
    );
    write_line(
        code,
        &format!("        const AFTER: &'static str = {after:?};\n"),
    );
    write_bind(code, text);
}

fn write_bind(code: &mut String, text: &Text) {
    let values = if text.parameters.is_empty() {
        "_values"
    } else {
        "values"
    };
    write_line(
        code,
        &format!("        fn bind(self, {values}: &mut Values<'_>) {{"),
    );
    for Parameter { name, kind, .. } in &text.parameters {
        let value = match (kind.base, kind.is_optional, kind.is_list) {
            (_, _, true) => format!("list(self.{name})"),
            (Base::Json, true, _) => format!("self.{name}.map(Json)"),
            (Base::Json, false, _) => format!("Json(self.{name})"),
            _ => format!("self.{name}"),
        };
        write_line(code, &format!("            values.bind({value});"));
    }
    write_line(code, "        }");
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

/// Returns the text with `$1` for the first parameter of the head, and with the dialect's lists and row locks.
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
    with_locks(&with_lists(&sql, dialect), dialect)
}

/// Writes `x IN (:ids)` in the words of the dialect. The length of the list does not change the text.
fn with_lists(sql: &str, dialect: Dialect) -> String {
    let mut parts = sql.split('\u{0}');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = (
            &part[..end],
            part[end..].strip_prefix(')').unwrap_or(&part[end..]),
        );
        let before = result.strip_suffix("IN (").unwrap_or(&result).to_owned();
        let before_not = before.strip_suffix("NOT ");
        result = match (dialect, before_not) {
            (Dialect::Sqlite, _) => format!("{before}IN (SELECT value FROM json_each(${number}))"),
            (Dialect::Postgres, Some(before)) => format!("{before}<> ALL(${number})"),
            (Dialect::Postgres, None) => format!("{before}= ANY(${number})"),
        };
        result.push_str(rest);
    }
    result
}

/// Removes the row locks from a text for SQLite, whose transaction has the whole file.
fn with_locks(sql: &str, dialect: Dialect) -> String {
    if dialect == Dialect::Postgres {
        return sql.to_owned();
    }
    let mut result = sql.to_owned();
    for lock in [
        " FOR UPDATE OF c SKIP LOCKED",
        " FOR UPDATE SKIP LOCKED",
        " FOR UPDATE",
    ] {
        result = result.replace(lock, "");
    }
    result
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
