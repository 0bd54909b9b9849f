/** Messages between the tabs of a browser and the hub that they share. */

import type { api } from "everturn-client";

/** Milliseconds after which a tab that nobody sees gives its connections back. */
export const ASLEEP_AFTER_MS = 30_000;

/** Milliseconds between two reports of a tab that is awake. */
export const REPORT_MS = 15_000;

/** How a tab is. A tab says so after each change, and every `REPORT_MS` while it is awake. */
export interface Report {
  /** `asleep`: nobody has seen the tab for a while. */
  readonly sight: "shown" | "hidden" | "asleep" | "closed";
  /** A conversation is open in the tab. */
  readonly hasConversation: boolean;
  /** The list knows events of the conversation that the tab does not have. */
  readonly isBehind: boolean;
  /** Somebody has just begun to use the tab. */
  readonly comesToFront: boolean;
}

/** Why the list cannot be followed: the fields of an error, which has no form of its own between tabs. */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly docs?: string | undefined;
}

/** What the hub tells a tab. */
export type Told =
  | { readonly type: "rows"; readonly rows: readonly api.ListedConversation[] }
  | { readonly type: "failed"; readonly failure: Failure }
  /** Nobody is signed in any more. */
  | { readonly type: "refused" }
  /** Whether the tab may hold the stream of its conversation. */
  | { readonly type: "live"; readonly isLive: boolean };
