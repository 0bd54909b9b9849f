//! `agents.d`: the files of authors of agents.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{Config, Source, file::File, merge};

const AGENT: &str = "provider = \"demo\"\nmodel = \"m\"\n";

/// A folder with `everturn.toml` and `agents.d`.
struct Folder(TempDir);

impl Folder {
    fn new(main: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("everturn.toml", main);
        folder.write("agents.d/.hidden.toml", "not = toml = at = all");
        folder.write("agents.d/README.md", "no TOML, either");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self) -> Result<Config, String> {
        let source = Source::of_worker(Some(&self.path("everturn.toml")), Vec::new());
        source.read().config.map_err(|error| error.to_string())
    }

    /// Returns the mistakes, with the names of files below the folder.
    fn mistakes(&self) -> String {
        let folder = format!("{}/", self.0.path().display());
        self.read().unwrap_err().replace(&folder, "")
    }
}

fn names(config: &Config) -> Vec<&str> {
    config
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect()
}

#[test]
fn the_tables_of_all_files_are_one_configuration() {
    let folder = Folder::new(&format!(
        "[agents.main]\n{AGENT}delegates = [\"support\"]\n[worker]\nlease = \"3s\"\n"
    ));
    folder.write(
        "agents.d/b.toml",
        &format!("[agents.support]\n{AGENT}tools = [\"refund\"]\ninstructions_file = \"b.md\"\n"),
    );
    folder.write("agents.d/b.md", "You help.");
    folder.write(
        "agents.d/a.toml",
        "[client_tools.refund]\ndescription = \"Pays.\"\n[models.\"demo/m\"]\ninput = 1\noutput = 2\n",
    );
    let config = folder.read().unwrap();
    assert_eq!(names(&config), ["main", "support"]);
    assert_eq!(config.agents[1].instructions, "You help.");
    assert!(config.agents[0].prices.is_some());
    assert_eq!(config.worker.lease.as_secs(), 3);
}

#[test]
fn mistakes_name_the_file_the_line_and_the_column() {
    let folder = Folder::new(&format!("[agents.main]\n{AGENT}max_steps = 0\n"));
    folder.write(
        "agents.d/a.toml",
        "\n[agents.a]\nprovider = \"none\"\nmodel = \"m\"\n",
    );
    folder.write(
        "agents.d/b.toml",
        &format!("[agents.b]\n{AGENT}\n  seed = -1\ninstructions_file = \"gone.md\"\n"),
    );
    let mistakes = folder.mistakes();
    for expected in [
        "everturn.toml:4:13: `max_steps` must be",
        "agents.d/a.toml:3:12: there is no provider `none`",
        "agents.d/b.toml:5:10: `seed` must be",
        "agents.d/b.toml:6:21: the instructions agents.d/gone.md cannot be read",
    ] {
        assert!(mistakes.contains(expected), "{expected}\n→ {mistakes}");
    }
    assert_eq!(mistakes.lines().count(), 5, "{mistakes}");
    folder.write("agents.d/a.toml", "[agents.a]\nmodle = \"m\"\n");
    let mistakes = folder.mistakes();
    let expected = "agents.d/a.toml:2:1: unknown field `modle`";
    assert!(mistakes.contains(expected), "{mistakes}");
    folder.write("agents.d/a.toml", "[agents.a\n");
    folder.write("agents.d/b.toml", "[agents.b\n");
    let mistakes = folder.mistakes();
    assert!(mistakes.contains("agents.d/a.toml:1:"), "{mistakes}");
    assert!(mistakes.contains("agents.d/b.toml:1:"), "{mistakes}");
}

#[test]
fn two_files_with_one_table_are_refused() {
    let agent = format!("[agents.main]\n{AGENT}");
    let folder = Folder::new(&agent);
    folder.write("agents.d/a.toml", &format!("\n{agent}"));
    let mistakes = folder.mistakes();
    let expected = "agents.d/a.toml:2:9: [agents.main] is also in everturn.toml:1:9; remove one";
    assert!(mistakes.contains(expected), "{mistakes}");
    // A part of a table counts as the table.
    folder.write("agents.d/a.toml", "[agents.main.budget]\nsteps = 3\n");
    let mistakes = folder.mistakes();
    assert!(
        mistakes.contains("a.toml:1:9: [agents.main] is also in"),
        "{mistakes}"
    );
    folder.write("everturn.toml", "");
    folder.write("agents.d/a.toml", &agent);
    folder.write("agents.d/b.toml", &agent);
    let mistakes = folder.mistakes();
    let expected = "agents.d/b.toml:1:9: [agents.main] is also in agents.d/a.toml:1:9; remove";
    assert!(mistakes.contains(expected), "{mistakes}");
}

