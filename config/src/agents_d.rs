//! `agents.d`: a folder beside `everturn.toml` with files for authors of agents.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{
    problem::{ConfigError, Problem},
    seen::SeenFiles,
};

/// The name of the folder.
pub(super) const FOLDER: &str = "agents.d";
/// The most files. An installation with more agents has several agents in a file.
const MAX_FILES: usize = 500;
/// The most bytes of all files. A ConfigMap of Kubernetes has at most 1 MiB.
const MAX_BYTES: usize = 4 << 20;

/// Returns the names and texts of the folder's files, sorted by name. Without a folder beside the file `main`, returns no
/// files. Other names than `*.toml` are ignored, and also hidden names: Kubernetes keeps the versions of a mounted
/// ConfigMap in `..data`.
pub(super) fn read(
    main: &Path,
    seen: &mut SeenFiles,
) -> Result<Vec<(String, String)>, ConfigError> {
    let folder = main.with_file_name(FOLDER);
    seen.note(&folder);
    let names = match names(&folder) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(unreadable(folder, source)),
    };
    let mut files = Vec::new();
    let mut left = MAX_BYTES;
    for name in &names {
        let path = folder.join(name);
        seen.note(&path);
        let text = text(&path, left).map_err(|source| unreadable(path.clone(), source))?;
        if text.len() > left {
            return Err(beyond_limit(
                &path,
                format!("the files of {FOLDER} have more than {MAX_BYTES} bytes; remove some"),
            ));
        }
        left -= text.len();
        files.push((path.display().to_string(), text));
    }
    if names.len() > MAX_FILES {
        let message = format!(
            "{FOLDER} has {} files, but the limit is {MAX_FILES}; put several agents into a file",
            names.len()
        );
        return Err(beyond_limit(&folder, message));
    }
    Ok(files)
}

fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let is_toml = Path::new(&*name).extension().is_some_and(|it| it == "toml");
        if is_toml && !name.starts_with('.') {
            names.push(name.into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the text. One byte over the limit is enough to notice a text that is too long.
fn text(path: &Path, limit: usize) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    file.take(limit as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn unreadable(path: PathBuf, source: io::Error) -> ConfigError {
    ConfigError::Unreadable { path, source }
}

fn beyond_limit(path: &Path, message: String) -> ConfigError {
    ConfigError::Wrong(vec![Problem {
        location: path.display().to_string(),
        key: None,
        message,
    }])
}
