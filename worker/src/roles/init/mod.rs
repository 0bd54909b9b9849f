//! `everturn init`: writes a first agent with a tool of its own. Connects to no server.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};

use crate::{
    cli::InitOptions,
    shell::{program, quoted},
};

/// The files, by their names.
const FILES: [(&str, &str); 2] = [
    ("everturn.toml", include_str!("everturn.toml")),
    ("tools.py", include_str!("tools.py")),
];

/// The package with which `tools.py` was tested.
const PACKAGE: &str = "mcp==2.3.0";

/// Writes the files into a folder, and prints the next commands. An existing file is an error, and stays as it is.
pub fn run(options: &InitOptions) -> anyhow::Result<ExitCode> {
    let written = write(&options.folder)?;
    for path in written {
        println!("wrote {}", path.display());
    }
    print!("{}", next(&options.folder, &program()));
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let paths = FILES.map(|(name, _)| folder.join(name));
    let existing: Vec<_> = paths.iter().filter(|path| path.exists()).collect();
    if let Some(first) = existing.first() {
        bail!(
            "{} exists already, and nothing was written; choose another folder: everturn init my-agent",
            first.display()
        );
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (path, (_, content)) in paths.iter().zip(FILES) {
        let file = File::create_new(path).and_then(|mut file| file.write_all(content.as_bytes()));
        file.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => anyhow::anyhow!("another program wrote {}", path.display()),
            _ => anyhow::anyhow!("cannot write {}: {error}", path.display()),
        })?;
    }
    Ok(paths.into())
}

/// Returns the commands that run the agent.
fn next(folder: &Path, program: &str) -> String {
    let mut text = "\nNext, with Python 3.10 or newer:\n".to_owned();
    let enter =
        (folder != Path::new(".")).then(|| format!("cd {}", quoted(&folder.to_string_lossy())));
    let install = format!("python3 -m venv .venv && .venv/bin/pip install {PACKAGE}");
    let commands = [
        (install, "for tools.py"),
        (
            format!("{program} tools list --agent support"),
            "the tools of the agent",
        ),
        (
            format!("{program} dev --watch"),
            "the page: http://127.0.0.1:8080/",
        ),
        (
            format!("{program} chat --agent support \"Where is order 1007?\""),
            "in a second terminal",
        ),
    ];
    if let Some(enter) = enter {
        let _never_fails = writeln!(text, "  {enter}");
    }
    for (command, comment) in commands {
        let _never_fails = writeln!(text, "  {command:<62} # {comment}");
    }
    text += "\nChange everturn.toml and tools.py while `everturn dev --watch` runs: the next turn has the change.\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_once_and_never_over_others() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("a/b");
        assert_eq!(write(&folder).unwrap().len(), 2);
        let mine = folder.join("tools.py");
        fs::write(&mine, "mine").unwrap();
        fs::remove_file(folder.join("everturn.toml")).unwrap();
        let error = write(&folder).unwrap_err().to_string();
        assert!(error.contains("tools.py exists already"), "{error}");
        assert!(!folder.join("everturn.toml").exists(), "nothing is written");
        assert_eq!(fs::read_to_string(mine).unwrap(), "mine");
    }

    #[test]
    fn the_files_are_short() {
        for (name, content) in FILES {
            assert!(content.lines().count() <= 14, "{name}");
        }
    }

    #[test]
    fn the_next_commands_begin_in_the_folder() {
        assert!(next(Path::new("shop"), "everturn").contains("\n  cd shop\n"));
        assert!(next(Path::new("my shop"), "everturn").contains("\n  cd 'my shop'\n"));
        assert!(!next(Path::new("."), "everturn").contains("cd "));
    }
}
