/** The conversation that is open: how its connection is, its timeline, and the composer. */

import { ApiError, type Conversation, type SendOptions, type Update } from "everturn-client";
import { useSyncExternalStore } from "preact/compat";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Composer, type Written } from "./composer";
import { conversation, everturn, useUpdate } from "./everturn";
import type { Shared } from "./hub";
import { DeveloperLink, DeveloperView } from "./developer/view";
import { costOf, money } from "./money";
import { addressOf, type DeveloperPlace } from "./route";
import { Fault } from "./shown";
import { texts } from "./texts";
import { Timeline } from "./timeline";

/** Milliseconds without news after which a turn counts as quiet. */
const QUIET_MS = 15_000;

interface ConversationProps {
  chat: Conversation;
  shared: Shared;
  /** What is open of its developer's view. */
  developer: DeveloperPlace | undefined;
  onRefused: () => void;
}

export function ConversationView({ chat, shared, developer, onRefused }: ConversationProps) {
  const [attempt, setAttempt] = useState(0);
  const update = useUpdate(chat, attempt, shared.isLive);
  useReport(chat, update, shared);
  const { state, connection } = update;
  const isRefused = connection.status === "closed" && connection.error instanceof ApiError && connection.error.status === 401;
  const hasEnded = isRefused || state.ended === "token_expired";
  useEffect(() => {
    if (hasEnded) onRefused();
  }, [hasEnded]);
  const send = async ({ content, ...options }: Written) => {
    // What became of it is shown with the message.
    void chat.post(content, options as SendOptions).catch(() => undefined);
  };
  return (
    <>
      <main class="conversation">
        <header class="heading"><Cost update={update} /><DeveloperLink id={chat.id} isOpen={developer !== undefined} /></header>
        <Timeline chat={chat} update={update} />
        <Status update={update} onRetry={() => setAttempt(attempt + 1)} />
        <Resume chat={chat} update={update} />
        <Composer
          id={chat.id}
          onSend={send}
          turn={state.turn}
          onStop={(turn) => chat.cancel({ messageId: turn })}
          isQuiet={developer !== undefined}
        />
      </main>
      {developer && <DeveloperView chat={chat} update={update} place={developer} />}
    </>
  );
}

/** What the turns of the conversation cost; nothing while no turn has a price. */
function Cost({ update: { state, hasOlder } }: { update: Update }) {
  const cost = useMemo(() => costOf(state.items), [state.items]);
  return <span class="hint cost">{cost !== undefined && texts.cost(money(cost), !hasOlder)}</span>;
}

/** Tells the hub whether this tab has all that the list knows of the conversation. */
function useReport(chat: Conversation, { state, connection }: Update, { rows, report }: Shared): void {
  const wasOpen = useRef(false);
  wasOpen.current ||= connection.status === "open";
  const hasFailed = connection.status === "closed" && connection.error !== undefined;
  const last = rows?.find((row) => row.id === chat.id)?.last_sequence ?? 0;
  const hasAll = wasOpen.current && (Number.parseInt(state.cursor, 10) || 0) >= last;
  const isBehind = !hasFailed && !hasAll;
  useEffect(() => report({ hasConversation: true, isBehind }), [isBehind]);
}

/** Where a conversation begins. It is created with its first message. */
export function NewConversation({ shared: { report } }: { shared: Shared }) {
  useEffect(() => report({ hasConversation: false, isBehind: false }), []);
  const send = async ({ content, ...options }: Written) => {
    const { id } = await everturn.create({ id: crypto.randomUUID?.() });
    void conversation(id).post(content, options as SendOptions).catch(() => undefined);
    location.hash = addressOf(id);
  };
  return (
    <main class="conversation">
      <section class="timeline" aria-label={texts.timeline}><p class="hint">{texts.empty}</p></section>
      <Composer id="" onSend={send} />
    </main>
  );
}

/** Says that the connection is lost, or why there is none. */
function Status({ update: { state, connection }, onRetry }: { update: Update; onRetry: () => void }) {
  const isOnline = useOnline();
  const error = connection.status === "closed" ? connection.error : undefined;
  const isMissing = state.ended === "conversation_deleted" || connection.status === "missing";
  if (isMissing) return <p class="status" role="alert">{texts.missing}</p>;
  if (error !== undefined) {
    return (
      <p class="status" role="alert">
        <Fault error={error} /> <button type="button" onClick={onRetry}>{texts.retry}</button>
      </p>
    );
  }
  const text = !isOnline ? texts.offline : connection.status === "waiting" ? texts.reconnecting : "";
  return <p class="status" role="status" data-connection={connection.status}>{text}</p>;
}

/** Offers to resume a turn in which nothing has happened for a while: the gateways look for such turns too, but later. */
function Resume({ chat, update: { state, connection } }: { chat: Conversation; update: Update }) {
  const [isQuiet, setQuiet] = useState(false);
  const [error, setError] = useState<unknown>();
  const runs = state.turn !== null && connection.status === "open";
  const waits = state.items.some(
    (item) => item.type === "tool_call" && item.state === "running" && (item.approval?.state === "pending" || item.clientTool !== undefined),
  );
  useEffect(() => {
    setQuiet(false);
    if (!runs || waits) return undefined;
    const timer = setTimeout(() => setQuiet(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, [runs, waits, state]);
  if (!isQuiet) return null;
  const resume = () => {
    setError(undefined);
    chat.resume().then(() => setQuiet(false), setError);
  };
  return (
    <p class="status" role="status">
      {error === undefined ? texts.quiet : <Fault error={error} />}{" "}
      <button type="button" onClick={resume}>{texts.resume}</button>
    </p>
  );
}

function useOnline(): boolean {
  return useSyncExternalStore(followOnline, () => navigator.onLine);
}

function followOnline(onChange: () => void): () => void {
  const names = ["online", "offline"];
  for (const name of names) addEventListener(name, onChange);
  return () => {
    for (const name of names) removeEventListener(name, onChange);
  };
}
