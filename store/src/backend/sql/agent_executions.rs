//! Texts about agent executions (turns and sub-agents) and about their pinned agent definitions.

use chrono::{DateTime, Utc};
use everturn_proto::words::AgentExecutionStatus;

use super::{
    super::{dialect::Parts, write::values::Values},
    SqlText,
};

/// `$1` agent execution, `$2` conversation. Returns the turn `$1`, if it has begun, and every other turn with the
/// status running.
pub(crate) const BEGUN_TURNS: &str = "SELECT e.id, e.message_id, e.status, e.steps, e.started_at, e.agent_hash, \
     d.definition \
     FROM (SELECT * FROM agent_executions WHERE id = $1 AND conversation_id = $2 \
           UNION ALL \
           SELECT * FROM agent_executions WHERE conversation_id = $2 AND status = 'running' \
            AND parent_execution_id IS NULL AND id <> $1) AS e \
     JOIN agent_definitions d ON d.hash = e.agent_hash ORDER BY e.started_at, e.id";

/// `$1` agent execution, `$2` conversation.
pub(crate) const BEGUN_SUB_AGENT: &str = "SELECT e.id, e.message_id, e.status, e.steps, e.started_at, e.agent_hash, \
     d.definition FROM agent_executions e JOIN agent_definitions d ON d.hash = e.agent_hash \
     WHERE e.id = $1 AND e.conversation_id = $2";

/// `$1` hash, `$2` definition.
pub(crate) const INSERT_DEFINITION: &str = "INSERT INTO agent_definitions (hash, definition) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";

/// `$1` hash.
pub(crate) const DEFINITION: &str = "SELECT definition FROM agent_definitions WHERE hash = $1";

/// A row of `agent_executions` to insert. The agent execution has the status running from the insert on.
pub(crate) struct InsertAgentExecution<'a> {
    pub(crate) id: &'a str,
    pub(crate) conversation_id: &'a str,
    pub(crate) message_id: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) agent_hash: &'a str,
    pub(crate) now: DateTime<Utc>,
}

/// The position of a sub-agent in the tree of agent executions.
pub(crate) struct Parentage<'a> {
    pub(crate) parent_execution_id: &'a str,
    pub(crate) root_execution_id: &'a str,
    pub(crate) depth: u32,
    /// The model's id of the call that started the sub-agent.
    pub(crate) call_id: &'a str,
}

impl InsertAgentExecution<'_> {
    /// Only a turn's row has the tenant, because a turn counts towards the tenant's limit and a sub-agent does not.
    const OF_TURN: &'static str = "INSERT INTO agent_executions \
         (id, conversation_id, message_id, agent, agent_hash, started_at, tenant_id, root_execution_id, depth, status) \
         VALUES ($1, $2, $3, $4, $5, $6, (SELECT tenant_id FROM conversations WHERE id = $2), $1, 0, $7)";

    const OF_SUB_AGENT: &'static str = "INSERT INTO agent_executions \
         (id, conversation_id, message_id, agent, agent_hash, started_at, \
         parent_execution_id, root_execution_id, depth, parent_tool_call_id, status) \
         VALUES ($1, $2, $3, $4, $5, $6, $8, $9, $10, $11, $7)";

    /// Adds the turn's own agent execution.
    pub(crate) fn add_turn_to(&self, parts: &mut Parts) {
        parts.add(Self::OF_TURN, |values| {
            self.bind(values);
        });
    }

    /// Adds a sub-agent's agent execution.
    pub(crate) fn add_sub_agent_to(&self, parts: &mut Parts, parentage: &Parentage<'_>) {
        parts.add(Self::OF_SUB_AGENT, |values| {
            self.bind(values)
                .bind(parentage.parent_execution_id)
                .bind(parentage.root_execution_id)
                .bind(i64::from(parentage.depth))
                .bind(parentage.call_id);
        });
    }

    fn bind<'v, 'a>(&self, values: &'v mut Values<'a>) -> &'v mut Values<'a> {
        values
            .bind(self.id)
            .bind(self.conversation_id)
            .bind(self.message_id)
            .bind(self.agent)
            .bind(self.agent_hash)
            .bind(self.now)
            .bind(AgentExecutionStatus::Running.as_str())
    }
}

