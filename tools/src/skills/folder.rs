//! A skill on disk: its instructions, and the files in its folder that a model may read.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::front_matter::FrontMatter;

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// The largest SKILL.md. The format recommends at most 5,000 tokens.
const MAX_SKILL_FILE_BYTES: u64 = 256 * 1024;
/// The largest readable file. A model reads files in pieces; a larger file is data, and needs a tool of its own.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The most files in the list for the model. The list has at most 2 KiB.
const MAX_FILES: usize = 100;
const MAX_LIST_BYTES: usize = 2 * 1024;
/// The most directory entries searched, because a skill is not an archive.
const MAX_SEEN: usize = 1000;
/// The deepest folder below the skill's folder.
const MAX_DEPTH: usize = 4;

/// A skill, read from its file `SKILL.md` and its folder.
#[derive(Debug)]
pub(super) struct Skill {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) compatibility: String,
    pub(super) allowed_tools: String,
    pub(super) instructions: String,
    /// Readable files, by their path in the folder, sorted.
    pub(super) files: Vec<String>,
    /// The path of the folder, without symbolic links.
    root: PathBuf,
}

impl Skill {
    /// Reads the skill in a folder with this name. The error tells the operator what to fix.
    pub(super) fn read(folder: &Path, name: &str) -> Result<Self, String> {
        let root = folder.canonicalize().map_err(|error| error.to_string())?;
        let text = read_text(&root, SKILL_FILE, MAX_SKILL_FILE_BYTES)?;
        let (head, instructions) = FrontMatter::read(&text, name)?;
        if instructions.is_empty() {
            return Err("the instructions behind the front matter are missing".to_owned());
        }
        let mut files = Vec::new();
        list(&root, "", 0, &mut files).map_err(|error| error.to_string())?;
        files.sort();
        let (listed, left_out) = bounded(files);
        if left_out > 0 {
            tracing::warn!(
                skill = name,
                left_out,
                "a skill has more files than are listed; the rest cannot be read"
            );
        }
        Ok(Self {
            name: head.name,
            description: head.description.trim().to_owned(),
            compatibility: head.compatibility,
            allowed_tools: head.allowed_tools.into_text(),
            instructions: instructions.to_owned(),
            files: listed,
            root,
        })
    }

    /// Returns the text of a file of the skill. The error is for the model.
    pub(super) fn file(&self, name: &str) -> Result<String, String> {
        if !self.files.iter().any(|file| file == name) {
            return Err(format!(
                "skill `{}` has no file with this name; read the files listed with the instructions",
                self.name
            ));
        }
        read_text(&self.root, name, MAX_FILE_BYTES)
    }
}

/// Reads a text file below `root`. Links are followed while the target stays below `root`.
fn read_text(root: &Path, name: &str, max_bytes: u64) -> Result<String, String> {
    let path = inside(root, &root.join(name)).ok_or("the file is not in the skill's folder")?;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(max_bytes + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("the file cannot be read: {}", error.kind()))?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!(
            "the file has more than {max_bytes} bytes, the limit"
        ));
    }
    // A NUL is valid in Rust's strings, but PostgreSQL cannot store it.
    let text = String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'));
    text.ok_or_else(|| "the file is not a text file".to_owned())
}

/// Returns the regular file behind `path` if the file lies below `root`. Kubernetes volumes consist of internal
/// links.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    (real.starts_with(root) && real.is_file()).then_some(real)
}

/// Lists files below `root` without hidden files and SKILL.md. Links to folders are not followed, because they may
/// form a cycle.
fn list(root: &Path, within: &str, depth: usize, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(within))? {
        if found.len() >= MAX_SEEN {
            break;
        }
        let entry = entry?;
        let file_name = entry.file_name();
        // The model cannot ask for a name that is not UTF-8.
        let Some(file_name) = file_name.to_str().filter(|name| !name.starts_with('.')) else {
            continue;
        };
        let name = if within.is_empty() {
            file_name.to_owned()
        } else {
            format!("{within}/{file_name}")
        };
        if entry.file_type()?.is_dir() {
            if depth < MAX_DEPTH {
                list(root, &name, depth + 1, found)?;
            }
        } else if name != SKILL_FILE && inside(root, &entry.path()).is_some() {
            found.push(name);
        }
    }
    Ok(())
}

