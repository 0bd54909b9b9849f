//! The architecture's rules as tests.
//!
//! - `crates`: which crate may name which
//! - `sources`: module headers, and the lengths of files and functions
//! - `citations`: what a comment or a document names exists
//! - `facts`: the facts and invariants that comments cite by name
//! - `commands`: the commands and variables of the documents exist
//! - `configurations`: every block of TOML in the documents is a file that `everturn config check` accepts
//! - `shell`: the shell commands of the documents can be run, and a test runs the commands or says why not
//! - `languages`: a test checks each language of the blocks; blocks of data and of programs can be read
//! - `variables`: docs/operate/configuration.md names the variables that the product reads
//! - `documents`: what the documents must not leave out
//! - `groups`: which command runs an end-to-end test
//! - `harnesses`: the property tests that SECURITY.md names
//! - `releases`: what an archive of a release holds, and the sections of the changelog
//! - `plain`: how plainly comments, documents and texts for users are written; `literals`: the texts in the code
//! - `site`: the site of the documents has every page
//! - `sql`: SQL is in files
//! - `traces`: no field of a core model is about traces
//! - `circles`: no files of a crate name one another in a circle
//! - `rooms`: which modules of a crate may name which other ones; `paths`: what a source file names
//! - `repository`: the files of the repository, and the prose in them

#![allow(clippy::unwrap_used)]

mod circles;
mod citations;
mod commands;
mod configurations;
mod crates;
mod documents;
mod facts;
mod groups;
mod harnesses;
mod languages;
mod literals;
mod paths;
mod plain;
mod releases;
mod repository;
mod rooms;
mod shell;
mod site;
mod sources;
mod sql;
mod traces;
mod variables;
mod words;
