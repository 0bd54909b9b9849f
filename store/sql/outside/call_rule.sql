-- Selects the rule and the input of a call, and whether the person who answers may have asked for the call: the person
-- owns the conversation, the person has sent a message of the call's turn, or the sender of a message is unknown. The
-- messages of a retried turn belong to the turn.
-- Index: key of tool_execution_records, key of messages, messages_by_thread, key of conversations
--
-- :conversation_id text
-- :execution_id text
-- :person text  The person who answers.
SELECT
    t.approval_rule, t.tool_input,
    EXISTS (
        SELECT 1 FROM conversations c
        WHERE c.id = t.conversation_id AND c.owner_id = :person AND c.owner_id <> ''
    ) OR EXISTS (
        SELECT 1 FROM messages m
        JOIN messages f ON f.conversation_id = m.conversation_id AND f.id = t.message_id
        WHERE m.conversation_id = t.conversation_id AND m.thread = '' AND m.role IN ('user', 'retry')
            AND m.sequence_number >= COALESCE((
                SELECT o.sequence_number FROM messages o
                WHERE o.conversation_id = f.conversation_id AND f.role = 'retry' AND o.id = f.content
            ), f.sequence_number) AND (m.sent_by IS NULL OR m.sent_by = :person)
    ) AS may_have_asked
FROM tool_execution_records t
WHERE t.conversation_id = :conversation_id AND t.execution_id = :execution_id
