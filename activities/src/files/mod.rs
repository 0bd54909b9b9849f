//! The files of the activities: a cache for requests, and the files in results of tools.
//!
//! - `known`: a cache of recently sent files
//! - `results`: turns files in results of tools into blobs

mod known;
mod results;

pub(crate) use known::KnownFiles;
pub(crate) use results::keep;
