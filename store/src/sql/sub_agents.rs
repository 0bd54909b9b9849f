//! Texts about sub-agents and the tree of executions.

use super::Text;

/// execution, conversation.
pub(crate) const BEGUN_SUB_AGENT: &str = "SELECT e.id, e.message_id, e.status, e.steps, e.started_at, e.agent_hash, \
     d.definition FROM agent_executions e JOIN agent_definitions d ON d.hash = e.agent_hash \
     WHERE e.id = $1 AND e.conversation_id = $2";

/// execution, conversation. What its calls of `delegate` depend on.
pub const DELEGATOR: &str = "SELECT p.depth, p.root_execution_id, d.definition, o.definition AS root_definition, \
     (SELECT COUNT(*) - 1 FROM agent_executions s WHERE s.root_execution_id = p.root_execution_id) AS sub_agents \
     FROM agent_executions p JOIN agent_definitions d ON d.hash = p.agent_hash \
     JOIN agent_executions r ON r.id = p.root_execution_id JOIN agent_definitions o ON o.hash = r.agent_hash \
     WHERE p.id = $1 AND p.conversation_id = $2";

/// id, conversation, message, parent execution, root execution, depth, call, agent, hash, now.
pub(crate) const INSERT_SUB_AGENT: &str = "INSERT INTO agent_executions (id, conversation_id, message_id, \
     parent_execution_id, root_execution_id, depth, parent_tool_call_id, agent, agent_hash, status, started_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'running', $10)";

/// conversation, execution of a sub-agent. The call that started it, locked as for an observe.
pub(crate) const DELEGATION: Text = locking!(
    "SELECT started_at, ",
    tool_columns!(),
    " FROM tool_execution_records WHERE conversation_id = $1 \
     AND call_id = (SELECT parent_tool_call_id FROM agent_executions WHERE id = $2)"
);

/// conversation, tool execution, status, is error, duration, now, result, full result.
pub(crate) const END_DELEGATION: &str = "UPDATE tool_execution_records SET status = $3, is_error = $4, \
     duration_ms = $5, finished_at = $6, result = $7, full_result = $8 WHERE conversation_id = $1 AND execution_id = $2";

macro_rules! executions {
    ($($condition:tt)*) => {
        concat!(
            "SELECT e.id, e.message_id, e.agent, e.status, e.depth, e.parent_execution_id, e.root_execution_id, \
             e.steps, e.error_code, e.started_at, e.finished_at, \
             t.execution_id, t.call_id, t.tool_name, t.tool_input, \
             (SELECT CAST(COALESCE(SUM(k.input_tokens), 0) AS BIGINT) FROM execution_checkpoints k \
              WHERE k.agent_execution_id = e.id AND k.checkpoint_type = 'llm_complete') AS input_tokens, \
             (SELECT CAST(COALESCE(SUM(k.output_tokens), 0) AS BIGINT) FROM execution_checkpoints k \
              WHERE k.agent_execution_id = e.id AND k.checkpoint_type = 'llm_complete') AS output_tokens \
             FROM agent_executions e LEFT JOIN tool_execution_records t \
             ON t.conversation_id = e.conversation_id AND t.call_id = e.parent_tool_call_id \
             WHERE e.conversation_id = $1 \
             AND EXISTS (SELECT 1 FROM conversations WHERE conversations.id = $1 AND ",
            visible!("$2", "$3"),
            ") AND ",
            $($condition)*
        )
    };
}

/// conversation, tenant, owner, started at, id, limit.
pub const EXECUTIONS: &str =
    executions!("(e.started_at, e.id) > ($4, $5) ORDER BY e.started_at, e.id LIMIT $6");

/// conversation, tenant, owner, id.
pub(crate) const EXECUTION: &str = executions!("e.id = $4");
