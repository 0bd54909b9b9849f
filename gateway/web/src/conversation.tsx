/** The conversation that is open: how its connection is, its timeline, and the composer. */

import { type api, ApiError, type Conversation, type SendOptions, type Update } from "everturn-client";
import type { ComponentChildren } from "preact";
import { useSyncExternalStore } from "preact/compat";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Activity } from "./activity";
import type { Agents } from "./agents";
import { Composer, type Written } from "./composer";
import { conversation, everturn, forget, useUpdate } from "./everturn";
import type { Shared } from "./hub";
import { DeveloperLink, DeveloperView } from "./developer/view";
import { Icon } from "./icons";
import { useChoice, useNewChoice } from "./models";
import { money } from "./money";
import { Welcome } from "./picker";
import { addressOf, type DeveloperPlace } from "./route";
import { Fault, visible } from "./shown";
import { texts } from "./texts";
import { Timeline } from "./timeline";

/** Milliseconds without news after which a turn counts as quiet. */
const QUIET_MS = 15_000;

interface ConversationProps {
  chat: Conversation;
  shared: Shared;
  agents: Agents;
  list: ListButton;
  /** What is open of its developer's view. */
  developer: DeveloperPlace | undefined;
  onRefused: () => void;
}

export function ConversationView({ chat, shared, agents, list, developer, onRefused }: ConversationProps) {
  const [attempt, setAttempt] = useState(0);
  const update = useUpdate(chat, attempt, shared.isLive);
  useReport(chat, update, shared);
  const detail = useDetail(chat, update);
  const row = useRow(chat, shared, detail);
  const models = useChoice(chat, agents.list?.find(({ name }) => name === row?.agent), row?.model);
  const { state, connection } = update;
  const isRefused = connection.status === "closed" && connection.error instanceof ApiError && connection.error.status === 401;
  const hasEnded = isRefused || state.ended === "token_expired";
  useEffect(() => {
    if (hasEnded) onRefused();
  }, [hasEnded]);
  const isMissing = state.ended === "conversation_deleted" || connection.status === "missing";
  useEffect(() => {
    if (isMissing) forget(chat.id);
  }, [isMissing]);
  const send = async ({ content, ...options }: Written) => {
    // What became of it is shown with the message.
    void chat.post(content, options as SendOptions).catch(() => undefined);
  };
  return (
    <>
      <main class="conversation">
        <Heading list={list} row={row} cost={detail?.cost_usd} isOpened><DeveloperLink id={chat.id} isOpen={developer !== undefined} /></Heading>
        <Timeline chat={chat} update={update} />
        <Activity update={update} />
        <Status update={update} onRetry={() => setAttempt(attempt + 1)} />
        <Resume chat={chat} update={update} />
        <Retry chat={chat} update={update} />
        <Composer
          id={chat.id}
          onSend={send}
          turn={state.turn}
          onStop={(turn) => chat.cancel({ messageId: turn })}
          agent={row?.agent}
          models={models}
          isQuiet={developer !== undefined}
        />
      </main>
      {developer && <DeveloperView chat={chat} update={update} place={developer} />}
    </>
  );
}

/** The button that shows the list on a phone. */
export interface ListButton {
  readonly isOpen: boolean;
  readonly open: () => void;
}

interface HeadingProps {
  list: ListButton;
  /** The conversation, as far as it is known; absent where a new one begins. */
  row?: api.Conversation | undefined;
  /** Of all turns, in US dollars; null while no turn has a price. */
  cost?: string | null | undefined;
  /** A conversation is open. */
  isOpened?: boolean;
  children?: ComponentChildren;
}

/** What is open: the title, the agent and the cost. */
function Heading({ list, row, cost, isOpened = false, children }: HeadingProps) {
  return (
    <header class={isOpened ? "heading" : "heading begins"}>
      <button type="button" class="burger quiet round" aria-expanded={list.isOpen} aria-label={texts.list} onClick={list.open}>
        <Icon name="list" />
      </button>
      <div>
        <h2><bdi>{row ? visible(row.title) || texts.untitled : isOpened ? "" : texts.new}</bdi></h2>
        {isOpened && (
          <p>
            {row && <bdi class="agent">{visible(row.agent)}</bdi>}
            <span class="hint cost">{typeof cost === "string" && texts.cost(money(Number(cost)))}</span>
          </p>
        )}
      </div>
      {children}
    </header>
  );
}

/** What the list has of the conversation; of a conversation that the list does not have, what the gateway says. */
function useRow(chat: Conversation, { rows }: Shared, detail: api.ConversationDetail | undefined): api.Conversation | undefined {
  const listed = useRef<api.Conversation | undefined>(undefined);
  listed.current = rows?.find((row) => row.id === chat.id) ?? listed.current;
  return listed.current ?? detail;
}

/** What the gateway says of the conversation: at first, and again when a turn has ended, which costs something. */
function useDetail(chat: Conversation, { state, connection }: Update): api.ConversationDetail | undefined {
  const [detail, setDetail] = useState<api.ConversationDetail>();
  const isThere = connection.status === "open";
  const last = useMemo(() => state.items.findLast((item) => item.type === "end" && item.agentExecutionId === undefined), [state.items]);
  useEffect(() => {
    if (!isThere) return undefined;
    const stop = new AbortController();
    chat.show(stop.signal).then(setDetail, () => undefined);
    return () => stop.abort();
  }, [chat, isThere, last?.id]);
  return detail;
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
export function NewConversation({ shared: { report }, agents, list }: { shared: Shared; agents: Agents; list: ListButton }) {
  const [error, setError] = useState<unknown>();
  useEffect(() => report({ hasConversation: false, isBehind: false }), []);
  const agent = agents.chosen?.name;
  const models = useNewChoice(agents.chosen);
  const send = async ({ content, ...options }: Written) => {
    const chosen = { ...(agent !== undefined && { agent }), ...(models && { model: models.chosen }) };
    const { id } = await everturn.create({ id: crypto.randomUUID?.(), ...chosen });
    void conversation(id).post(content, options as SendOptions).catch(() => undefined);
    location.hash = addressOf(id);
  };
  return (
    <main class="conversation">
      <Heading list={list} />
      <section class="timeline start" aria-label={texts.timeline}>
        <Welcome agents={agents} onSend={(sample) => void send({ content: sample }).catch(setError)} />
      </section>
      {error !== undefined && <p class="status" role="alert"><Fault error={error} /></p>}
      <Composer id="" onSend={send} agent={agent} models={models} />
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

/** Offers to run the newest turn again from its last checkpoint, after it has failed and while nothing else goes on. */
function Retry({ chat, update: { state, connection, pending } }: { chat: Conversation; update: Update }) {
  const [asked, setAsked] = useState<string>();
  const [error, setError] = useState<unknown>();
  const last = state.items.at(-1);
  const failed = last?.type === "end" && last.outcome === "error" && last.agentExecutionId === undefined ? last.turn : undefined;
  useEffect(() => setError(undefined), [failed]);
  const isFree = state.turn === null && connection.status === "open" && pending.length === 0;
  if (failed === undefined || !isFree) return null;
  const retry = () => {
    setError(undefined);
    setAsked(failed);
    chat.retry({ messageId: failed }).catch((error: unknown) => {
      setAsked(undefined);
      setError(error);
    });
  };
  return (
    <p class="status" role="status">
      {error !== undefined && <><Fault error={error} />{" "}</>}
      <button type="button" onClick={retry} disabled={asked === failed}>{texts.retryTurn}</button>
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
