//! The tools of a request: every tool of the agent, or as many as the provider takes. `find_tools` then stands for the
//! other tools, and the tools that it has found are offered, too.
//!
//! The found tools follow from the stored messages alone, so every worker offers the same tools after a crash. Pure.
//! Must not be here: the search (`everturn_tools::builtin::find_tools`).

use std::collections::BTreeMap;

use everturn_models::{OfferedTool, ToolRules, Unfit, unfit};
use everturn_proto::words::FIND_TOOLS_TOOL;
use everturn_store::ContextMessage;
use everturn_tools::{ToolSpec, builtin::find_tools};

/// The most found tools of a request. More schemas cost more tokens in every further step.
const MAX_FOUND: usize = 32;

/// The tools that no agent lists.
pub(super) struct BuiltIn {
    /// The tool that finds tools.
    pub(super) find_tools: Option<ToolSpec>,
    /// The tool that reads long results, when the context has one.
    pub(super) read_result: Option<ToolSpec>,
}

/// The tools of a request.
#[derive(Default)]
pub(super) struct Offer {
    /// The offered tools, in order. Found tools are last but for `read_result`, so that the beginning of the request stays
    /// as it was, and the provider reads the beginning from its cache.
    pub(super) offered: Vec<ToolSpec>,
    /// The agent's other tools. A model may still know the name of such a tool, and call the tool.
    pub(super) others: Vec<ToolSpec>,
    /// The tools that the provider would refuse.
    pub(super) unfit: Vec<(ToolSpec, Unfit)>,
}

/// The number of tools for which a request has room.
struct Room {
    /// The tools from the beginning of the agent's list.
    listed: usize,
    /// The found tools; `None`: every tool of the agent has room.
    found: Option<usize>,
}

impl Room {
    /// `read_result` always has its room: a tool that came later would take the room of another tool.
    fn of(rules: ToolRules, tools: usize) -> Self {
        let most = rules.max_tools.saturating_sub(1);
        if tools <= most {
            return Self {
                listed: most,
                found: None,
            };
        }
        let found = MAX_FOUND.min(most / 2);
        Self {
            listed: most.saturating_sub(found + 1),
            found: Some(found),
        }
    }
}

/// The names of found tools, in the order of their first appearance; `None`: every tool of the agent has room.
pub(super) type FoundNames = Option<Vec<String>>;

/// Returns the tools that the model has found, by the messages of the context.
pub(super) fn found_in(
    messages: &[ContextMessage],
    tools: &[ToolSpec],
    rules: ToolRules,
) -> FoundNames {
    let room = Room::of(rules, tools.len());
    room.found.map(|most| newest(tools, messages, most))
}

/// Chooses the tools of a request. `tools` are all tools of the agent, in the order of the agent's list. `is_agent` tells
/// whether a tool is another agent.
pub(super) fn choose(
    tools: Vec<ToolSpec>,
    built_in: BuiltIn,
    rules: ToolRules,
    found: &FoundNames,
    is_agent: impl Fn(&str) -> bool,
) -> Offer {
    let room = Room::of(rules, tools.len());
    let mut offer = Offer::default();
    let mut found_tools: BTreeMap<usize, ToolSpec> = BTreeMap::new();
    let mut listed = 0;
    for tool in agents_first(tools, room.found.is_some(), is_agent) {
        let rank = found.iter().flatten().position(|name| *name == tool.name);
        if listed >= room.listed && rank.is_none() {
            offer.others.push(tool);
            continue;
        }
        if let Some(reason) = unfit(&as_offered(&tool), rules) {
            offer.unfit.push((tool, reason));
            continue;
        }
        // A listed tool that was found, too, is offered once.
        if listed < room.listed {
            listed += 1;
            offer.offered.push(tool);
        } else if let Some(rank) = rank {
            found_tools.insert(rank, tool);
        }
    }
    if room.found.is_some() {
        offer.offered.extend(built_in.find_tools);
    }
    offer.offered.extend(found_tools.into_values());
    offer.offered.extend(built_in.read_result);
    offer
}

