/** The shared transcripts (clients/transcripts/README.md). */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { State } from "../../src/state/state.js";

/** A frame of a transcript, or the end of its connection. */
export interface Step {
  readonly id?: string;
  readonly event?: string;
  readonly data?: unknown;
  readonly cut?: true;
}

/** A conversation on the wire. */
export interface Transcript {
  readonly about: string;
  readonly frames: readonly Step[];
  readonly state: State;
  /** What the turn of each message answered. */
  readonly answers: Readonly<Record<string, string | null>>;
  readonly timeline?: readonly unknown[];
}

/** The repository's root, seen from the compiled tests. */
export const ROOT = fileURLToPath(new URL("../../../../../", import.meta.url));

/** Reads one of the files of the suite. */
export function readShared(name: string): unknown {
  return JSON.parse(readFileSync(`${ROOT}clients/transcripts/${name}`, "utf8"));
}

/** All conversations, by name. */
export function transcripts(): [string, Transcript][] {
  const names = readdirSync(`${ROOT}clients/transcripts/conversations`).sort();
  return names.map((name) => [name, readShared(`conversations/${name}`) as Transcript]);
}

/** The list of conversations on the wire. */
export interface ListTranscript {
  readonly about: string;
  readonly frames: readonly Step[];
  readonly list: readonly unknown[];
}

/** All lists, by name. */
export function lists(): [string, ListTranscript][] {
  const names = readdirSync(`${ROOT}clients/transcripts/lists`).sort();
  return names.map((name) => [name, readShared(`lists/${name}`) as ListTranscript]);
}

/** The bytes of a frame on the wire. */
export function rendered({ id, event, data }: Step): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${text}\n\n`;
}