#[test]
fn an_author_writes_no_table_of_the_operator() {
    let folder = Folder::new(&format!("[agents.main]\n{AGENT}"));
    for table in merge::OPERATORS {
        folder.write("agents.d/a.toml", &format!("\n[{table}]\nx = 1\n"));
        let mistakes = folder.mistakes();
        let expected = format!(
            "agents.d/a.toml:2:2: [{table}] is a table of the operator and belongs into everturn.toml"
        );
        assert!(mistakes.contains(&expected), "{mistakes}");
    }
    folder.write("agents.d/a.toml", "agent = 1\n");
    let mistakes = folder.mistakes();
    assert!(
        mistakes.contains("a.toml:1:1: unknown field `agent`"),
        "{mistakes}"
    );
    folder.write("agents.d/a.toml", "agents = 1\n");
    assert!(
        folder
            .mistakes()
            .contains("agents.d/a.toml:1:10: invalid type")
    );
}

#[test]
fn every_table_is_an_authors_or_an_operators() {
    let error = toml::from_str::<File>("probe = 1").unwrap_err();
    let (_, expected) = error.message().split_once("expected one of ").unwrap();
    let tables: BTreeSet<&str> = expected.split('`').skip(1).step_by(2).collect();
    let known = merge::AUTHORS.into_iter().chain(merge::OPERATORS);
    assert_eq!(tables, known.collect());
}

#[test]
fn a_mounted_config_map_is_read_once() {
    let folder = Folder::new("");
    let version = folder.path("agents.d/..2026_11_28");
    fs::create_dir_all(&version).unwrap();
    fs::write(version.join("a.toml"), format!("[agents.a]\n{AGENT}")).unwrap();
    symlink("..2026_11_28", folder.path("agents.d/..data")).unwrap();
    symlink("..data/a.toml", folder.path("agents.d/a.toml")).unwrap();
    assert_eq!(names(&folder.read().unwrap()), ["a"]);
}

#[test]
fn the_folder_has_limits() {
    let folder = Folder::new("");
    for number in 0..501 {
        let agent = format!("[agents.a{number}]\n{AGENT}");
        folder.write(&format!("agents.d/{number}.toml"), &agent);
    }
    let mistakes = folder.mistakes();
    assert!(
        mistakes.contains("agents.d has 501 files, but the limit is 500"),
        "{mistakes}"
    );
    fs::remove_file(folder.path("agents.d/0.toml")).unwrap();
    assert_eq!(folder.read().unwrap().agents.len(), 500);
    folder.write("agents.d/long.toml", &"#".repeat(4 << 20));
    fs::remove_file(folder.path("agents.d/1.toml")).unwrap();
    let mistakes = folder.mistakes();
    assert!(mistakes.contains("more than 4194304 bytes"), "{mistakes}");
}

#[test]
fn a_folder_that_is_no_folder_is_told() {
    let folder = Folder::new("");
    fs::remove_dir_all(folder.path("agents.d")).unwrap();
    folder.write("agents.d", "");
    let mistakes = folder.mistakes();
    assert!(
        mistakes.contains("cannot read the configuration agents.d"),
        "{mistakes}"
    );
}

/// Writes a file with a new content, and says whether the process would notice.
fn notices(folder: &Folder, name: &str, text: &str) -> bool {
    let source = Source::of_worker(Some(&folder.path("everturn.toml")), Vec::new());
    let before = source.read().files;
    assert!(!before.have_changed());
    folder.write(name, text);
    before.have_changed()
}

#[test]
fn a_change_of_any_file_of_an_agent_is_noticed() {
    let agent = format!("[agents.main]\n{AGENT}instructions_file = \"main.md\"\n");
    let folder = Folder::new(&format!("{agent}[skills]\npaths = [\"skills\"]\n"));
    folder.write("skills/s/SKILL.md", "x");
    for (name, text) in [
        // The file is missing at first, and the configuration has a mistake.
        ("main.md", "You help."),
        ("main.md", "You help fast."),
        ("agents.d/new.toml", ""),
        ("agents.d/new.toml", "# One"),
        ("skills/s/SKILL.md", "y"),
        ("skills/t/SKILL.md", "x"),
        ("everturn.toml", &agent),
    ] {
        assert!(notices(&folder, name, text), "{name}");
    }
    assert!(!notices(&folder, "everturn.toml", &agent), "the same text");
    assert!(!notices(&folder, "other.md", "not of this configuration"));
    assert!(Path::new(&folder.path("other.md")).exists());
}
