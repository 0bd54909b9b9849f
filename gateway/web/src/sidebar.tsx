/** The list of conversations, as it changes, with a search in their titles. */

import type { api } from "everturn-client";
import { useEffect, useRef, useState } from "preact/hooks";
import { dateOf, groupsOf } from "./days";
import { forgetDrafts } from "./drafts";
import { everturn } from "./everturn";
import type { Shared } from "./hub";
import { Manage } from "./manage";
import { More } from "./more";
import { addressOf } from "./route";
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
  onToggle: () => void;
  onRefused: () => void;
  onHelp: () => void;
}

export function Sidebar({ open, shared: { rows, error }, isListOpen, isSession, onToggle, onRefused, onHelp }: SidebarProps) {
  const [search, setSearch] = useState("");
  const found = useFound(search.trim());
  const shown = search.trim() === "" ? rows : found;
  const title = rows?.find((row) => row.id === open)?.title;
  useEffect(() => {
    document.title = title ? `${isolated(title)} · Everturn` : "Everturn";
  }, [title]);
  const signOut = () => {
    forgetDrafts();
    void everturn.signOut().finally(onRefused);
  };
  return (
    <nav class="sidebar" aria-label={texts.conversations}>
      <div class="bar">
        <button type="button" class="burger quiet" aria-expanded={isListOpen} aria-label={texts.list} onClick={onToggle}>
          ☰
        </button>
        <h1>Everturn</h1>
        <a class="new" href="#/">{texts.new}</a>
      </div>
      <div class="list">
        <input
          type="search"
          aria-label={texts.search}
          placeholder={texts.search}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        {error !== undefined && <p role="alert"><Fault error={error} /></p>}
        {shown === undefined && error === undefined && <p class="hint">{texts.loading}</p>}
        {shown?.length === 0 && <p class="hint">{shown === rows ? texts.none : texts.noneFound}</p>}
        {shown && <Groups rows={shown} open={open} />}
        {rows !== undefined && shown === rows && rows.length >= FOLLOWED && <Earlier rows={rows} open={open} />}
        <a class="foot" href="about">{texts.about}</a>
        <button type="button" class="quiet foot" onClick={onHelp}>{texts.shortcuts}</button>
        {isSession && <button type="button" class="quiet foot" onClick={signOut}>{texts.signOut}</button>}
      </div>
    </nav>
  );
}

/** Conversations below the names of their days. `after` is above them: a group that goes on has no second name. */
function Groups({ rows, open, after }: { rows: readonly Row[]; open: string | undefined; after?: Row | undefined }) {
  const before = after && groupsOf([after])[0]?.name;
  return (
    <>
      {groupsOf(rows).map(({ name, rows: found }) => (
        <div key={name}>
          {name !== before && <h2 class="day">{name}</h2>}
          <ul aria-label={name}>{found.map((row) => <Entry key={row.id} row={row} isOpen={row.id === open} />)}</ul>
        </div>
      ))}
    </>
  );
}

function Entry({ row, isOpen }: { row: Row; isOpen: boolean }) {
  const state = row.state ?? "idle";
  return (
    <li>
      <a href={addressOf(row.id)} title={dateOf(row)} aria-current={isOpen ? "page" : undefined}>
        <span class={`dot ${state}`} role="img" aria-label={texts.state[state] ?? state} title={texts.state[state] ?? state} />
        <bdi>{visible(row.title) || texts.untitled}</bdi>
      </a>
      {isOpen && <Manage row={row} />}
    </li>
  );
}

/** Conversations before those that are followed. They are as they were when they were read. */
function Earlier({ rows, open }: { rows: readonly Row[]; open: string | undefined }) {
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
      <Groups rows={shown} open={open} after={rows.at(-1)} />
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
