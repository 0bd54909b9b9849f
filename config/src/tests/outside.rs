//! Approvals, and tools that run at the client.

use everturn_proto::words::{AnswersFrom, ApprovalBy, OnDefinitionChange};

use super::{PROVIDER, assert_errors, parse};

#[test]
fn tools_may_ask_a_person_or_the_client() {
    let text = format!(
        "{PROVIDER}[client_tools.open_file]\ndescription = \"Reads a file.\"\neffect = \"read\"\n\
         input = {{ required = [\"path\"] }}\n\
         [agents.default]\nprovider = \"main\"\nmodel = \"m\"\n\
         tools = [\"open_file\", {{ name = \"calculate\", approval = \"always\" }}, \
         {{ name = \"current_time\", approval = {{ when = {{ required = [\"zone\"] }}, timeout = \"2h\" }} }}, \
         {{ name = \"work_plan\", approval = \"never\" }}]\n"
    );
    let config = parse(&text, &[("KEY", "secret")]).unwrap();
    let [client, always, rule, never] = &config.agents[0].tools[..] else {
        panic!("{config:?}")
    };
    assert_eq!(
        (client.kind.as_str(), client.timeout_ms),
        ("client", 3_600_000)
    );
    let policy = |tool: &everturn_proto::turn::AgentTool| {
        let policy = tool.approval.as_ref()?;
        Some((
            policy.when.as_ref().map(|when| when.as_str().to_owned()),
            policy.timeout_s,
        ))
    };
    assert_eq!(policy(always), Some((None, 72 * 3600)));
    assert_eq!(
        policy(rule),
        Some((Some(r#"{"required":["zone"]}"#.to_owned()), 7200))
    );
    assert_eq!((policy(never), policy(client)), (None, None));
    let spec = &config.described_tools[0].spec;
    assert_eq!(
        (spec.effect.as_str(), &spec.parameters["type"]),
        ("read", &"object".into())
    );
}

#[test]
fn approvals_and_changed_tools_have_policies() {
    let agent = |tool: &str| {
        format!(
            "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [{tool}]\n"
        )
    };
    let parse = |text: &str| parse(text, &[("KEY", "secret")]).unwrap();
    let config = parse(&agent(
        r#"{ name = "calculate", approval = { by = "other" }, on_definition_change = "ask" }"#,
    ));
    let tool = &config.agents[0].tools[0];
    let policy = tool.approval.as_ref().unwrap();
    assert_eq!(policy.approvers(), ApprovalBy::Other);
    assert_eq!(tool.policy_on_definition_change(), OnDefinitionChange::Ask);
    assert_eq!(config.needs_other(), Some(("default", "calculate")));
    assert_eq!(config.approval_answers, AnswersFrom::Gateway);
    let config = parse(&(agent("\"calculate\"") + "[approvals]\nallow_signal = true\n"));
    assert_eq!(config.approval_answers, AnswersFrom::Engine);
    assert_eq!(config.needs_other(), None);
    // Whoever says nothing has the same definition as before.
    let same = parse(&agent(
        r#"{ name = "calculate", approval = { by = "anyone" }, on_definition_change = "run" }"#,
    ));
    let before = parse(&agent(r#"{ name = "calculate", approval = "always" }"#));
    assert_eq!(same.agents[0], before.agents[0]);
    assert_errors(&[
        (
            agent("{ name = \"calculate\", approval = { by = \"boss\" } }"),
            "\"anyone\" or \"other\"",
        ),
        (
            agent("{ name = \"calculate\", on_definition_change = \"maybe\" }"),
            "\"run\", \"ask\" or \"refuse\"",
        ),
        (
            agent("{ name = \"look\", on_definition_change = \"ask\" }")
                + "[client_tools.look]\ndescription = \"x\"\n",
            "is for tools that a worker runs itself",
        ),
    ]);
}

#[test]
fn wrong_approvals_and_client_tools_are_explained() {
    let agent = |tool: &str| {
        format!(
            "{PROVIDER}[agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [{tool}]\n"
        )
    };
    assert_errors(&[
        (
            agent("{ name = \"calculate\", approval = \"sometimes\" }"),
            "write `approval` as",
        ),
        (
            agent("{ name = \"calculate\", approval = { timeout = \"32days\" } }"),
            "from 1s to 31days",
        ),
        (
            agent("{ name = \"calculate\", approval = { wen = {} } }"),
            "an approval has no `wen`",
        ),
        (
            agent("{ name = \"calculate\", approval = { when = { type = 5 } } }"),
            "not a JSON schema",
        ),
        (
            format!(
                "{}[client_tools.calculate]\ndescription = \"x\"\n",
                agent("")
            ),
            "there already is a tool `calculate`",
        ),
        (
            format!("{}[client_tools.new]\ndescription = \" \"\n", agent("")),
            "must not be empty",
        ),
        (
            format!(
                "{}[client_tools.new]\ndescription = \"x\"\ninput = {{ type = 5 }}\n",
                agent("")
            ),
            "not a JSON schema",
        ),
    ]);
}
