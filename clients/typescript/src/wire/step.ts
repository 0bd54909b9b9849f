/** What a reader does when its connection has ended. */

/** How a connection ended. */
export type Outcome =
  /** It was cut, or could not be made. */
  | { readonly cut: true }
  /** The gateway answered, but not with a stream. */
  | { readonly status: number; readonly retryAfter?: string | undefined }
  /** The gateway stops: come back after so many milliseconds. */
  | { readonly delayMs: number }
  /** Do not come back, for this reason. */
  | { readonly end: string };

/** What comes next: a pause and another connection, or nothing. */
export type Step = { readonly waitMs: number } | { readonly stop: "ended" | "refused" };

/** What is known about the connections so far. */
export interface History {
  /** Connections in a row that brought no frame, the one that has just ended included. */
  readonly failures: number;
  /** The last `retry:` of the stream. */
  readonly retryMs: number;
}

/** The pause before the next connection, until the gateway names one. */
export const FIRST_RETRY_MS = 1000;

/** The longest pause that is not the gateway's own wish. */
export const MAX_WAIT_MS = 30_000;

/** Statuses from 400 to 499 that may pass: request timeout, too early, too many requests. */
const PASSING = new Set([408, 425, 429]);

/** Decides what comes next. `random` is from 0 to below 1. */
export function nextStep(outcome: Outcome, { failures, retryMs }: History, random: number): Step {
  if ("end" in outcome) return { stop: "ended" };
  if ("delayMs" in outcome) return { waitMs: outcome.delayMs };
  if ("status" in outcome && isPermanent(outcome.status)) return { stop: "refused" };
  if (failures === 0) return { waitMs: retryMs };
  const backOff = Math.min(retryMs * 2 ** (failures - 1), MAX_WAIT_MS) * (0.5 + random / 2);
  const least = "status" in outcome ? retryAfterMs(outcome.retryAfter) : 0;
  return { waitMs: Math.round(Math.max(backOff, least)) };
}

/** True for an answer that stays the same however often one asks. */
export function isPermanent(status: number): boolean {
  return status >= 400 && status < 500 && !PASSING.has(status);
}

/** The header `Retry-After` in milliseconds; 0 when it is no whole number of seconds. */
export function retryAfterMs(header: string | null | undefined): number {
  return /^[0-9]{1,6}$/.test(header ?? "") ? Number(header) * 1000 : 0;
}
