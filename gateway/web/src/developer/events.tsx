/** The raw events of a conversation, as the API has them. */

import type { api, Conversation } from "everturn-client";
import { memo } from "preact/compat";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { More } from "../more";
import { brief, Fault, visible } from "../shown";
import { texts } from "../texts";
import { clock } from "./format";
import { JsonBlock } from "./json";

/** Events of a page. */
const PAGE = 200;

/** `cursor` changes when there are new events. */
export function Events({ chat, cursor }: { chat: Conversation; cursor: string }) {
  const { events, hasOlder, isReading, error, readOlder } = useEvents(chat, cursor);
  const [type, setType] = useState("");
  const [text, setText] = useState("");
  const types = useMemo(() => [...new Set(events.map((event) => event.event_type))].sort(), [events]);
  const searched = useMemo(() => events.map((event) => JSON.stringify(event).toLowerCase()), [events]);
  const wanted = text.trim().toLowerCase();
  const shown = events.filter((event, at) => (type === "" || event.event_type === type) && searched[at]!.includes(wanted));
  const words = texts.developer;
  return (
    <div class="developer-body">
      <form class="filter" onSubmit={(submit) => submit.preventDefault()}>
        <select aria-label={words.filterType} value={type} onChange={(change) => setType(change.currentTarget.value)}>
          <option value="">{words.every}</option>
          {types.map((name) => <option key={name} value={name}>{visible(name)}</option>)}
        </select>
        <input
          type="search"
          aria-label={words.filterText}
          placeholder={words.filterText}
          value={text}
          onInput={(input) => setText(input.currentTarget.value)}
        />
      </form>
      <p class="hint" role="status">{words.eventsRead(shown.length, events.length)}</p>
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      {hasOlder && (
        <More isBusy={isReading} onMore={readOlder}>{isReading ? texts.loading : texts.earlier}</More>
      )}
      {shown.length === 0 && !isReading && <p class="hint">{words.noEvents}</p>}
      <ol class="events">{shown.map((event) => <EventLine key={event.id} event={event} />)}</ol>
    </div>
  );
}

const EventLine = memo(function EventLine({ event }: { event: api.Event }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li data-event={event.sequence_number}>
      <details onToggle={(toggle) => setOpen(toggle.currentTarget.open)}>
        <summary>
          <span class="number">{event.sequence_number}</span> <time class="hint" dateTime={event.created_at}>{clock(event.created_at)}</time>{" "}
          <strong>{visible(event.event_type)}</strong> <code class="brief">{brief(event.event_data as never)}</code>
        </summary>
        {isOpen && <JsonBlock value={event} />}
      </details>
    </li>
  );
});

/** The newest page of events, those that come after it, and those before it that somebody asks for. */
function useEvents(chat: Conversation, cursor: string) {
  const [events, setEvents] = useState<readonly api.Event[]>([]);
  const [hasOlder, setOlder] = useState(false);
  const [isReading, setReading] = useState(true);
  const [error, setError] = useState<unknown>();
  const isBusy = useRef(false);
  const known = useRef<readonly api.Event[]>([]);
  const stop = useRef(new AbortController());
  const keep = (next: readonly api.Event[]) => {
    known.current = next;
    setEvents(next);
  };
  const attempt = async (read: () => Promise<void>) => {
    if (isBusy.current) return;
    isBusy.current = true;
    setReading(true);
    try {
      await read();
      setError(undefined);
    } catch (caught) {
      if (!stop.current.signal.aborted) setError(caught);
    } finally {
      isBusy.current = false;
      setReading(false);
    }
  };
  const readOlder = () =>
    void attempt(async () => {
      const [first] = known.current;
      const place = first === undefined ? {} : { before: first.sequence_number };
      const page = await chat.events({ ...place, limit: PAGE, signal: stop.current.signal });
      keep([...page.events, ...known.current]);
      setOlder(page.has_more);
    });
  const readNewer = () =>
    attempt(async () => {
      for (let hasMore = true; hasMore; ) {
        const fromSequence = (known.current.at(-1)?.sequence_number ?? 0) + 1;
        const page = await chat.events({ fromSequence, limit: PAGE, signal: stop.current.signal });
        if (page.events.length > 0) keep([...known.current, ...page.events]);
        hasMore = page.has_more;
      }
    });
  useEffect(() => {
    stop.current = new AbortController();
    readOlder();
    return () => stop.current.abort();
  }, [chat]);
  const last = Number.parseInt(cursor, 10) || 0;
  const isBehind = known.current.length > 0 && (known.current.at(-1)?.sequence_number ?? 0) < last;
  useEffect(() => {
    if (isBehind && !isReading) void readNewer();
  }, [isBehind, last, isReading]);
  return { events, hasOlder, isReading, error, readOlder };
}
