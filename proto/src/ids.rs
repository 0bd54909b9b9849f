//! Deterministic ids (invariant 1, pure workflow): hashes of stable names. A replay, a retry, a resume and a `temporal
//! workflow reset` therefore make equal ids. An id is never random, and never made from the id of a run.

use prost::Message;
use sha2::{Digest, Sha256};

use crate::{
    Json,
    limits::MAX_ID_BYTES,
    turn::{AskedQuestion, ResolveApproval},
    words::Effect,
};

/// The most bytes of a fairness key (docs/engine.md, tenants share workers).
const MAX_FAIRNESS_KEY_BYTES: usize = 64;

/// Returns the workflow id of the conversation's turns: the engine guarantees at most one running turn for a workflow
/// id.
pub fn workflow_id(conversation_id: &str) -> String {
    format!("conversation-{conversation_id}")
}

/// Returns the workflow id of the sub-agent that a tool execution started.
pub fn sub_agent_workflow_id(conversation_id: &str, execution_id: &str) -> String {
    format!("{}/{execution_id}", workflow_id(conversation_id))
}

/// Returns the workflow id of the hooks that run after the turn of an agent execution.
pub fn after_turn_workflow_id(conversation_id: &str, agent_execution_id: &str) -> String {
    format!(
        "{}/after-{agent_execution_id}",
        workflow_id(conversation_id)
    )
}

/// The step number of the hooks that run after a turn. No step of the turn has this number.
pub const AFTER_TURN_STEP: u32 = u32::MAX;

/// Returns the id of the root agent execution in the turn that `message_id` starts.
pub fn root_agent_execution_id(conversation_id: &str, message_id: &str) -> String {
    format!("run_{}", hash(&["run", conversation_id, message_id], 16))
}

/// Returns the id of the agent execution of the sub-agent that a tool execution started.
pub fn sub_agent_execution_id(conversation_id: &str, execution_id: &str) -> String {
    format!(
        "run_{}",
        hash(&["sub-agent", conversation_id, execution_id], 16)
    )
}

/// Returns the id of the row in `messages` with a sub-agent's task.
pub fn task_message_id(agent_execution_id: &str) -> String {
    format!("msg_{}", hash(&["task", agent_execution_id], 16))
}

/// Returns the id of the row in `messages` that retries the failed turn of this agent execution. A failed
/// turn has one id of a retry, so a turn is retried at most once.
pub fn retry_message_id(agent_execution_id: &str) -> String {
    format!("msg_{}", hash(&["retry", agent_execution_id], 16))
}

/// Returns the id of a tool execution: unique in its conversation, and unchanged after a replay or a reset.
pub fn tool_execution_id(
    message_id: &str,
    agent_execution_id: &str,
    step: u32,
    call_index: usize,
) -> String {
    let (step, index) = (step.to_string(), call_index.to_string());
    format!(
        "exec_{}",
        hash(&[message_id, agent_execution_id, &step, &index], 12)
    )
}

/// Returns the id of the assistant's row in `messages` for a step.
pub fn assistant_message_id(agent_execution_id: &str, step: u32) -> String {
    format!(
        "msg_{}",
        hash(&["assistant", agent_execution_id, &step.to_string()], 16)
    )
}

/// Returns the id of a message that came without an id (typed into the CLI), made from its position in the chain of
/// runs. Every run of the chain has the same `first_execution_run_id`, also after a reset.
pub fn anonymous_message_id(first_execution_run_id: &str, ordinal: u32) -> String {
    format!(
        "msg_{}",
        hash(
            &["message", first_execution_run_id, &ordinal.to_string()],
            16
        )
    )
}

/// Returns the id of the message that the workflow `send-message` hands over. A reset and a retry of the workflow have an equal
/// `first_execution_run_id`, so the conversation gets the message once.
pub fn handed_over_message_id(workflow_id: &str, first_execution_run_id: &str) -> String {
    format!(
        "msg_{}",
        hash(&["handed over", workflow_id, first_execution_run_id], 16)
    )
}

/// Returns the name of the conversation of a workflow `send-message` without a given conversation.
pub fn conversation_name_of(workflow_id: &str) -> String {
    format!("sent-{}", hash(&["conversation", workflow_id], 16))
}

/// Returns the call id for a call without an id from the model, or with an id that is already used.
pub fn call_id(execution_id: &str) -> String {
    format!("call_{}", execution_id.trim_start_matches("exec_"))
}

