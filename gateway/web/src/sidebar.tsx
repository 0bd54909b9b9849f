/** The list of conversations, as it changes, with a search in their titles. */

import type { api } from "everturn-client";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { dateOf, groupsOf } from "./days";
import { forgetDrafts } from "./drafts";
import { everturn, isGone } from "./everturn";
import { Brand, Icon } from "./icons";
import type { Shared } from "./hub";
import { Manage } from "./manage";
import { More } from "./more";
import { addressOf, INBOX } from "./route";
import { Search } from "./search";
import { Fault, isolated, visible } from "./shown";
import { texts } from "./texts";

/** Milliseconds without a key stroke after which the search is made. */
const PAUSE_MS = 200;
/** The most titles that a search shows. */
const FOUND = 50;
/** The newest conversations, which the stream of the list tells of. */
const FOLLOWED = 100;

type Row = api.ListedConversation;

interface SidebarProps {
  open: string | undefined;
  shared: Shared;
  isListOpen: boolean;
  isSession: boolean;
  /** The person may answer approvals, so there is an inbox. */
  mayApprove: boolean;
  /** There are agents to tell apart. */
  hasAgents: boolean;
  onClose: () => void;
  onRefused: () => void;
  onHelp: () => void;
}

export function Sidebar({ open, shared, isListOpen, isSession, mayApprove, hasAgents, onClose, onRefused, onHelp }: SidebarProps) {
  const { error } = shared;
  const rows = useMemo(() => shared.rows?.filter((row) => !isGone(row)), [shared.rows, open]);
  const [search, setSearch] = useState("");
  const found = useFound(search.trim());
  const shown = search.trim() === "" ? rows : found;
  const waiting = (rows ?? []).filter(waitsForYou);
  useTitle(rows?.find((row) => row.id === open)?.title, waiting.length);
  const close = useFocusInside(isListOpen);
  const entries = { open, hasAgents };
  const signOut = () => {
    forgetDrafts();
    void everturn.signOut().finally(onRefused);
  };
  return (
    <nav class="sidebar" aria-label={texts.conversations} onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <div class="bar">
        <Brand />
        <a class="new round" href="#/" aria-label={texts.new} title={texts.new}><Icon name="write" /></a>
        <button type="button" class="hide quiet round" ref={close} aria-label={texts.hideList} onClick={onClose}><Icon name="close" /></button>
      </div>
      <Search label={texts.search} value={search} onSearch={setSearch} />
      <div class="list">
        <p class="unseen" role="status">{waiting.length > 0 && texts.waitingCount(waiting.length)}</p>
        {error !== undefined && <p role="alert"><Fault error={error} /></p>}
        {shown === undefined && error === undefined && <p class="hint">{texts.loading}</p>}
        {shown?.length === 0 && <p class="hint">{shown === rows ? texts.none : texts.noneFound}</p>}
        {shown && shown === rows && waiting.length > 0 && <Waiting rows={waiting} {...entries} />}
        {shown && <Groups rows={shown === rows ? rows.filter((row) => !waitsForYou(row)) : shown} {...entries} />}
        {rows !== undefined && shown === rows && rows.length >= FOLLOWED && <Earlier rows={rows} {...entries} />}
      </div>
      <div class="feet">
        {mayApprove && <a class="foot" href={INBOX}>{texts.inbox}</a>}
        <a class="foot" href="about">{texts.about}</a>
        <button type="button" class="quiet foot" onClick={onHelp}>{texts.shortcuts}</button>
        {isSession && <button type="button" class="quiet foot" onClick={signOut}>{texts.signOut}</button>}
      </div>
    </nav>
  );
}

/** A call of the conversation needs an approval. A client tool waits, too, but for a program before a person. */
function waitsForYou(row: Row): boolean {
  return row.state === "waiting_for_approval";
}

/** The title of the tab tells what waits, also to somebody who looks at another tab. */
function useTitle(title: string | undefined, waiting: number): void {
  useEffect(() => {
    const count = waiting > 0 ? `(${waiting}) ` : "";
    document.title = `${count}${title ? `${isolated(title)} · Everturn` : "Everturn"}`;
  }, [title, waiting]);
}

