//! `[remote_tools.NAME]`: tools that a worker of the operator's own runs, in any Temporal SDK's language.

use std::{collections::BTreeMap, time::Duration};

use everturn_activities::tools::RemoteTool;
use everturn_proto::turn;
use serde::Deserialize;
use toml::Spanned;

use super::{
    check::{Checker, HOUR, SECOND, milliseconds},
    outside::EffectWord,
};

/// How long a call waits for a worker unless the table says: a deployment of the tool's worker may take that long.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_mins(1);

/// `[remote_tools.NAME]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoteToolTable {
    description: Spanned<String>,
    #[serde(default)]
    input: toml::Table,
    #[serde(default)]
    effect: EffectWord,
    task_queue: Spanned<String>,
    activity_type: Option<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    heartbeat_timeout: Option<Spanned<String>>,
    start_timeout: Option<Spanned<String>>,
}

/// What a call of a remote tool needs besides its description.
#[derive(Debug, Clone)]
pub(super) struct RemoteCall {
    pub(super) worker: turn::RemoteTool,
    /// Absent: the agent's `tool_timeout`.
    pub(super) timeout: Option<Duration>,
}

impl Checker<'_> {
    /// Described before the agents that name them.
    pub(super) fn remote_tools(
        &mut self,
        tables: BTreeMap<Spanned<String>, RemoteToolTable>,
    ) -> Vec<RemoteTool> {
        let mut described = Vec::new();
        for (name, table) in tables {
            let call = self.remote_call(&name, &table);
            self.remote_tools.insert(name.get_ref().clone(), call);
            if self.add_tool(&name) {
                described.push(RemoteTool(self.described(
                    &name,
                    &table.description,
                    &table.input,
                    table.effect,
                )));
            }
        }
        described
    }

    fn remote_call(&mut self, name: &Spanned<String>, table: &RemoteToolTable) -> RemoteCall {
        for named in [Some(&table.task_queue), table.activity_type.as_ref()]
            .into_iter()
            .flatten()
        {
            // The engine's limit on both.
            if !(1..=1000).contains(&named.get_ref().len()) {
                self.wrong(
                    named,
                    "`task_queue` and `activity_type` have 1 to 1000 bytes",
                );
            }
        }
        let heartbeat = self.duration(
            "heartbeat_timeout",
            table.heartbeat_timeout.as_ref(),
            Duration::ZERO,
            SECOND..=HOUR,
        );
        let start = self.duration(
            "start_timeout",
            table.start_timeout.as_ref(),
            DEFAULT_START_TIMEOUT,
            SECOND..=24 * HOUR,
        );
        let timeout = self.duration(
            "timeout",
            table.timeout.as_ref(),
            Duration::ZERO,
            SECOND..=24 * HOUR,
        );
        RemoteCall {
            worker: turn::RemoteTool {
                task_queue: table.task_queue.get_ref().clone(),
                activity_type: table
                    .activity_type
                    .as_ref()
                    .unwrap_or(name)
                    .get_ref()
                    .clone(),
                heartbeat_timeout_ms: milliseconds(heartbeat),
                start_timeout_ms: milliseconds(start),
            },
            timeout: (!timeout.is_zero()).then_some(timeout),
        }
    }
}
