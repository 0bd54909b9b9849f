/** The tree of a turn's agent executions, each with what is recorded of it. */

import type { api, Conversation } from "everturn-client";
import { useEffect, useState } from "preact/hooks";
import { Fault, visible } from "../shown";
import { texts } from "../texts";
import { Calls } from "./calls";
import { clock, took, tokenText } from "./format";
import { FoldedJson } from "./json";
import type { Records } from "./records";
import { Table } from "./table";

interface ExecutionsProps {
  chat: Conversation;
  records: Records;
  now: number;
}

export function Executions({ chat, records, now }: ExecutionsProps) {
  const known = new Set(records.executions.map((execution) => execution.id));
  const children = (parent: string | null) =>
    records.executions.filter(({ parent_execution_id: of }) => (parent === null ? of === null || !known.has(of) : of === parent));
  const branch = (parent: string | null) => {
    const found = children(parent);
    if (found.length === 0) return null;
    return (
      <ul>
        {found.map((execution) => (
          <li key={execution.id} data-execution={execution.id}>
            <Execution chat={chat} execution={execution} record={records.details.get(execution.id)} now={now} />
            {branch(execution.id)}
          </li>
        ))}
      </ul>
    );
  };
  return (
    <section class="executions" aria-label={texts.developer.executions}>
      <h3>{texts.developer.executions}</h3>
      {branch(null)}
    </section>
  );
}

interface ExecutionProps {
  chat: Conversation;
  execution: api.AgentExecution;
  record: api.AgentExecutionDetail | undefined;
  now: number;
}

function Execution({ chat, execution, record, now }: ExecutionProps) {
  const [isOpen, setOpen] = useState(false);
  const { found, error } = useRecord(chat, execution.id, isOpen && !record);
  const ended = execution.finished_at ? Date.parse(execution.finished_at) : now;
  const parts = [
    execution.error_code ? visible(execution.error_code) : (texts.developer.status[execution.status] ?? execution.status),
    took(ended - Date.parse(execution.started_at)),
    texts.developer.calls(execution.steps),
    tokenText(execution.usage as never),
    execution.cost_usd ? `$${execution.cost_usd}` : "",
    execution.parentActToolCall ? texts.triggeredBy(visible(execution.parentActToolCall.name)) : "",
  ];
  const shown = record ?? found;
  return (
    <details onToggle={(event) => event.currentTarget === event.target && setOpen(event.currentTarget.open)}>
      <summary>
        <strong>{visible(execution.agent)}</strong> <span class="hint">{parts.filter((part) => part !== "").join(" · ")}</span>
      </summary>
      {isOpen && (
        <div class="nested">
          <p class="hint">
            <code>{execution.id}</code>{" "}
            {execution.workflow_url && <a href={execution.workflow_url} target="_blank" rel="noopener">{texts.developer.temporal}</a>}
          </p>
          {error !== undefined && <p role="alert"><Fault error={error} /></p>}
          {!shown && error === undefined && <p class="hint">{texts.loading}</p>}
          {shown && <Record record={shown} />}
          <Calls chat={chat} executionId={execution.id} version={`${shown?.step_usage.length ?? 0}/${execution.status}`} />
        </div>
      )}
    </details>
  );
}

/** The record of an execution that is not among those that are read without being asked for. */
function useRecord(chat: Conversation, id: string, isNeeded: boolean) {
  const [found, setFound] = useState<api.AgentExecutionDetail>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!isNeeded) return undefined;
    const stop = new AbortController();
    chat.execution(id, stop.signal).then(setFound, (caught: unknown) => !stop.signal.aborted && setError(caught));
    return () => stop.abort();
  }, [chat, id, isNeeded]);
  return { found, error };
}

function Record({ record }: { record: api.AgentExecutionDetail }) {
  const words = texts.developer;
  return (
    <>
      <Table
        label={words.calls(record.step_usage.length)}
        columns={[words.step, words.generation, words.model, `${words.tokensIn} → ${words.tokensOut}`, words.cost, words.time]}
        rows={record.step_usage.map((step) => [
          step.step, step.generation, visible(step.model), tokenText(step.usage as never), step.cost_usd ? `$${step.cost_usd}` : "", clock(step.stored_at),
        ])}
      />
      <Table
        label={words.tools}
        columns={[words.step, words.name, words.outcome, words.generation, words.effect, words.takes, words.time]}
        rows={record.tool_executions.map((tool) => [
          tool.step ?? "–", visible(tool.tool_name), tool.approval ? `${tool.status} (${tool.approval})` : tool.status,
          tool.attempts, tool.effect, took(tool.duration_ms), clock(tool.asked_at),
        ])}
      />
      <Table
        label={words.checkpoints}
        columns={[words.step, words.type, words.generation, words.name, words.time]}
        rows={record.checkpoints.map((point) => [
          point.step, point.type, point.generation, visible(toolOf(record, point.execution_id)), clock(point.stored_at),
        ])}
      />
      <FoldedJson label={words.record} value={record} />
    </>
  );
}

function toolOf(record: api.AgentExecutionDetail, executionId: string | null): string {
  if (executionId === null) return "";
  return record.tool_executions.find((tool) => tool.execution_id === executionId)?.tool_name ?? executionId;
}
