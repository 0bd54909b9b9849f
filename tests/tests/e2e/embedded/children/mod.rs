//! Programs of an operator that attack their worker: an MCP server, and a program that a tool runs. What they try is in
//! `attack.py`. None of it works, and the worker takes the next turn (docs/operate/isolation.md).

mod engine;
mod secrets;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use everturn_tests::{
    events::data,
    model::{Model, Reply, Request},
    stack::Stack,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Python of the system: every user may run it, unlike one in somebody's home.
const PYTHON: &str = "/usr/bin/python3";
/// Numbers of users from here on belong to nobody on any machine.
const FIRST_USER: u32 = 1 << 28;
/// A secret of the worker. `attack.py` looks for it.
const CANARY: &str = "canary-of-the-worker";
/// Processes that the program may have beside those that there are.
const MORE_PROCESSES: usize = 64;

/// A call of the attack, with what it needs.
type Attack = (&'static str, Vec<String>);

/// The folder of the program, what it must not reach, and a program in it that attacks.
struct Place {
    /// The user of the program, where the tests run as root. Each test has another one, because the kernel counts the
    /// processes of a user.
    user: u32,
    folder: TempDir,
    outside: TempDir,
}

impl Place {
    fn new() -> Self {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let number = std::process::id() * 16 + PLACES.fetch_add(1, Ordering::Relaxed);
        let place = Self {
            user: FIRST_USER + number,
            folder: TempDir::new().unwrap(),
            outside: TempDir::new().unwrap(),
        };
        // The rights of files would let the program write there. Only Landlock stops it.
        for folder in [&place.folder, &place.outside] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        }
        let secret = place.outside.path().join("secret");
        fs::write(&secret, CANARY).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(place.program(), include_str!("attack.py")).unwrap();
        place
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("attack.py")
    }

    fn inside(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn outside(&self, name: &str) -> String {
        self.outside.path().join(name).display().to_string()
    }

    /// The keys that limit a program: as another user where that is possible.
    fn rules(&self) -> String {
        let user = if is_root() {
            format!("user = \"{}\"\n", self.user)
        } else {
            String::new()
        };
        let folder = self.folder.path().display();
        format!(
            "{user}read = [\"{folder}\"]\nwrite = [\"{folder}\"]\nconnect_ports = [443]\n\
             max_memory_bytes = 268435456\nmax_file_bytes = 1048576\nmax_processes = {}\n",
            self.tasks() + MORE_PROCESSES
        )
    }

    /// Processes and threads that count for the program's limit before it starts.
    fn tasks(&self) -> usize {
        let user = if is_root() {
            self.user
        } else {
            nix::unistd::geteuid().as_raw()
        };
        let tasks = |status: String| {
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name))?;
                line.split_whitespace().next()?.parse::<usize>().ok()
            };
            (field("Uid:")? == user as usize).then(|| field("Threads:"))?
        };
        fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("status")).ok())
            .filter_map(tasks)
            .sum()
    }
}

/// Attacks that must fail under any configuration.
fn always() -> Vec<Attack> {
    let gib = |count: u64| (count << 30).to_string();
    let names = [
        "parent_environment",
        "all_environments",
        "own_environment",
        "parent_memory",
        "parent_files",
        "trace_parent",
        "signal_parent",
        "rights",
    ];
    let mut attacks: Vec<Attack> = names.map(|name| (name, Vec::new())).to_vec();
    attacks.push(("allocate", vec![gib(6)]));
    attacks
}

