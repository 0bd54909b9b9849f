/** What was said and done in a conversation, with what is being written, and what is on its way. */

import type { Conversation, Item, PendingMessage, Update } from "everturn-client";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { PAGE } from "./everturn";
import { Entries } from "./items";
import { Fault, Plain, visible } from "./shown";
import { texts } from "./texts";

/** Pixels from an edge within which a reader counts as being there. */
const NEAR = 80;

export function Timeline({ chat, update }: { chat: Conversation; update: Update }) {
  const { state, pending, hasOlder, connection } = update;
  const { place, onScroll, isReadingOlder, readOlder } = useScrolling(chat, update);
  const isLoading = state.items.length === 0 && connection.status === "connecting" && pending.length === 0;
  const isEmpty = state.items.length === 0 && connection.status === "open" && pending.length === 0;
  return (
    <section class="timeline" aria-label={texts.timeline} tabIndex={0} ref={place} onScroll={onScroll}>
      {hasOlder && (
        <button type="button" class="quiet" disabled={isReadingOlder} onClick={readOlder}>
          {isReadingOlder ? texts.loading : texts.earlier}
        </button>
      )}
      {isLoading && <p class="hint">{texts.loading}</p>}
      {isEmpty && <p class="hint">{texts.empty}</p>}
      <Entries chat={chat} items={state.items} openTexts={state.texts} />
      {pending.map((message) => <Pending key={message.messageId} chat={chat} message={message} />)}
      <Announcement items={state.items} />
    </section>
  );
}

/** Keeps the end in sight for whoever is there, and the place of whoever reads what came before. */
function useScrolling(chat: Conversation, update: Update) {
  const place = useRef<HTMLElement>(null);
  const [isReadingOlder, setReadingOlder] = useState(false);
  const isAtEnd = useRef(true);
  const before = useRef({ firstId: "", height: 0 });
  const firstId = update.state.items[0]?.id ?? "";
  useLayoutEffect(() => {
    const box = place.current;
    if (!box) return;
    const grown = box.scrollHeight - before.current.height;
    const isPrepended = before.current.firstId !== "" && before.current.firstId !== firstId;
    if (isAtEnd.current) box.scrollTop = box.scrollHeight;
    else if (isPrepended) box.scrollTop += grown;
    before.current = { firstId, height: box.scrollHeight };
  });
  const readOlder = () => {
    if (isReadingOlder || !chat.current.hasOlder) return;
    isAtEnd.current = false;
    setReadingOlder(true);
    // A page that could not be read is asked for again by the button.
    void chat.older(PAGE).catch(() => undefined).finally(() => setReadingOlder(false));
  };
  const onScroll = () => {
    const box = place.current;
    if (!box) return;
    isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    if (box.scrollTop < NEAR && !isAtEnd.current) readOlder();
  };
  return { place, onScroll, isReadingOlder, readOlder };
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
          {state === "sending" ? texts.sending : texts.queued}{" "}
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
