/**
 * What the address names: the inbox of approvals, `#/approvals`, a conversation, `#/c/ID`, and a part of its developer's view, `#/c/ID/turns/N` or `#/c/ID/events`.
 * Reload, back and forward work by it.
 */

import { useSyncExternalStore } from "preact/compat";
import { useMemo } from "preact/hooks";

/** A part of the developer's view. */
export interface DeveloperPlace {
  readonly part: "turns" | "events";
  /** The number of the event with which a turn begins; by default the newest turn. */
  readonly turn?: number | undefined;
}

/** What is open. */
export interface Route {
  /** The conversation; undefined where a new one begins. */
  readonly id?: string | undefined;
  readonly developer?: DeveloperPlace | undefined;
  /** The inbox of approvals is open. */
  readonly isInbox?: boolean;
}

/** The address of the inbox of approvals. */
export const INBOX = "#/approvals";

/** The address of a conversation, within the page. */
export function addressOf(id: string, developer?: DeveloperPlace): string {
  const turn = developer?.turn === undefined ? "" : `/${developer.turn}`;
  return `#/c/${encodeURIComponent(id)}${developer ? `/${developer.part}${turn}` : ""}`;
}

/** What the address names now. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(followHash, () => location.hash);
  return useMemo(() => read(hash), [hash]);
}

function followHash(onChange: () => void): () => void {
  addEventListener("hashchange", onChange);
  return () => removeEventListener("hashchange", onChange);
}

function read(hash: string): Route {
  if (hash === INBOX) return { isInbox: true };
  const [, encoded, part, turn] = /^#\/c\/([^/]+)(?:\/(turns|events)(?:\/(\d+))?)?/.exec(hash) ?? [];
  if (encoded === undefined) return {};
  const developer = part === "turns" ? { part, turn: turn === undefined ? undefined : Number(turn) } : undefined;
  try {
    return { id: decodeURIComponent(encoded), developer: part === "events" ? { part } : developer } as Route;
  } catch {
    return {};
  }
}
