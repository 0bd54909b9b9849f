/** The inbox of approvals: the calls of all conversations that wait for this person, the nearest deadline first. */

import { type api, ApiError } from "everturn-client";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApprovalCard, type Asked } from "./approval";
import { conversation, everturn } from "./everturn";
import { Icon } from "./icons";
import { addressOf } from "./route";
import { Fault, visible } from "./shown";
import { texts } from "./texts";

/** The most calls that the page shows. Further calls appear after earlier calls are answered. */
const MOST = 200;
/** Milliseconds between two readings, while somebody looks. */
const PERIOD_MS = 10_000;

interface InboxProps {
  list: { isOpen: boolean; open: () => void };
  onRefused: () => void;
}

export function Inbox({ list, onRefused }: InboxProps) {
  const { calls, error, read } = useCalls(onRefused);
  return (
    <main class="conversation inbox">
      <header class="heading">
        <button type="button" class="burger quiet round" aria-label={texts.list} aria-expanded={list.isOpen} onClick={list.open}><Icon name="list" /></button>
        <div><h2>{texts.inbox}</h2></div>
      </header>
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      {calls === undefined && error === undefined && <p class="hint">{texts.loading}</p>}
      {calls?.length === 0 && <p class="hint">{texts.inboxEmpty}</p>}
      <ul aria-label={texts.inbox}>
        {calls?.map((call) => <Waiting key={call.execution_id} call={call} onAnswered={read} />)}
      </ul>
    </main>
  );
}

/** One call: who asks for what, and the question. */
function Waiting({ call, onAnswered }: { call: api.InboxApproval; onAnswered: () => void }) {
  const { conversation_id: id, tool_name: toolName, title, agent } = call;
  return (
    <li class="item tool">
      <p class="line">
        <span class="what"><strong>{visible(title ?? toolName)}</strong> {title != null && <code class="brief">{visible(toolName)}</code>}</span>
        <bdi class="agent">{visible(agent)}</bdi>
        <a href={addressOf(id)}><bdi>{visible(id)}</bdi></a>
      </p>
      <ApprovalCard chat={conversation(id)} asked={askedAbout(call)} onAnswered={onAnswered} />
    </li>
  );
}

function askedAbout(call: api.InboxApproval): Asked {
  const { tool_name: toolName, input_text: inputText, expires_at, approval_by, proposals, question } = call;
  return { request: call, toolName, inputText, expiresAt: expires_at, by: approval_by, proposals, question };
}

/** Reads the calls now, after each answer, and again and again while the page is seen. */
function useCalls(onRefused: () => void) {
  const [calls, setCalls] = useState<readonly api.InboxApproval[]>();
  const [error, setError] = useState<unknown>();
  const stop = useRef<AbortController | undefined>(undefined);
  const read = () => {
    stop.current?.abort();
    const { signal } = (stop.current = new AbortController());
    first(everturn.approvals({ pageSize: MOST, signal })).then(
      (found) => {
        if (signal.aborted) return;
        setCalls(found);
        setError(undefined);
      },
      (caught: unknown) => {
        if (signal.aborted) return;
        if (caught instanceof ApiError && caught.status === 401) onRefused();
        setError(caught);
      },
    );
  };
  useEffect(() => {
    read();
    const look = () => document.visibilityState === "visible" && read();
    const timer = setInterval(look, PERIOD_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
      stop.current?.abort();
    };
  }, []);
  return { calls, error, read };
}

async function first(calls: AsyncGenerator<api.InboxApproval, void>): Promise<api.InboxApproval[]> {
  const found: api.InboxApproval[] = [];
  for await (const call of calls) {
    if (found.push(call) >= MOST) break;
  }
  return found;
}
