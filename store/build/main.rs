//! Reads the statements in `sql/` and writes a struct for each statement, for SQLite and for PostgreSQL: the text with
//! numbered parameters, and the function that binds the fields. `sql/README.md` explains the files.
//!
//! `sqlx::migrate!` reads the folder `migrations` without telling cargo, so this script names the folder too.

mod file;
mod generate;

use std::{env, fs, path::Path};

use file::{Dialect, read_folder};

fn main() {
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=sql");
    println!("cargo:rerun-if-changed=build");
    let statements = read_folder(Path::new("sql")).unwrap_or_else(|error| panic!("{error}"));
    let folder = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let write = |name: &str, code: String| {
        let path = Path::new(&folder).join(format!("{name}.rs"));
        fs::write(&path, code)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    };
    write("texts", generate::table(&statements));
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        write(dialect.name(), generate::module(&statements, dialect));
    }
}
