/** The list of conversations, as it changes, with a search in their titles. */

import { type api, ApiError, type Connection } from "everturn-client";
import { useEffect, useState } from "preact/hooks";
import { everturn } from "./everturn";
import { addressOf } from "./route";
import { Fault, visible } from "./shown";
import { texts } from "./texts";

/** Milliseconds without a key stroke after which the search is made. */
const PAUSE_MS = 200;
/** The most titles that a search shows. */
const FOUND = 50;

type Row = api.ListedConversation;

interface SidebarProps {
  open: string | undefined;
  isListOpen: boolean;
  isSession: boolean;
  onToggle: () => void;
  onRefused: () => void;
}

export function Sidebar({ open, isListOpen, isSession, onToggle, onRefused }: SidebarProps) {
  const [search, setSearch] = useState("");
  const { rows, error } = useRows(onRefused);
  const found = useFound(search.trim());
  const shown = search.trim() === "" ? rows : found;
  const title = rows?.find((row) => row.id === open)?.title;
  useEffect(() => {
    document.title = title ? `${visible(title)} · Everturn` : "Everturn";
  }, [title]);
  const signOut = () => void everturn.signOut().finally(onRefused);
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
        <ul>{shown?.map((row) => <Entry key={row.id} row={row} isOpen={row.id === open} />)}</ul>
        <a class="hint" href="about">{texts.about}</a>
        {isSession && <button type="button" class="quiet" onClick={signOut}>{texts.signOut}</button>}
      </div>
    </nav>
  );
}

function Entry({ row, isOpen }: { row: Row; isOpen: boolean }) {
  const state = row.state ?? "idle";
  return (
    <li>
      <a href={addressOf(row.id)} aria-current={isOpen ? "page" : undefined}>
        <span class={`dot ${state}`} role="img" aria-label={texts.state[state] ?? state} title={texts.state[state] ?? state} />
        <bdi>{visible(row.title) || texts.untitled}</bdi>
      </a>
    </li>
  );
}

/** The newest conversations; undefined until they are known. */
function useRows(onRefused: () => void) {
  const [rows, setRows] = useState<readonly Row[]>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const stop = new AbortController();
    const onConnection = (connection: Connection) => {
      if (connection.status === "open") setError(undefined);
    };
    const follow = async () => {
      for await (const now of everturn.followConversations({ signal: stop.signal, onConnection })) setRows(now);
      onRefused(); // the session has ended
    };
    follow().catch((caught: unknown) => {
      if (stop.signal.aborted) return;
      if (caught instanceof ApiError && caught.status === 401) onRefused();
      else setError(caught);
    });
    return () => stop.abort();
  }, []);
  return { rows, error };
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