/// Moves the tools that are agents, which are the last of the agent's tools, to the front when not every tool has room.
fn agents_first(
    tools: Vec<ToolSpec>,
    has_few: bool,
    is_agent: impl Fn(&str) -> bool,
) -> Vec<ToolSpec> {
    if !has_few {
        return tools;
    }
    let (mut agents, others): (Vec<_>, Vec<_>) =
        tools.into_iter().partition(|tool| is_agent(&tool.name));
    agents.extend(others);
    agents
}

/// Returns the names of the tools that the model has found or called, in the order of their first appearance. Of more than
/// `most` tools, those leave whose last appearance is the oldest.
fn newest(tools: &[ToolSpec], messages: &[ContextMessage], most: usize) -> Vec<String> {
    let mut seen = Seen::default();
    for message in messages {
        for call in &message.tool_calls {
            if call.tool_name != FIND_TOOLS_TOOL {
                seen.note(vec![call.tool_name.clone()]);
                continue;
            }
            let mut results = message.tool_results.iter();
            let result = results.find(|result| result.execution_id == call.execution_id);
            if let Some(result) = result.filter(|result| !result.is_error) {
                seen.note(find_tools::names_in(&result.result));
            }
        }
    }
    let is_known = |name: &String| tools.iter().any(|tool| tool.name == *name);
    seen.newest(is_known, most)
}

/// The names in the context.
#[derive(Default)]
struct Seen {
    /// By name: the first appearance, and the last appearance. Of the names in one answer, the first has the newest.
    names: BTreeMap<String, (usize, usize)>,
    appearances: usize,
}

impl Seen {
    fn note(&mut self, names: Vec<String>) {
        let first = self.appearances;
        self.appearances += names.len();
        for (rank, name) in names.into_iter().enumerate() {
            let last = self.appearances - rank;
            self.names.entry(name).or_insert((first + rank, last)).1 = last;
        }
    }

    fn newest(self, is_known: impl Fn(&String) -> bool, most: usize) -> Vec<String> {
        let mut names: Vec<_> = self
            .names
            .into_iter()
            .filter(|(name, _)| is_known(name))
            .collect();
        names.sort_by_key(|(_, (_, last))| std::cmp::Reverse(*last));
        names.truncate(most);
        names.sort_by_key(|(_, (first, _))| *first);
        names.into_iter().map(|(name, _)| name).collect()
    }
}

/// Returns a tool's definition as the model reads it.
pub(super) fn as_offered(spec: &ToolSpec) -> OfferedTool {
    OfferedTool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
    }
}

