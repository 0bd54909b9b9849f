//! Processor time of the benchmark's child processes, by role. The times come from Linux's `/proc`.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    time::Duration,
};

/// Role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// `everturn worker`, or a peer's worker.
    Worker,
    /// `everturn gateway`.
    Gateway,
    /// The Temporal server.
    Engine,
    /// PostgreSQL, including the processes of PostgreSQL's connections.
    Database,
    Redis,
    /// The benchmark itself: the model, the clients and a proxy.
    Load,
}

impl Role {
    /// Roles of the measured product: every role except the load.
    pub(crate) const PRODUCT: [Self; 5] = [
        Self::Worker,
        Self::Gateway,
        Self::Engine,
        Self::Database,
        Self::Redis,
    ];

    /// Roles of a peer.
    pub(crate) const PEER: [Self; 2] = [Self::Worker, Self::Engine];

    /// Finds the role of a process by the command line.
    fn of(command: &[String]) -> Option<Self> {
        // Redis and PostgreSQL write further words after the program's name, into the first argument.
        let path = command.first()?.split(' ').next()?;
        let program = path.rsplit('/').next()?;
        let has = |word: &str| command.iter().any(|argument| argument == word);
        Some(match program {
            "everturn" if has("worker") => Self::Worker,
            "everturn" if has("gateway") => Self::Gateway,
            "temporal" | "temporal-server" => Self::Engine,
            "redis-server" => Self::Redis,
            _ if program.starts_with("postgres") => Self::Database,
            // A peer: the floor on the bare SDK, or an agent in another language.
            "bench" if has("floor") => Self::Worker,
            _ if program.starts_with("python") || program.starts_with("node") => Self::Worker,
            _ => return None,
        })
    }
}

/// Processor time by role, since the start of the processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuTimes(BTreeMap<Role, Duration>);

/// Fields of `/proc/<id>/stat`.
struct Stat {
    parent: u32,
    /// Time of the process and of its ended children, in ticks.
    ticks: u64,
}

impl CpuTimes {
    /// Reads the times of the benchmark's process and every descendant.
    pub(crate) fn now() -> Self {
        let stats = all();
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (id, stat) in &stats {
            children.entry(stat.parent).or_default().push(*id);
        }
        let mut times = Self::default();
        let mut open = vec![(std::process::id(), Role::Load)];
        while let Some((id, above)) = open.pop() {
            // A process without a role of its own has the role of its parent.
            let role = if above == Role::Load {
                Role::of(&command(id)).unwrap_or(above)
            } else {
                above
            };
            let ticks = stats.get(&id).map_or(0, |stat| stat.ticks);
            *times.0.entry(role).or_default() += duration(ticks);
            let below = children.get(&id).into_iter().flatten();
            open.extend(below.map(|child| (*child, role)));
        }
        times
    }

    /// Returns a role's processor time since an earlier reading, in milliseconds.
    pub(crate) fn since(&self, earlier: &Self, role: Role) -> f64 {
        let of = |times: &Self| times.0.get(&role).copied().unwrap_or_default();
        of(self).saturating_sub(of(earlier)).as_secs_f64() * 1000.0
    }
}

fn all() -> HashMap<u32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| Some((id, stat(id)?))).collect()
}

fn stat(id: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The process name may contain any character and ends at the last parenthesis. The next field is the state, field 3
    // of proc(5).
    let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    // utime, stime, cutime, cstime
    let ticks = [14, 15, 16, 17].into_iter().map(field).sum::<Option<u64>>();
    Some(Stat {
        parent: u32::try_from(field(4)?).ok()?,
        ticks: ticks?,
    })
}

fn command(id: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    let words = text
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Converts ticks. Linux reports times in hundredths of a second, regardless of the kernel's own clock (`USER_HZ`,
/// proc(5)).
fn duration(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(command: &str) -> Option<Role> {
        let words: Vec<_> = command.split(' ').map(str::to_owned).collect();
        Role::of(&words)
    }

    #[test]
    fn processes_are_told_by_their_commands() {
        let worker = role("/x/everturn worker --task-queue q");
        assert_eq!(worker, Some(Role::Worker));
        assert_eq!(role("/x/everturn gateway --listen a"), Some(Role::Gateway));
        assert_eq!(role("/x/temporal server start-dev"), Some(Role::Engine));
        assert_eq!(
            role("postgres: everturn db [local] idle"),
            Some(Role::Database)
        );
        let redis = "/usr/bin/redis-server 127.0.0.1:1".to_owned();
        assert_eq!(Role::of(&[redis]), Some(Role::Redis));
        assert_eq!(role("/x/bench floor"), Some(Role::Worker));
        assert_eq!(role("/x/bench turn"), None);
        assert_eq!(role("sh -c true"), None);
    }

    #[test]
    fn time_that_this_process_uses_is_load() {
        let before = CpuTimes::now();
        let mut sum = 0_u64;
        while CpuTimes::now().since(&before, Role::Load) < 20.0 {
            sum = (0..100_000).fold(sum, |sum, number| sum.wrapping_mul(31) ^ number);
        }
        assert!(CpuTimes::now().since(&before, Role::Engine) < 1.0, "{sum}");
    }
}
