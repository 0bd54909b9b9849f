//! Which tool calls a person must approve.
//!
//! This is decided once, where the model's reply becomes a plan, and kept with the plan in the checkpoint. So a retry,
//! a reset or a resume asks for the same approvals.

use everturn_proto::{
    Json,
    turn::{AgentTool, ApprovalPolicy},
};

/// How long an approval is waited for when the agent has no policy for the tool, in seconds: three days, as when a policy
/// says nothing.
pub(crate) const DEFAULT_TIMEOUT_S: u32 = 72 * 3600;

/// Seconds within which the call must be approved; `None` when it needs no approval.
pub(crate) fn timeout_s(tool: Option<&AgentTool>, input: &Json) -> Option<u32> {
    let policy = tool?.approval.as_ref()?;
    needs_approval(policy, input).then(|| policy.timeout_s.max(1))
}

/// A rule that cannot be read asks for an approval, because it is not known what it would have allowed.
fn needs_approval(policy: &ApprovalPolicy, input: &Json) -> bool {
    let Some(when) = &policy.when else {
        return true;
    };
    match jsonschema::options().offline().build(&when.to_value()) {
        Ok(rule) => rule.is_valid(&input.to_value()),
        Err(error) => {
            tracing::warn!(%error, "an approval rule is no JSON schema: every call asks");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn a_policy_asks_always_or_by_its_rule() {
        let with = |approval| AgentTool {
            approval,
            ..AgentTool::default()
        };
        let rule = r#"{"required":["amount"],"properties":{"amount":{"minimum":100}}}"#;
        let by_rule = with(Some(ApprovalPolicy {
            when: Some(json(rule)),
            timeout_s: 9,
            ..ApprovalPolicy::default()
        }));
        let always = with(Some(ApprovalPolicy {
            when: None,
            timeout_s: 0,
            ..ApprovalPolicy::default()
        }));
        let broken = with(Some(ApprovalPolicy {
            when: Some(json(r#"{"type":5}"#)),
            timeout_s: 9,
            ..ApprovalPolicy::default()
        }));
        for (tool, input, expected) in [
            (&with(None), r#"{"amount":500}"#, None),
            (&always, "{}", Some(1)),
            (&by_rule, r#"{"amount":99}"#, None),
            (&by_rule, r#"{"amount":100}"#, Some(9)),
            (&by_rule, r#"{"other":100}"#, None),
            (&broken, "{}", Some(9)),
        ] {
            assert_eq!(
                timeout_s(Some(tool), &json(input)),
                expected,
                "{tool:?} {input}"
            );
        }
        assert_eq!(timeout_s(None, &json("{}")), None);
    }
}
