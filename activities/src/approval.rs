//! The tool calls that a person must approve.
//!
//! The decision is made once, when the model's reply becomes a plan, and is stored with the plan in the checkpoint.
//! Therefore a retry, a reset or a resume asks for the same approvals.

use everturn_proto::{
    Json,
    turn::{AgentTool, ApprovalPolicy},
};

/// The time to wait for an approval of a tool without a policy, in seconds: three days, as in a policy without a time.
pub(crate) const DEFAULT_TIMEOUT_S: u32 = 72 * 3600;

/// Returns the seconds within which a person must approve the call; `None` when the call needs no approval.
pub(crate) fn timeout_s(tool: Option<&AgentTool>, input: &Json) -> Option<u32> {
    let policy = tool?.approval.as_ref()?;
    needs_approval(policy, input).then(|| policy.timeout_s.max(1))
}

/// Returns whether the call needs an approval. With an unreadable rule every call needs one, because the rule may have
/// allowed fewer calls.
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
