//! `[remote_tools.NAME]`: tools that a worker of the operator's own runs, in any Temporal SDK's language.

use std::{collections::BTreeMap, time::Duration};

use everturn_proto::{limits::REMOTE_RESULT_BYTES, turn};
use everturn_tools::{DescribedTool, RunBy};
use serde::Deserialize;
use toml::Spanned;

use super::description::{WrittenEffect, WrittenTitle, checked_spec};
use crate::{
    checker::{Checker, milliseconds},
    forms::{DAY, HOUR, Number, SECOND, Text, Time, Written},
    names::{Names, Runner},
};

/// The default time for which a call waits for a worker. A deployment of the tool's worker may take that long.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_mins(1);
/// The limits on a result. One KiB has room for an answer, and 1 MiB is the limit of every tool
/// (`TOOL_RESULT_MAX_BYTES`).
type ResultBytes = Number<1024, { 1024 * 1024 }>;
/// Temporal's limit on names of task queues and activities.
const MAX_NAME_BYTES: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoteToolTable {
    description: Written<Text>,
    title: Option<WrittenTitle>,
    #[serde(default)]
    input: toml::Table,
    effect: Option<WrittenEffect>,
    task_queue: Spanned<String>,
    activity_type: Option<Spanned<String>>,
    timeout: Option<Written<Time<SECOND, DAY>>>,
    heartbeat_timeout: Option<Written<Time<SECOND, HOUR>>>,
    start_timeout: Option<Written<Time<SECOND, DAY>>>,
    max_result_bytes: Option<Written<ResultBytes>>,
}

pub(crate) fn check(
    tables: &BTreeMap<Spanned<String>, RemoteToolTable>,
    check: &mut Checker<'_>,
    names: &mut Names,
) -> Vec<DescribedTool> {
    let mut tools = Vec::new();
    for (name, table) in tables {
        let runner = table.runner(name, check);
        if names.add_tool(check, name, runner) {
            let spec = checked_spec(
                check,
                name,
                &table.description,
                &table.input,
                table.title.as_ref(),
                table.effect.as_ref(),
            );
            let run_by = RunBy::OtherWorker;
            tools.push(DescribedTool { spec, run_by });
        }
    }
    tools
}

impl RemoteToolTable {
    fn runner(&self, name: &Spanned<String>, check: &mut Checker<'_>) -> Runner {
        let activity_type = self.activity_type.as_ref().unwrap_or(name);
        for named in [&self.task_queue, activity_type] {
            if !(1..=MAX_NAME_BYTES).contains(&named.get_ref().len()) {
                check.wrong(
                    named,
                    format!("`task_queue` and `activity_type` have 1 to {MAX_NAME_BYTES} bytes"),
                );
            }
        }
        let start_timeout = check.value_or(&self.start_timeout, DEFAULT_START_TIMEOUT);
        let max_result_bytes = check.value_or(&self.max_result_bytes, REMOTE_RESULT_BYTES);
        Runner::Remote {
            worker: turn::RemoteTool {
                task_queue: self.task_queue.get_ref().clone(),
                activity_type: activity_type.get_ref().clone(),
                heartbeat_timeout_ms: check.value(&self.heartbeat_timeout).map(milliseconds),
                start_timeout_ms: milliseconds(start_timeout),
                max_result_bytes: Some(max_result_bytes),
            },
            timeout: check.value(&self.timeout),
        }
    }
}