/// Attacks that must fail under [`Place::rules`], besides [`always`].
fn under_rules(place: &Place, port: u16) -> Vec<Attack> {
    let more = (place.tasks() + 10 * MORE_PROCESSES).to_string();
    let mut attacks = always();
    attacks.extend([
        ("read", vec![place.outside("secret")]),
        ("read", vec!["/etc/fstab".to_owned()]),
        ("write", vec![place.outside("written")]),
        ("connect", vec![port.to_string()]),
        ("connect_multipath", vec![port.to_string()]),
        ("connect_fast", vec![port.to_string()]),
        ("fork", vec![more]),
        ("allocate", vec![(1_u64 << 30).to_string()]),
        ("fill", vec![place.inside("large"), (2 << 20).to_string()]),
    ]);
    attacks
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Starts a model that has each attack made by this call, one in a step, and then is done.
async fn attacker(
    attacks: Vec<Attack>,
    call: fn(&Path, &Attack) -> (String, Value),
    at: PathBuf,
) -> Model {
    Model::start(move |request: &Request| {
        if request.last("user") != "attack" {
            return Reply::text("I am well.");
        }
        match attacks.get(request.results_since_user()) {
            Some(attack) => {
                let (tool, input) = call(&at, attack);
                Reply::text("").call(&tool, &input)
            }
            None => Reply::text("Done."),
        }
    })
    .await
}

/// The call of an attack as a tool of the MCP server `attack`.
fn of_server(_: &Path, (name, arguments): &Attack) -> (String, Value) {
    (format!("attack__{name}"), json!({"arguments": arguments}))
}

/// The call of an attack as a program that a tool runs.
fn of_tool(program: &Path, (name, arguments): &Attack) -> (String, Value) {
    let own = [program.display().to_string(), (*name).to_owned()];
    let all: Vec<_> = own.into_iter().chain(arguments.iter().cloned()).collect();
    (
        "test_program".to_owned(),
        json!({"program": PYTHON, "arguments": all}),
    )
}

fn server(place: &Place, more: &str) -> String {
    format!(
        "[mcp.attack]\ncommand = [\"{PYTHON}\", \"{}\", \"serve\"]\ncwd = \"{}\"\n{more}",
        place.program().display(),
        place.folder.path().display()
    )
}

/// Has the attacks made, and returns what came of each. The worker must be the same process before and after, and must
/// take another turn.
async fn attacked(stack: &Stack, count: usize) -> Vec<Value> {
    let (worker, _gateway) = stack_with_canary(stack).await;
    let (conversation, _) = stack.ask("attack").await;
    let events = stack.ended(&conversation, 1).await;
    let observes = data(&events, "observe");
    assert_eq!(observes.len(), count, "{events:#?}");
    let told = observes.iter().map(|observe| found(&observe["result"]));
    let told = told.collect();
    let (conversation, _) = stack.ask("how are you?").await;
    let events = stack.ended(&conversation, 1).await;
    assert_eq!(
        data(&events, "assistant_message")[0]["content"],
        "I am well."
    );
    for id in worker.ids() {
        assert!(
            Path::new(&format!("/proc/{id}")).exists(),
            "the worker has ended"
        );
    }
    told
}

async fn stack_with_canary(
    stack: &Stack,
) -> (
    everturn_tests::stack::Process,
    everturn_tests::stack::Process,
) {
    let secrets = [("WORKER_SECRET", CANARY)];
    (
        stack.worker_with(&secrets),
        stack.gateway_with(&secrets).await,
    )
}

/// The outcome of an attack in a tool's result: the text of an MCP server, or the output of a program.
fn found(result: &Value) -> Value {
    let text = result["output"].as_str().or(result.as_str());
    let outcome = text.and_then(|text| serde_json::from_str(text).ok());
    outcome.unwrap_or_else(|| panic!("the attack did not run: {result}"))
}

fn assert_none_succeeded(outcomes: &[Value]) {
    let worked: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome["succeeded"] != false)
        .collect();
    assert!(worked.is_empty(), "{worked:#?}");
}

fn steps(attacks: &[Attack]) -> String {
    format!("max_steps = {}\n", attacks.len() + 2)
}

#[tokio::test]
async fn a_server_cannot_reach_its_worker() {
    let place = Place::new();
    let attacks = always();
    let agent = format!(
        "tools = [\"attack__*\"]\n{}{}",
        steps(&attacks),
        server(&place, "process.unconfined = true\n")
    );
    let model = attacker(attacks.clone(), of_server, place.program()).await;
    let stack = Stack::with_agent(model, &agent).await;
    assert_none_succeeded(&attacked(&stack, attacks.len()).await);
}

#[tokio::test]
async fn a_server_under_rules_keeps_to_its_folder_and_limits() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut attacks = under_rules(&place, listener.local_addr().unwrap().port());
    // What it may do goes on working.
    let allowed: [Attack; 2] = [
        ("write", vec![place.inside("written")]),
        ("read", vec![place.inside("written")]),
    ];
    attacks.extend(allowed);
    let rules = format!("[mcp.attack.process]\n{}", place.rules());
    let agent = format!(
        "tools = [\"attack__*\"]\n{}{}",
        steps(&attacks),
        server(&place, &rules)
    );
    let model = attacker(attacks.clone(), of_server, place.program()).await;
    let stack = Stack::with_agent(model, &agent).await;
    let outcomes = attacked(&stack, attacks.len()).await;
    let (refused, allowed) = outcomes.split_at(attacks.len() - 2);
    assert_none_succeeded(refused);
    assert!(
        allowed.iter().all(|outcome| outcome["succeeded"] == true),
        "{allowed:?}"
    );
    assert!(!Path::new(&place.outside("written")).exists());
}

#[tokio::test]
async fn a_program_of_a_tool_cannot_reach_its_worker() {
    let place = Place::new();
    let attacks = always();
    let agent = format!("tools = [\"test_program\"]\n{}", steps(&attacks));
    let model = attacker(attacks.clone(), of_tool, place.program()).await;
    let stack = Stack::with_agent(model, &agent).await;
    assert_none_succeeded(&attacked(&stack, attacks.len()).await);
}

#[tokio::test]
async fn a_program_of_a_tool_under_rules_keeps_to_its_folder_and_limits() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let attacks = under_rules(&place, listener.local_addr().unwrap().port());
    let agent = format!(
        "tools = [\"test_program\"]\n{}[processes]\n{}",
        steps(&attacks),
        place.rules()
    );
    let model = attacker(attacks.clone(), of_tool, place.program()).await;
    let stack = Stack::with_agent(model, &agent).await;
    assert_none_succeeded(&attacked(&stack, attacks.len()).await);
    assert!(!Path::new(&place.outside("written")).exists());
}