/// `$1` agent execution, `$2` conversation, `$3` generation, `$4` status running.
pub(crate) const HOLDS_CLAIM: &str = "SELECT EXISTS (SELECT 1 FROM agent_executions \
     WHERE id = $1 AND conversation_id = $2 AND status = $4 AND generation <= $3)";

/// `$1` agent execution, `$2` conversation.
pub(crate) const STATUS_OF_EXECUTION: &str =
    "SELECT status FROM agent_executions WHERE id = $1 AND conversation_id = $2";

/// `$1` agent execution, `$2` conversation, `$3` event id. Selects the status of the agent execution, and the event's
/// sequence number if the event is stored.
pub(crate) const SAVE_STATE: &str = "SELECT status, steps, message_id, \
     (SELECT sequence_number FROM agent_execution_events WHERE id = $3) AS stored_sequence \
     FROM agent_executions WHERE id = $1 AND conversation_id = $2";

/// `$1` agent execution, `$2` steps, `$3` status, `$4` error code, `$5` finished at.
pub(crate) const ADVANCE_EXECUTION: &str = "UPDATE agent_executions SET steps = $2, status = $3, error_code = $4, \
     finished_at = $5 WHERE id = $1";

/// `$1` agent execution of a sub-agent, `$2` conversation. Selects the sub-agent's start, its parent, and the number of
/// the parent's saved steps.
pub(crate) const PARENT: &str = "SELECT s.started_at, s.parent_execution_id, p.steps \
     FROM agent_executions s JOIN agent_executions p ON p.id = s.parent_execution_id \
     WHERE s.id = $1 AND s.conversation_id = $2";

/// `$1` agent execution, `$2` conversation. Selects the data that decides about the agent execution's `delegate` calls.
pub(crate) const DELEGATOR: &str = "SELECT p.depth, p.root_execution_id, d.definition, o.definition AS root_definition, \
     (SELECT COUNT(*) - 1 FROM agent_executions s WHERE s.root_execution_id = p.root_execution_id) AS sub_agents \
     FROM agent_executions p JOIN agent_definitions d ON d.hash = p.agent_hash \
     JOIN agent_executions r ON r.id = p.root_execution_id JOIN agent_definitions o ON o.hash = r.agent_hash \
     WHERE p.id = $1 AND p.conversation_id = $2";

/// Makes the sum of a column over the replies of the agent execution `e`.
macro_rules! sum_of_replies {
    ($column:literal, $name:literal) => {
        concat!(
            "(SELECT CAST(COALESCE(SUM(k.",
            $column,
            "), 0) AS BIGINT) FROM execution_checkpoints k \
             WHERE k.agent_execution_id = e.id AND k.checkpoint_type = 'llm_complete') AS ",
            $name
        )
    };
}

/// Makes the sums over the replies of the agent execution `e`, for texts in which a join cannot refer to `e`.
macro_rules! sums_of_replies {
    () => {
        concat!(
            sum_of_replies!("input_tokens", "spent_input"),
            ", ",
            sum_of_replies!("output_tokens", "spent_output"),
            ", ",
            sum_of_replies!("cached_tokens", "spent_cached"),
            ", ",
            sum_of_replies!("cache_write_tokens", "spent_cache_write"),
            ", ",
            sum_of_replies!("reasoning_tokens", "spent_reasoning"),
            ", (SELECT SUM(k.cost_nano) FROM execution_checkpoints k \
             WHERE k.agent_execution_id = e.id AND k.checkpoint_type = 'llm_complete') AS spent_nano"
        )
    };
}