/** A list that comes over the conversation takes the focus. */
function useFocusInside(isListOpen: boolean) {
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isListOpen) close.current?.focus();
  }, [isListOpen]);
  return close;
}

/** What all entries of the list need to know. */
interface EntryContext {
  /** The conversation that is open. */
  open: string | undefined;
  hasAgents: boolean;
}

/** Conversations that wait for a person, above all others. */
function Waiting({ rows, ...entries }: EntryContext & { rows: readonly Row[] }) {
  return (
    <div>
      <h2 class="day waiting">{texts.waitingForYou} <span class="count">{rows.length}</span></h2>
      <ul aria-label={texts.waitingForYou}>{rows.map((row) => <Entry key={row.id} row={row} {...entries} />)}</ul>
    </div>
  );
}

/** Conversations below the names of their days. `after` is above them: a group that goes on has no second name. */
function Groups({ rows, after, ...entries }: EntryContext & { rows: readonly Row[]; after?: Row | undefined }) {
  const before = after && groupsOf([after])[0]?.name;
  return (
    <>
      {groupsOf(rows).map(({ name, rows: found }) => (
        <div key={name}>
          {name !== before && <h2 class="day">{name}</h2>}
          <ul aria-label={name}>{found.map((row) => <Entry key={row.id} row={row} {...entries} />)}</ul>
        </div>
      ))}
    </>
  );
}

function Entry({ row, open, hasAgents }: EntryContext & { row: Row }) {
  const state = row.state ?? "idle";
  const isOpen = row.id === open;
  return (
    <li>
      <a href={addressOf(row.id)} title={dateOf(row)} aria-current={isOpen ? "page" : undefined}>
        <span class={`dot ${state}`} role="img" aria-label={texts.state[state] ?? state} title={texts.state[state] ?? state} />
        <span class="title">
          <bdi>{visible(row.title) || texts.untitled}</bdi>
          {hasAgents && <bdi class="agent">{visible(row.agent)}</bdi>}
        </span>
        {row.waiting_approvals > 1 && <span class="mark" aria-label={texts.approvals(row.waiting_approvals)}>{row.waiting_approvals}</span>}
      </a>
      {isOpen && <Manage row={row} />}
    </li>
  );
}

/** Conversations before those that are followed. They are as they were when they were read. */
function Earlier({ rows, ...entries }: EntryContext & { rows: readonly Row[] }) {
  const [read, setRead] = useState<readonly Row[]>([]);
  const [isReading, setReading] = useState(false);
  const [isAll, setAll] = useState(false);
  const [error, setError] = useState<unknown>();
  const reader = useRef<AsyncGenerator<Row, void> | undefined>(undefined);
  const followed = new Set(rows.map((row) => row.id));
  const more = async () => {
    reader.current ??= everturn.conversations({ pageSize: FOLLOWED });
    const found: Row[] = [];
    while (found.length < FOUND) {
      const next = await reader.current.next();
      if (next.done) return { found, isAll: true };
      if (!followed.has(next.value.id)) found.push(next.value);
    }
    return { found, isAll: false };
  };
  const onMore = () => {
    setReading(true);
    setError(undefined);
    more()
      .then((page) => {
        setRead([...read, ...page.found]);
        setAll(page.isAll);
      })
      .catch((caught: unknown) => {
        reader.current = undefined;
        setError(caught);
      })
      .finally(() => setReading(false));
  };
  const shown = read.filter((row) => !followed.has(row.id));
  return (
    <>
      <Groups rows={shown} after={rows.findLast((row) => !waitsForYou(row))} {...entries} />
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      {!isAll && <More isBusy={isReading} onMore={onMore}>{isReading ? texts.loading : texts.earlierConversations}</More>}
    </>
  );
}

/** The conversations whose titles contain a text; undefined while that is not known. */
function useFound(search: string): readonly Row[] | undefined {
  const [found, setFound] = useState<readonly Row[]>();
  useEffect(() => {
    setFound(undefined);
    if (search === "") return undefined;
    const stop = new AbortController();
    const look = async () => {
      const rows: Row[] = [];
      for await (const row of everturn.conversations({ search, signal: stop.signal })) {
        if (rows.push(row) >= FOUND) break;
      }
      setFound(rows);
    };
    const timer = setTimeout(() => void look().catch(() => undefined), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [search]);
  return found;
}
