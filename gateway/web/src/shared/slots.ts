/**
 * Which tabs hold the stream of their conversation. Over HTTP/1.1 a browser has six connections to a gateway: one is the list's,
 * and at least one must be free for requests.
 */

import type { Report } from "./protocol";

/** The tabs that were used last hold their streams for as long as they like. */
export const HELD = 3;

/** Milliseconds that a further tab has to catch up, before the next one has its turn. */
export const VISIT_MS = 5_000;

/** A tab, as the hub knows it. */
export interface Tab extends Report {
  /** Grows with each tab that comes to the front. */
  readonly order: number;
  /** When the tab began to catch up: the tab that waits longest is next. */
  visitedAt: number;
}

/** The tabs that hold a stream now: those that were used last, and one of the others that catches up. */
export function liveTabs<T extends Tab>(tabs: Iterable<T>, visitor: T | undefined, now: number): { live: Set<T>; visitor: T | undefined } {
  const wanting = [...tabs].filter((tab) => tab.hasConversation && (tab.sight === "shown" || tab.sight === "hidden"));
  wanting.sort((one, other) => Number(one.sight === "hidden") - Number(other.sight === "hidden") || other.order - one.order);
  const held = wanting.slice(0, HELD);
  const behind = wanting.slice(HELD).filter((tab) => tab.isBehind && tab.sight === "shown");
  const next = nextVisitor(behind, visitor, now);
  return { live: new Set(next ? [...held, next] : held), visitor: next };
}

function nextVisitor<T extends Tab>(behind: readonly T[], visitor: T | undefined, now: number): T | undefined {
  const mayStay = visitor && behind.includes(visitor) && (behind.length === 1 || now - visitor.visitedAt < VISIT_MS);
  if (mayStay) return visitor;
  const next = behind.filter((tab) => tab !== visitor).reduce<T | undefined>(earlier, undefined) ?? behind[0];
  if (next) next.visitedAt = now;
  return next;
}

function earlier<T extends Tab>(first: T | undefined, tab: T): T {
  return first && first.visitedAt <= tab.visitedAt ? first : tab;
}