/// Returns the idempotency key for a tool (invariant 6, done once).
pub fn idempotency_key(conversation_id: &str, message_id: &str, execution_id: &str) -> String {
    format!("{conversation_id}/{message_id}/{execution_id}")
}

/// Returns the key under which a provider caches the beginnings of a conversation's requests. The provider learns neither
/// the tenant nor the conversation from the key.
pub fn cache_key(tenant_id: &str, conversation_id: &str) -> String {
    format!(
        "everturn-{}",
        hash(&["cache", tenant_id, conversation_id], 32)
    )
}

/// Returns the hash that binds an approval to the call on a person's screen: the tool's name, the input in its
/// canonical form ([`Json::canonical`]), and the tool's definition at that time ([`tool_definition_hash`]). The hash is
/// the first 32 hex digits of the SHA-256 of `approval` and these three values, each value ended by a NUL.
pub fn approval_hash(tool_name: &str, tool_input: &Json, definition_hash: &str) -> String {
    let input = tool_input.canonical();
    hash(&["approval", tool_name, &input, definition_hash], 32)
}

/// Returns the hash that binds an answer to a tool's question: the first 32 hex digits of the SHA-256 of `question`, the
/// tool execution, and the question's number, message, schema in canonical form and URL, each value ended by a NUL.
pub fn question_hash(execution_id: &str, question: &AskedQuestion) -> String {
    let number = question.number.to_string();
    let schema = question.schema.as_ref().map(Json::canonical);
    let parts = [
        "question",
        execution_id,
        &number,
        &question.message,
        schema.as_deref().unwrap_or_default(),
        question.url(),
    ];
    hash(&parts, 32)
}

/// Returns the hash of a tool's definition. The hash is the first 32 hex digits of the SHA-256 of `definition`, the
/// name (which names the source of an MCP server's tool), the description, the schema in canonical form, and the
/// effect, each value ended by a NUL.
pub fn tool_definition_hash(
    name: &str,
    description: &str,
    schema: &Json,
    effect: &Effect,
) -> String {
    let schema = schema.canonical();
    let parts = ["definition", name, description, &schema, effect.as_str()];
    hash(&parts, 32)
}

/// Returns the id of an answer to an approval. The update with the answer has the id, and a gateway notes the sender of
/// the answer under the id. A repeated answer of a person has an equal id, so the engine takes the answer once. Any
/// different answer has a different id, so nobody can answer in another person's name.
pub fn answer_id(answer: &ResolveApproval) -> String {
    let digest = Sha256::digest(answer.encode_to_vec());
    format!("{}/{}", answer.execution_id, hex(&digest, 32))
}

/// Returns the key by which the engine divides the workers' time among tenants: the tenant's id, or a hash of an id
/// that is too long for the engine.
pub fn fairness_key(tenant_id: &str) -> String {
    if tenant_id.len() <= MAX_FAIRNESS_KEY_BYTES {
        tenant_id.to_owned()
    } else {
        hash(&["tenant", tenant_id], 32)
    }
}

/// Returns the hash by which the store keeps an agent definition, and by which a turn is pinned to the definition.
pub fn definition_hash(json: &str) -> String {
    hash(&["agent", json], 16)
}

/// Returns an opaque text for a caller: equal for equal parts, and without the parts themselves.
pub fn caller_hash(parts: &[&str]) -> String {
    hash(&[&["caller"], parts].concat(), 32)
}

/// Why a text is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// The text is empty or too long, or has a character that needs an escape in a path or in a workflow id.
    #[error("must have 1 to {max} letters, digits, `-`, `_`, `.` or `:`", max = MAX_ID_BYTES)]
    Characters,
    /// The text is `.` or `..`. Clients and proxies remove both from a path (RFC 3986, 5.2.4), so a request with the id
    /// would reach another endpoint.
    #[error("must not be `.` or `..`, because clients and proxies remove both from a path")]
    Dots,
}

/// Checks that an id may be part of a workflow id and of a URL path.
pub fn check(id: &str) -> Result<(), InvalidId> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    if id.is_empty() || id.len() > MAX_ID_BYTES || !id.bytes().all(is_plain) {
        return Err(InvalidId::Characters);
    }
    if matches!(id, "." | "..") {
        return Err(InvalidId::Dots);
    }
    Ok(())
}

/// True for an id that may be part of a workflow id and of a URL path.
pub fn is_valid(id: &str) -> bool {
    check(id).is_ok()
}

