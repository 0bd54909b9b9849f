/** What a program may set, and the limits that hold when it sets nothing. */

/** How a client reaches its gateways. */
export interface EverturnOptions {
  /** Where a gateway, or the load balancer before them, listens: `https://agents.example.com`. */
  readonly url: string;
  /** A key or a token, or a function that gets one for each request. A browser with a session's cookie needs none. */
  readonly key?: string | (() => string | Promise<string>) | undefined;
  /** Whether requests carry cookies, as in `fetch`. Default: that of `fetch`. */
  readonly credentials?: RequestInit["credentials"] | undefined;
  /** Another `fetch`, for a proxy or a test. */
  readonly fetch?: typeof fetch | undefined;
  readonly limits?: Partial<Limits> | undefined;
}

/** Limits of a client. */
export interface Limits {
  /** Milliseconds until a request without an answer is given up. */
  readonly requestMs: number;
  /** How often a request that may be repeated is tried, while nobody answers or the answer may pass. */
  readonly attempts: number;
  /** Bytes of an answer that is no stream. */
  readonly answerBytes: number;
  /** Characters of a frame. */
  readonly frameChars: number;
  /** Milliseconds without a byte after which a stream counts as dead. Gateways send one every 15 s. */
  readonly silenceMs: number;
  /** Connections in a row without a frame, until following a conversation fails. */
  readonly connections: number;
  /** Events that a conversation keeps in memory; past it, the oldest are forgotten. */
  readonly events: number;
  /** Messages of a conversation that wait to be sent. */
  readonly outbox: number;
  /** Client tools of a conversation that run at once; further calls wait. */
  readonly parallelTools: number;
}

/** The limits that hold when a program sets no others. */
export const DEFAULT_LIMITS: Limits = {
  requestMs: 30_000,
  attempts: 5,
  answerBytes: 32 * 1024 * 1024,
  frameChars: 16 * 1024 * 1024,
  silenceMs: 45_000,
  connections: 20,
  events: 50_000,
  outbox: 100,
  parallelTools: 16,
};