macro_rules! agent_executions {
    ($condition:literal) => {
        SqlText {
            sqlite: agent_executions!(sums_of_replies!(), "", $condition),
            postgres: agent_executions!(
                "s.*",
                concat!(
                    " CROSS JOIN LATERAL (SELECT ",
                    spent!(),
                    " FROM execution_checkpoints k \
                     WHERE k.agent_execution_id = e.id AND k.checkpoint_type = 'llm_complete') AS s"
                ),
                $condition
            ),
        }
    };
    ($sums:expr, $join:expr, $condition:literal) => {
        concat!(
            "SELECT e.id, e.message_id, e.agent, e.status, e.depth, e.parent_execution_id, e.root_execution_id, \
             e.steps, e.error_code, e.started_at, e.finished_at, \
             t.execution_id, t.call_id, t.tool_name, t.tool_input, ",
            $sums,
            " FROM agent_executions e LEFT JOIN tool_execution_records t \
             ON t.conversation_id = e.conversation_id AND t.call_id = e.parent_tool_call_id",
            $join,
            " WHERE e.conversation_id = $1 AND ",
            of_visible_conversation!(),
            " AND ",
            $condition
        )
    };
}

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` started at, `$5` id, `$6` limit.
pub(crate) const AGENT_EXECUTIONS: SqlText =
    agent_executions!("(e.started_at, e.id) > ($4, $5) ORDER BY e.started_at, e.id LIMIT $6");

/// `$1` to `$6` are as in [`AGENT_EXECUTIONS`], and `$7` is the message.
pub(crate) const AGENT_EXECUTIONS_OF_TURN: SqlText = agent_executions!(
    "(e.started_at, e.id) > ($4, $5) AND e.message_id = $7 ORDER BY e.started_at, e.id LIMIT $6"
);

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` id.
pub(crate) const AGENT_EXECUTION: SqlText = agent_executions!("e.id = $4");

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` agent execution, `$5` limit. Selects the newest replies of models.
pub(crate) const STEP_USAGE: &str = concat!(
    "SELECT k.step_number AS step, k.generation, k.execution_state ->> 'model' AS model, k.created_at AS stored_at, \
     k.input_tokens AS spent_input, k.output_tokens AS spent_output, k.cached_tokens AS spent_cached, \
     k.cache_write_tokens AS spent_cache_write, k.reasoning_tokens AS spent_reasoning, k.cost_nano AS spent_nano \
     FROM execution_checkpoints k WHERE k.conversation_id = $1 AND ",
    of_visible_conversation!(),
    " AND k.agent_execution_id = $4 AND k.checkpoint_type = 'llm_complete' AND k.generation > 0 \
     ORDER BY k.step_number DESC LIMIT $5"
);

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` agent execution, `$5` limit. Selects the newest checkpoints.
pub(crate) const CHECKPOINTS: &str = concat!(
    "SELECT k.checkpoint_type, k.step_number AS step, NULLIF(k.execution_id, '') AS execution_id, k.generation, k.created_at AS stored_at \
     FROM execution_checkpoints k WHERE k.conversation_id = $1 AND ",
    of_visible_conversation!(),
    " AND k.agent_execution_id = $4 ORDER BY k.step_number DESC, k.created_at DESC, k.id DESC LIMIT $5"
);

/// `$1` conversation, `$2` tenant, `$3` owner, `$4` agent execution, `$5` limit. Selects the newest tool calls.
pub(crate) const TOOL_EXECUTIONS: &str = concat!(
    "SELECT t.execution_id, t.call_id, t.tool_name, t.step, t.status, t.effect, t.approval, t.attempt AS attempts, \
     t.is_error, t.timeout_ms, t.duration_ms, t.created_at AS asked_at, t.started_at, t.finished_at \
     FROM tool_execution_records t WHERE t.conversation_id = $1 AND ",
    of_visible_conversation!(),
    " AND t.agent_execution_id = $4 ORDER BY t.step DESC, t.call_index DESC LIMIT $5"
);
