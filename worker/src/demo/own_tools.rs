//! The agent's own tools: the demo model chooses a tool by the words of a message, without any rule about the tool.
//!
//! - A word of the tool's name counts 3, a choice of a property (`enum`) 2, and a word of the description or of a property's
//!   name 1. Words about actions, which many names have (`get`, `list`), count 1 in a name, and nothing elsewhere.
//! - The tool with the highest sum is called, from 2 on. With a sum of 1, the message must have all arguments.
//! - Of two tools with equal sums, the first tool is called.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    arguments,
    said::terms,
    wire::{Call, OfferedFunction, Request},
};

/// Tools with rules of their own, and a tool that only reads on.
const RULED: [&str; 5] = [
    "calculate",
    "current_time",
    "work_plan",
    "read_result",
    "find_tools",
];
/// Words about actions.
const ACTIONS: [&str; 14] = [
    "add", "ask", "create", "find", "get", "give", "list", "look", "make", "return", "search",
    "set", "show", "task",
];
/// The reply to a message that fits an own tool.
pub(super) enum Chosen {
    Call(Call),
    /// The tool, and required properties for which the message has no value.
    Lacks(String, Vec<String>),
}

/// Returns the call of the tool that fits the message best.
pub(super) fn choose(request: &Request, message: &str) -> Option<Chosen> {
    let said = terms(message);
    let mut best: Option<(u32, Chosen)> = None;
    for tool in own(request) {
        let sum = sum(tool, &said);
        if sum == 0 || best.as_ref().is_some_and(|(before, _)| *before >= sum) {
            continue;
        }
        let arguments = arguments::of(&tool.parameters, message);
        let is_whole = arguments.missing.is_empty();
        if sum < 2 && (!is_whole || arguments.has_rest || arguments.values.is_empty()) {
            continue;
        }
        let chosen = if is_whole {
            Chosen::Call(Call {
                tool: tool.name.clone(),
                arguments: arguments.values.into(),
            })
        } else {
            Chosen::Lacks(tool.name.clone(), arguments.missing)
        };
        best = Some((sum, chosen));
    }
    best.map(|(_, chosen)| chosen)
}

/// Returns the offered tools without a rule of their own.
pub(super) fn own(request: &Request) -> impl Iterator<Item = &OfferedFunction> {
    let offered = request.offered();
    offered.filter(|tool| !RULED.contains(&tool.name.as_str()))
}

