//! Agents that are tools with names of their own.

use super::{PROVIDER, assert_errors, parse};

#[test]
fn an_agent_may_be_a_tool_with_a_name_of_its_own() {
    let file = |tool: &str| {
        format!(
            "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [{tool}]\n\
             [agents.researcher]\nprovider = \"main\"\nmodel = \"m\"\n"
        )
    };
    let text = file(
        r#"{ name = "research", agent = "researcher", description = "Finds sources.", input = { required = ["topic"] }, approval = "always" }"#,
    );
    let config = parse(&text, &[("KEY", "secret")]).unwrap();
    let [tool] = &config.agents[0].tools[..] else {
        panic!("{config:?}")
    };
    assert_eq!(
        (tool.name.as_str(), tool.kind.as_str()),
        ("research", "delegate")
    );
    assert_eq!(tool.delegates, ["researcher"]);
    assert!(tool.approval.is_some());
    let as_tool = tool.as_tool.as_ref().unwrap();
    assert_eq!(as_tool.description, "Finds sources.");
    let schema = as_tool.parameters.as_ref().unwrap().as_str();
    assert_eq!(schema, r#"{"required":["topic"],"type":"object"}"#);
    assert_errors(&[
        (
            file(r#"{ name = "research", agent = "nobody" }"#),
            "there is no agent `nobody`",
        ),
        (
            file(r#"{ name = "calculate", agent = "researcher" }"#),
            "there already is a tool `calculate`",
        ),
        (
            file(r#"{ name = "a__b", agent = "researcher" }"#),
            "the name of a tool with `agent`",
        ),
        (
            file(r#"{ name = "research", agent = "researcher", timeout = "5s" }"#),
            "set `turn_timeout` of the agent",
        ),
        (
            file(r#"{ name = "research", agent = "researcher", input = { type = 5 } }"#),
            "not a JSON schema",
        ),
        (
            file(r#"{ name = "calculate", description = "x" }"#),
            "belong to a tool with `agent`",
        ),
    ]);
}
