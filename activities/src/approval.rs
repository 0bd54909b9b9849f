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
/// allowed fewer calls. So does a call with a number that the rule cannot compare exactly: rounded, the number may be on
/// the other side of a limit.
fn needs_approval(policy: &ApprovalPolicy, input: &Json) -> bool {
    let Some(when) = &policy.when else {
        return true;
    };
    if input.inexact_number().is_some() {
        return true;
    }
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
        let with_rule = |rule: &str| {
            with(Some(ApprovalPolicy {
                when: Some(json(rule)),
                timeout_s: 9,
                ..ApprovalPolicy::default()
            }))
        };
        let exclusive =
            with_rule(r#"{"type":"object","properties":{"amount":{"exclusiveMinimum":100}}}"#);
        let limit = with_rule(r#"{"properties":{"amount":{"minimum":9007199254740993}}}"#);
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
            // Rounded to 64 bits, the amounts are 100 and no number.
            (&by_rule, r#"{"amount":99.99999999999999999999}"#, Some(9)),
            (
                &exclusive,
                r#"{"amount":100.00000000000000000001}"#,
                Some(9),
            ),
            (&exclusive, r#"{"amount":100.0}"#, None),
            (&exclusive, r#"{"amount":1e400}"#, Some(9)),
            (&exclusive, r#"{"amount":12345678901234567890123}"#, Some(9)),
            (&limit, r#"{"amount":9007199254740992}"#, None),
            (&limit, r#"{"amount":9007199254740993}"#, Some(9)),
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