/// Returns how well a tool fits the words of a message.
fn sum(tool: &OfferedFunction, said: &[String]) -> u32 {
    // The part before `__` names the server of the tool.
    let name = tool.name.rsplit("__").next().unwrap_or_default();
    let name = terms(name);
    let mut about = terms(&tool.description);
    let mut choices = Vec::new();
    let properties = tool.parameters["properties"].as_object();
    for (name, schema) in properties.into_iter().flatten() {
        about.extend(terms(name));
        let of_property = schema["enum"].as_array().into_iter().flatten();
        choices.extend(of_property.filter_map(Value::as_str).flat_map(terms));
    }
    let worth = |word: &String| {
        let is_action = ACTIONS.contains(&word.as_str());
        match (is_action, name.contains(word)) {
            (false, true) => 3,
            (true, true) => 1,
            (true, false) => 0,
            (false, false) if choices.contains(word) => 2,
            (false, false) => u32::from(about.contains(word)),
        }
    };
    let said: BTreeSet<_> = said.iter().collect();
    said.into_iter().map(worth).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{rules::reply, wire::Reply},
        *,
    };

    /// Returns the reply of a shop's agent.
    fn ask(messages: &Value) -> Reply {
        let order =
            json!({"properties": {"order_id": {"type": "string"}}, "required": ["order_id"]});
        let delegate = json!({"properties": {
            "agent": {"type": "string", "enum": ["lawyer", "painter"]}, "task": {"type": "string"},
        }, "required": ["agent", "task"]});
        let search = json!({"properties": {"query": {"type": "string"}}, "required": ["query"]});
        let tool = |name: &str, description: &str, parameters: Value| {
            json!({"type": "function", "function": {
                "name": name, "description": description, "parameters": parameters,
            }})
        };
        let tools = [
            tool("calculate", "Computes.", json!({})),
            tool(
                "shop__order_status",
                "Looks up the state of an order.",
                order.clone(),
            ),
            tool("shop__cancel_order", "Cancels an order.", order),
            tool("manual", "Searches the handbook. Fast.", search),
            tool(
                "delegate",
                "Gives a task to another agent and returns its answer.",
                delegate,
            ),
        ];
        let mut all =
            vec![json!({"role": "system", "content": "You work in a shop. Look orders up."})];
        all.extend(messages.as_array().unwrap().clone());
        let request = json!({"model": "demo", "messages": all, "tools": tools});
        reply(&serde_json::from_value(request).unwrap())
    }

    fn say(message: &str) -> Reply {
        ask(&json!([{"role": "user", "content": message}]))
    }

    #[test]
    fn words_of_names_and_descriptions_choose_the_tool() {
        for (message, tool, arguments) in [
            (
                "Where is my order 1007?",
                "shop__order_status",
                json!({"order_id": "1007"}),
            ),
            (
                "Please cancel order 1007.",
                "shop__cancel_order",
                json!({"order_id": "1007"}),
            ),
            (
                "What is the status of A-7 now, the order?",
                "shop__order_status",
                json!({"order_id": "A-7"}),
            ),
            (
                "Search the manual for returns",
                "manual",
                json!({"query": "returns"}),
            ),
            (
                "Handbook: “lost keys”",
                "manual",
                json!({"query": "lost keys"}),
            ),
            (
                "Ask the painter for a sunset.",
                "delegate",
                json!({"agent": "painter", "task": "a sunset"}),
            ),
        ] {
            let reply = say(message);
            assert_eq!(reply.text, format!("I need to call {tool}."), "{message}");
            assert_eq!(reply.calls.len(), 1, "{message}");
            assert_eq!(
                (reply.calls[0].tool.as_str(), &reply.calls[0].arguments),
                (tool, &arguments),
                "{message}"
            );
            assert_eq!(reply, say(message), "the same request gets the same reply");
        }
    }

    #[test]
    fn a_built_in_rule_comes_before_an_own_tool() {
        assert_eq!(say("The order costs 2 * 3").calls[0].tool, "calculate");
    }

    #[test]
    fn a_missing_argument_is_asked_for() {
        let reply = say("Where is my order?");
        assert!(reply.calls.is_empty());
        let begin =
            "I would call shop__order_status, but your message has no value for `order_id`.";
        assert!(reply.text.starts_with(begin), "{}", reply.text);
    }

    #[test]
    fn the_introduction_quotes_the_instructions_and_names_the_tools() {
        for message in [
            "Hello!",
            "Who are you?",
            "What can you do?",
            "Show me a joke about 7 cats",
        ] {
            let reply = say(message);
            assert!(reply.calls.is_empty(), "{message}: {reply:?}");
            let begin = "My instructions begin: “You work in a shop.” I am Everturn's demo model";
            assert!(reply.text.starts_with(begin), "{}", reply.text);
            let named = "`shop__order_status` (Looks up the state of an order)";
            assert!(reply.text.contains(named), "{}", reply.text);
        }
    }

    #[test]
    fn results_are_told_without_their_json() {
        let told = |result: &str| {
            let call =
                json!({"id": "c", "function": {"name": "shop__order_status", "arguments": "{}"}});
            ask(&json!([
                {"role": "user", "content": "Where is order 1?"},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": result},
            ]))
            .text
        };
        for (result, expected) in [
            (
                r#"{"result":"Order 1 is on its way."}"#,
                "Order 1 is on its way",
            ),
            (r#"{"days":2,"state":"sent"}"#, "days: 2, state: sent"),
            (r#"{"lines":[1,2]}"#, r#"{"lines":[1,2]}"#),
            ("[]", "[]"),
        ] {
            let begin = format!("The tool `shop__order_status` returned: {expected}. (I am");
            assert!(told(result).starts_with(&begin), "{}", told(result));
        }
    }
}