#[cfg(test)]
mod tests {
    use everturn_models::{Profile, ProfileSettings, ProviderKind};
    use everturn_proto::{
        Json,
        turn::ToolCall,
        words::{Effect, MessageRole},
    };
    use everturn_store::ToolResult;
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
            title: None,
            effect: Effect::Read,
            is_inline: false,
        }
    }

    fn tools(count: usize) -> Vec<ToolSpec> {
        (0..count)
            .map(|number| tool(&format!("s__{number}")))
            .collect()
    }

    fn rules(max_tools: u32) -> ToolRules {
        let settings = ProfileSettings {
            max_tools: Some(max_tools),
            ..ProfileSettings::default()
        };
        ToolRules::of(&Profile::of(ProviderKind::OpenAi, "x", "m", settings))
    }

    fn chosen(tools: Vec<ToolSpec>, max_tools: u32, messages: &[ContextMessage]) -> Offer {
        let rules = rules(max_tools);
        let found = found_in(messages, &tools, rules);
        choose(tools, built_in(), rules, &found, |name| name == "delegate")
    }

    fn built_in() -> BuiltIn {
        BuiltIn {
            find_tools: Some(tool("find_tools")),
            read_result: Some(tool("read_result")),
        }
    }

    /// A step that calls a tool. `found` are the names in the answer of `find_tools`.
    fn step(number: usize, name: &str, found: &[&str]) -> ContextMessage {
        let tools: Vec<_> = found
            .iter()
            .map(|name| json!({"name": name, "description": "d"}))
            .collect();
        let execution_id = format!("exec_{number:012}");
        ContextMessage {
            tool_calls: vec![ToolCall {
                execution_id: execution_id.clone(),
                tool_name: name.to_owned(),
                ..ToolCall::default()
            }],
            tool_results: vec![ToolResult {
                execution_id,
                call_id: String::new(),
                tool_name: name.to_owned(),
                result: Json::of(&json!({"tools": tools})),
                is_error: false,
            }],
            ..ContextMessage::text(MessageRole::Assistant, "")
        }
    }

    fn offered(count: usize, max_tools: u32, messages: &[ContextMessage]) -> Vec<String> {
        let offer = chosen(tools(count), max_tools, messages);
        assert!(offer.offered.len() <= max_tools as usize);
        offer.offered.into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn an_agent_whose_tools_have_room_gets_them_all_and_nothing_else() {
        for count in [1, 127] {
            let offer = chosen(tools(count), 128, &[step(1, "s__0", &[])]);
            let expected: Vec<_> = tools(count)
                .into_iter()
                .chain([tool("read_result")])
                .collect();
            assert_eq!(offer.offered, expected);
            assert!(offer.others.is_empty());
        }
        // With `read_result`, 128 tools would be 129.
        let names = offered(128, 128, &[]);
        assert!(
            names.contains(&"find_tools".to_owned()) && names.len() == 96,
            "{}",
            names.len()
        );
    }

    #[test]
    fn found_and_called_tools_are_offered_after_the_listed_tools() {
        let messages = [
            step(
                1,
                "find_tools",
                &["s__900", "s__800", "s__1", "other__tool"],
            ),
            step(2, "s__700", &[]),
        ];
        let names = offered(1000, 128, &messages);
        let listed: Vec<String> = (0..94).map(|number| format!("s__{number}")).collect();
        assert_eq!(names[..94], listed);
        assert_eq!(
            names[94..],
            ["find_tools", "s__900", "s__800", "s__700", "read_result"]
        );
        let offer = chosen(tools(1000), 128, &messages);
        assert_eq!(offer.others.len(), 1000 - 94 - 3);
    }

    #[test]
    fn of_too_many_found_tools_the_oldest_leave() {
        // Room for seven tools: three listed, `find_tools`, and three found.
        let messages = [
            step(1, "find_tools", &["s__10", "s__11", "s__12"]),
            step(2, "s__10", &[]),
            step(3, "find_tools", &["s__13", "s__14"]),
        ];
        let names = offered(100, 8, &messages);
        assert_eq!(names[..3], ["s__0", "s__1", "s__2"]);
        assert_eq!(
            names[3..],
            ["find_tools", "s__10", "s__13", "s__14", "read_result"]
        );
        // An answer with more tools than have room: the best stay.
        let names = offered(
            100,
            8,
            &[step(1, "find_tools", &["s__20", "s__21", "s__22", "s__23"])],
        );
        assert_eq!(names[4..7], ["s__20", "s__21", "s__22"]);
    }

    #[test]
    fn a_failed_search_and_a_foreign_result_find_no_tool() {
        let mut failed = step(1, "find_tools", &["s__50"]);
        failed.tool_results[0].is_error = true;
        let foreign = step(2, "s__1", &["s__60"]);
        let names = offered(100, 8, &[failed, foreign]);
        assert!(!names.contains(&"s__50".to_owned()) && !names.contains(&"s__60".to_owned()));
    }

    #[test]
    fn a_tool_that_the_provider_would_refuse_leaves_its_room_to_the_next() {
        let mut all = tools(100);
        all[0].parameters = json!({"type": "string"});
        all.push(tool("delegate"));
        let offer = chosen(all, 8, &[]);
        let names: Vec<&str> = offer
            .offered
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        assert_eq!(
            names,
            ["delegate", "s__1", "s__2", "find_tools", "read_result"]
        );
        assert_eq!(offer.unfit[0].0.name, "s__0");
        assert_eq!(offer.unfit[0].1, Unfit::NoObject);
    }
}
