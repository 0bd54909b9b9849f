-- Selects the state of a call's approval, and the id of the stored answer if a gateway has noted the answer.
-- Index: key of tool_execution_records, key of approval_answers
--
-- :conversation_id text
-- :execution_id text
SELECT
    t.approval,
    (SELECT a.answer_id FROM approval_answers a
     WHERE a.conversation_id = :conversation_id AND a.execution_id = :execution_id AND a.is_saved) AS answer_id
FROM tool_execution_records t
WHERE t.conversation_id = :conversation_id AND t.execution_id = :execution_id