/// Returns the listed files and the number of files left out.
fn bounded(mut files: Vec<String>) -> (Vec<String>, usize) {
    let sizes = files.iter().take(MAX_FILES).scan(0, |total, name| {
        *total += name.len() + "\"\",".len();
        Some(*total)
    });
    let kept = sizes.take_while(|&total| total <= MAX_LIST_BYTES).count();
    let left_out = files.len() - kept;
    files.truncate(kept);
    (files, left_out)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const HEAD: &str = "---\nname: x\ndescription: x\n---\n";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join("x").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn read(folder: &tempfile::TempDir) -> Result<Skill, String> {
        Skill::read(&folder.path().join("x"), "x")
    }

    #[test]
    fn files_are_listed_and_read() {
        let instructions = format!("{HEAD}Do it.");
        let folder = folder(&[
            (SKILL_FILE, &instructions),
            ("b/c.md", "C"),
            ("a.md", "A"),
            (".git/config", "no"),
        ]);
        let skill = read(&folder).unwrap();
        assert_eq!(skill.instructions, "Do it.");
        assert_eq!(skill.files, ["a.md", "b/c.md"]);
        assert_eq!(skill.file("b/c.md").as_deref(), Ok("C"));
    }

    #[test]
    fn nothing_outside_of_the_folder_is_read() {
        let instructions = format!("{HEAD}Do it.");
        let folder = folder(&[
            (SKILL_FILE, &instructions),
            ("a.md", "A"),
            ("dir/b.md", "B"),
            ("../secret", "S"),
        ]);
        let root = folder.path().join("x");
        symlink("../secret", root.join("out.md")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("a.md", root.join("link.md")).unwrap();
        let skill = read(&folder).unwrap();
        assert_eq!(skill.files, ["a.md", "dir/b.md", "link.md"]);
        assert_eq!(
            skill.file("link.md").as_deref(),
            Ok("A"),
            "a link within the folder is followed"
        );
        for name in [
            "../secret",
            "out.md",
            "up/secret",
            "dir/../a.md",
            "/etc/passwd",
            "",
            ".",
            "./a.md",
            SKILL_FILE,
        ] {
            assert!(
                skill
                    .file(name)
                    .unwrap_err()
                    .contains("has no file with this name"),
                "{name}"
            );
        }
        fs::remove_file(root.join("a.md")).unwrap();
        symlink("../secret", root.join("a.md")).unwrap();
        assert!(
            skill
                .file("a.md")
                .unwrap_err()
                .contains("not in the skill's folder"),
            "changed afterwards"
        );
    }

    #[test]
    fn what_is_no_text_or_too_large_is_refused() {
        let folder = folder(&[
            (SKILL_FILE, &format!("{HEAD}Do it.")),
            ("nul", "a\0b"),
            ("large", ""),
        ]);
        let root = folder.path().join("x");
        fs::write(root.join("binary"), [0xff, 0xfe]).unwrap();
        File::options()
            .write(true)
            .open(root.join("large"))
            .unwrap()
            .set_len(MAX_FILE_BYTES + 1)
            .unwrap();
        let skill = read(&folder).unwrap();
        for (name, expected) in [
            ("nul", "not a text file"),
            ("binary", "not a text file"),
            ("large", "more than 1048576"),
        ] {
            assert!(skill.file(name).unwrap_err().contains(expected), "{name}");
        }
    }

    #[test]
    fn a_skill_has_instructions_of_a_bounded_size() {
        assert!(
            read(&folder(&[(SKILL_FILE, HEAD)]))
                .unwrap_err()
                .contains("instructions behind the front matter")
        );
        let long = format!("{HEAD}{}", "x".repeat(256 * 1024));
        assert!(
            read(&folder(&[(SKILL_FILE, &long)]))
                .unwrap_err()
                .contains("more than 262144 bytes")
        );
    }

    #[test]
    fn lists_are_bounded() {
        let many: Vec<_> = (0..150).map(|n| format!("f{n:03}")).collect();
        let (kept, left_out) = bounded(many);
        assert_eq!((kept.len(), left_out), (100, 50));
        let long: Vec<_> = (0..50)
            .map(|n| format!("{}{n:03}", "x".repeat(200)))
            .collect();
        assert!(serde_json::to_string(&bounded(long).0).unwrap().len() <= MAX_LIST_BYTES + 2);
    }
}
