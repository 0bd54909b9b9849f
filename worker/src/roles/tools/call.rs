//! `everturn tools call`: calls a tool by hand, with the checks of a model's call. Standard output has the result
//! only.

use std::{
    convert::Infallible,
    io::{IsTerminal, Write},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use everturn_activities::ToolThreads;
use everturn_config::{Config, DEFAULT_TOOL_TIMEOUT};
use everturn_proto::Json;
use everturn_supervisor::shutdown;
use everturn_terminal::show;
use everturn_tools::{
    CheckedTool, Effect, Progress, ToolContext, ToolError, ToolEvents, ToolRegistry, names,
};
use tokio_util::sync::CancellationToken;

use super::agent::{agent, refuse};
use crate::cli::CallTool;

/// The pause between two checks of the tool's progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// The exit code of a process that SIGINT ended.
const INTERRUPTED: u8 = 130;

pub(super) async fn run(
    config: &Config,
    tools: &ToolRegistry,
    options: &CallTool,
) -> anyhow::Result<ExitCode> {
    let (input, timeout) = match prepare(config, tools, options) {
        Ok(prepared) => prepared,
        Err(reason) => return Ok(refuse(&reason)),
    };
    let mut context = ToolContext {
        tenant_id: options.tenant.clone(),
        ..ToolContext::by_hand()
    };
    if let Some(agent) = &options.agent {
        context.agent.clone_from(agent);
    }
    let tool = match tools.find(&options.name, context.asker()).await {
        Ok(tool) => tool,
        Err(error) => return Ok(failed(&error.to_string())),
    };
    if let Err(reason) = tool.validate(&input) {
        return Ok(refuse(&reason));
    }
    if !tool.spec().effect.may_run_again() && !options.yes && !confirm(&options.name, &input) {
        return Ok(refuse(
            "the tool was not called: it must not run by accident. Confirm on a terminal, or use --yes",
        ));
    }
    call(&tool, context, input, timeout).await
}

/// Returns the input and the time-out of the call, or the mistake in the command.
fn prepare(
    config: &Config,
    tools: &ToolRegistry,
    options: &CallTool,
) -> Result<(Json, Duration), String> {
    let CallTool { name, input, .. } = options;
    let input = Json::parse(input.as_str()).map_err(|error| {
        format!("the input is not JSON: {error}. Write it like '{{\"key\": \"value\"}}'")
    })?;
    let timeout = match &options.agent {
        None => DEFAULT_TOOL_TIMEOUT,
        Some(agent_name) => {
            let tools = &agent(config, agent_name)?.tools;
            let listed = names::listed(tools, name).ok_or_else(|| {
                format!("agent `{agent_name}` has no tool `{name}`; see `everturn tools list --agent {agent_name}`")
            })?;
            Duration::from_millis(listed.timeout_ms.into())
        }
    };
    if !tools.may_have(name) {
        return Err(format!(
            "there is no tool `{name}`; `everturn tools list` shows the tools of an agent"
        ));
    }
    Ok((input, timeout))
}

/// Asks on the terminal. Without a terminal, the answer is no.
fn confirm(name: &str, input: &Json) -> bool {
    if !std::io::stdin().is_terminal() {
        return false;
    }
    eprint!(
        "`{name}` has effects, and must not run twice. Call the tool with {}? [y/N] ",
        show::printable(input.as_str())
    );
    let _unseen = std::io::stderr().flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Runs the tool until it ends, reaches its time-out, or Ctrl-C.
async fn call(
    tool: &CheckedTool,
    context: ToolContext,
    input: Json,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let stop = shutdown::token()?;
    let cancellation = CancellationToken::new();
    // When the call ends, the tool's background work learns of the end, too.
    let _ends_with_call = cancellation.clone().drop_guard();
    let (progress, events) = (Progress::default(), ToolEvents::default());
    let context = ToolContext {
        cancellation,
        progress: progress.clone(),
        events: events.clone(),
        ..context
    };
    let threads = ToolThreads::new(1);
    Ok(tokio::select! {
        ended = threads.run(Arc::clone(tool.tool()), context, input) => match ended {
            Ok(result) => print(&result, &events),
            Err(error) => explain(&error, &tool.spec().effect),
        },
        never = report(&progress) => match never {},
        () = tokio::time::sleep(timeout) => {
            failed(&format!("the tool did not finish within {}", humantime::format_duration(timeout)))
        }
        () = stop.cancelled() => {
            eprintln!("everturn: the call was cancelled");
            ExitCode::from(INTERRUPTED)
        }
    })
}

/// Prints the tool's progress whenever it changes.
async fn report(progress: &Progress) -> Infallible {
    let mut shown = None;
    loop {
        let latest = progress.latest();
        if latest != shown {
            eprintln!(
                "progress {}",
                show::shortened(latest.as_deref().unwrap_or_default())
            );
            shown = latest;
        }
        tokio::time::sleep(PROGRESS_INTERVAL).await;
    }
}

fn print(result: &Json, events: &ToolEvents) -> ExitCode {
    for (event_type, data) in events.take() {
        eprintln!("event {event_type} {}", data.as_str());
    }
    println!("{}", result.as_str());
    ExitCode::SUCCESS
}

fn explain(error: &ToolError, effect: &Effect) -> ExitCode {
    let note = match error {
        ToolError::Interrupted(_) if !effect.may_run_again() => {
            " It may or may not have had its effect."
        }
        _ => "",
    };
    failed(&format!("{error}{note}"))
}

fn failed(message: &str) -> ExitCode {
    eprintln!("everturn: {}", show::printable(message));
    ExitCode::FAILURE
}
