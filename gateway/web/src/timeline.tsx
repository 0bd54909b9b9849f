/** What was said and done in a conversation, with what is being written, and what is on its way. */

import type { Connection, Conversation, Item, PendingMessage, Update } from "everturn-client";
import type { RefObject } from "preact";
import { memo } from "preact/compat";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { PAGE } from "./everturn";
import { estimateOf, mustStay, nameOf, RowView, Writing } from "./items";
import { Kept } from "./kept";
import { More } from "./more";
import { rowsOf, textsBelow } from "./rows";
import { Fault, Plain, visible } from "./shown";
import { texts } from "./texts";
import { RowWindow } from "./window";

/** Heights of the view from the beginning within which what came before is read. */
const NEAR = 1.5;

/** A conversation at whose end somebody stays: past so many events, the oldest are forgotten. */
const MOST_AT_END = 2000;

/** The events that are kept then. */
const KEPT_AT_END = 1000;

/** How often a conversation is looked at for what can be forgotten. */
const FORGET_MS = 5000;

/** It is drawn again when the conversation changes, and not with each change of the list. */
export const Timeline = memo(function Timeline({ chat, update }: { chat: Conversation; update: Update }) {
  const { state, pending, hasOlder, connection } = update;
  const box = useRef<HTMLElement>(null);
  const isAtEnd = useRef(true);
  const kept = useMemo(() => new Map<string, unknown>(), [chat]);
  const rows = useMemo(() => rowsOf(state.items), [state.items]);
  const { isReadingOlder, isFull, readOlder, readIfNear } = useOlder(chat, update, box, isAtEnd);
  useForgetting(chat, isAtEnd);
  const isNothing = state.items.length === 0 && pending.length === 0;
  return (
    <Kept.Provider value={kept}>
      <section class="timeline" aria-label={texts.timeline} tabIndex={0} ref={box}>
        {hasOlder && !isFull && (
          <More class="earlier" isBusy={isReadingOlder} onMore={readOlder}>{isReadingOlder ? texts.loading : texts.earlier}</More>
        )}
        {isFull && <p class="hint">{texts.full}</p>}
        {isNothing && isComing(connection) && <p class="hint">{texts.loading}</p>}
        {isNothing && connection.status === "open" && <p class="hint">{texts.empty}</p>}
        <RowWindow
          box={box}
          rows={rows.own}
          estimate={estimateOf}
          isKept={mustStay}
          isAtEnd={isAtEnd}
          isCut={hasOlder}
          isBusy={isReadingOlder}
          onMove={readIfNear}
          nameOf={nameOf}
        >
          {(row) => <RowView chat={chat} row={row} rows={rows} openTexts={state.texts} />}
        </RowWindow>
        {textsBelow(rows, state.texts).map((text) => (
          <Writing key={`${text.agentExecutionId}/${text.step}/${text.part}`} text={text} />
        ))}
        {pending.map((message) => <Pending key={message.messageId} chat={chat} message={message} />)}
        <Announcement items={state.items} />
      </section>
    </Kept.Provider>
  );
});

/** What there is has not been read yet: the connection is made, or the tab waits for its turn to have one. */
function isComing(connection: Connection): boolean {
  return connection.status === "connecting" || (connection.status === "closed" && connection.error === undefined);
}

/** Reads what came before, when somebody goes there or asks for it. */
function useOlder(chat: Conversation, update: Update, box: RefObject<HTMLElement | null>, isAtEnd: RefObject<boolean>) {
  const [isReadingOlder, setReadingOlder] = useState(false);
  const isFull = update.hasOlder && update.isFull;
  const readOlder = () => {
    if (isReadingOlder || isFull || !chat.current.hasOlder) return;
    setReadingOlder(true);
    // A page that could not be read is asked for again by the button, and by scrolling.
    void chat.older(PAGE).catch(() => undefined).finally(() => setReadingOlder(false));
  };
  const readIfNear = () => {
    const view = box.current;
    if (view && !isAtEnd.current && view.scrollTop < NEAR * view.clientHeight) readOlder();
  };
  // A page may have brought less than the view shows.
  useEffect(readIfNear, [isReadingOlder]);
  return { isReadingOlder, isFull, readOlder, readIfNear };
}

/**
 * Forgets what nobody looks at: the beginning of a long conversation, when it is left, and while the view is at its end and no
 * turn runs.
 */
function useForgetting(chat: Conversation, isAtEnd: RefObject<boolean>) {
  useEffect(() => {
    const forget = () => eventsOf(chat.current) > MOST_AT_END && chat.forget(KEPT_AT_END);
    const timer = setInterval(() => isAtEnd.current && chat.current.state.status === "idle" && forget(), FORGET_MS);
    return () => {
      clearInterval(timer);
      forget();
    };
  }, [chat]);
}

/** About how many events are known. */
function eventsOf({ state }: Update): number {
  const first = state.items[0]?.sequenceNumber ?? 0;
  return (Number.parseInt(state.cursor, 10) || 0) - first;
}

/** A message that is not in the log yet. */
function Pending({ chat, message }: { chat: Conversation; message: PendingMessage }) {
  const { messageId, content, attachments, onBusy, state, error } = message;
  const again = () => void chat.post(content, { messageId, attachments, ...(onBusy && { onBusy }) }).catch(() => undefined);
  return (
    <article class="item user_message pending" data-pending={state} aria-label={texts.you}>
      <Plain text={content} />
      {state === "failed" ? (
        <p role="alert">
          {texts.notSent}: <Fault error={error} />{" "}
          <button type="button" onClick={again}>{texts.retry}</button>{" "}
          <button type="button" onClick={() => chat.discard(message)}>{texts.discard}</button>
        </p>
      ) : (
        <p class="hint">
          {state === "sending" ? texts.sending : chat.current.state.turn === null ? texts.noWorker : texts.queued}{" "}
          <Withdraw chat={chat} message={message} />
        </p>
      )}
    </article>
  );
}

/** Takes a message back that waits for its turn. */
function Withdraw({ chat, message: { acceptedAs } }: { chat: Conversation; message: PendingMessage }) {
  const [isSent, setSent] = useState(false);
  if (acceptedAs === undefined || chat.current.state.turn === null) return null;
  const withdraw = () => {
    setSent(true);
    chat.cancel({ messageId: acceptedAs }).catch(() => setSent(false));
  };
  return <button type="button" class="quiet" disabled={isSent} onClick={withdraw}>{isSent ? texts.withdrawn : texts.withdraw}</button>;
}

/** Reads new answers out to those who do not see them. What was there when the page was opened is not new. */
function Announcement({ items }: { items: readonly Item[] }) {
  const opened = useRef(Date.now());
  const [text, setText] = useState("");
  const last = items.findLast((item) => item.type === "assistant_message" && item.agentExecutionId === undefined);
  useEffect(() => {
    if (last?.type === "assistant_message" && last.timestamp > opened.current) setText(visible(last.content.slice(0, 1000)));
  }, [last]);
  return <p class="unseen" aria-live="polite">{text}</p>;
}