/// Returns the first `length` hex digits of the SHA-256 of the parts. A NUL ends every part, because ("a", "bc") and
/// ("ab", "c") must differ.
fn hash(parts: &[&str], length: usize) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    hex(&digest.finalize(), length)
}

/// Returns the first `length` hex digits of a digest.
fn hex(digest: &[u8], length: usize) -> String {
    let mut hex = String::with_capacity(2 * digest.len());
    for byte in digest {
        hex.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        hex.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
    }
    hex.truncate(length);
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_never_change() {
        // These strings are in stored histories and databases: a change here breaks replays and resumes.
        assert_eq!(tool_execution_id("m", "run_1", 0, 0), "exec_29d671da0aa4");
        assert_eq!(root_agent_execution_id("c", "m"), "run_60d47de58b20dc6c");
        assert_eq!(workflow_id("c"), "conversation-c");
    }

    #[test]
    fn each_tenant_has_a_fairness_key_that_the_engine_takes() {
        assert_eq!(fairness_key("acme"), "acme");
        let (one, other) = ("a".repeat(65), format!("{}b", "a".repeat(64)));
        assert_eq!(fairness_key(&one).len(), 32);
        assert_ne!(fairness_key(&one), fairness_key(&other));
    }

    #[test]
    fn only_the_same_answer_has_the_same_id() {
        let answer = |decision: &str| ResolveApproval {
            execution_id: "exec_1".to_owned(),
            decision: decision.to_owned(),
            ..ResolveApproval::default()
        };
        let approval = answer_id(&answer("approve"));
        assert!(approval.starts_with("exec_1/"), "{approval}");
        assert_eq!(approval, answer_id(&answer("approve")));
        assert_ne!(approval, answer_id(&answer("deny")));
    }

    #[test]
    fn an_approval_is_bound_to_tool_input_and_definition() {
        let json = |text: &str| Json::parse(text).unwrap();
        let definition = |description: &str, schema: &str, effect: &Effect| {
            tool_definition_hash("pay", description, &json(schema), effect)
        };
        let shown = definition("Pays.", r#"{"type":"object","a":1}"#, &Effect::Once);
        assert_eq!(
            shown,
            definition("Pays.", r#"{ "a": 1, "type": "object" }"#, &Effect::Once)
        );
        let others = [
            definition("Pays!", r#"{"type":"object","a":1}"#, &Effect::Once),
            definition("Pays.", r#"{"type":"object","a":2}"#, &Effect::Once),
            definition("Pays.", r#"{"type":"object","a":1}"#, &Effect::Read),
        ];
        assert!(others.iter().all(|other| *other != shown));
        let hash = approval_hash("pay", &json(r#"{"to":"Ada","n":1.0}"#), &shown);
        assert_eq!(
            hash,
            approval_hash("pay", &json(r#"{"n": 1.0, "to": "\u0041da"}"#), &shown)
        );
        for other in [
            approval_hash("give", &json(r#"{"to":"Ada","n":1.0}"#), &shown),
            approval_hash("pay", &json(r#"{"to":"Ada","n":1}"#), &shown),
            approval_hash("pay", &json(r#"{"to":"Ada","n":1.0}"#), &others[0]),
        ] {
            assert_ne!(hash, other);
        }
        assert_eq!(hash.len(), 32);
    }

    #[test]
    fn execution_ids_are_exec_and_12_hex_digits() {
        let id = tool_execution_id("m", "run_1", 3, 7);
        let hex = id.strip_prefix("exec_").unwrap();
        assert_eq!(hex.len(), 12);
        assert!(hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(
            tool_execution_id("m", "r1", 1, 11),
            tool_execution_id("m", "r1", 11, 1)
        );
        assert_ne!(
            root_agent_execution_id("a", "bc"),
            root_agent_execution_id("ab", "c")
        );
    }

    #[test]
    fn ids_of_clients_are_checked() {
        let longest = "x".repeat(MAX_ID_BYTES);
        for good in ["a", "0190-ab_c.d:e", "...", ".a", "..a", "a..", &longest] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let too_long = format!("{longest}x");
        for bad in ["", "a/b", "a b", "ü", "a\n", "%2e", &too_long] {
            assert_eq!(check(bad), Err(InvalidId::Characters), "{bad}");
        }
        for dots in [".", ".."] {
            assert_eq!(check(dots), Err(InvalidId::Dots), "{dots}");
        }
    }
}
