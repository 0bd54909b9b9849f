/** Errors. Decide by `code`: it is stable. `message` is a sentence for people. */

import type { Code, Problem } from "./api.js";

/** What the client itself finds wrong. */
export type ClientCode =
  /** No gateway answered, as often as it was tried. */
  | "unreachable"
  /** What answered is no gateway: a proxy, or another program. */
  | "unexpected_answer"
  /** A frame or an answer is larger than the client's limit. */
  | "frame_too_large"
  | "answer_too_large"
  /** Too many messages wait to be sent. */
  | "outbox_full"
  /** The stream ended before the turn did. `message` says why. */
  | "stream_ended";

/** An error of the client. */
export class EverturnError extends Error {
  // Written out, because a bundler gives the classes of a page other names.
  override readonly name: string = "EverturnError";
  /** A stable word: a {@link ClientCode}, a code of the API, or a code of a turn (docs/errors). */
  readonly code: ClientCode | Code | (string & {});
  /** The page of the code, where there is one. */
  readonly docs?: string;

  constructor(code: EverturnError["code"], message: string, options?: { cause?: unknown; docs?: string | undefined }) {
    super(message, { cause: options?.cause });
    this.code = code;
    if (options?.docs !== undefined) this.docs = options.docs;
  }
}

/** The gateway refused a request. `message` is the problem's `detail`. */
export class ApiError extends EverturnError {
  override readonly name = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** One line, the same for each occurrence of the code. */
  readonly title: string;
  /** As in the gateway's log. */
  readonly requestId: string;
  /** Milliseconds after which the request may be repeated; 0 when the gateway does not say. */
  readonly retryAfterMs: number;

  constructor(problem: Problem, docs: string, retryAfterMs: number) {
    super(problem.code, problem.detail, { docs });
    this.status = problem.status;
    this.title = problem.title;
    this.requestId = problem.request_id;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A turn ended without an answer. `code` is that of its event `error`, or `cancelled`. */
export class TurnError extends EverturnError {
  override readonly name = "TurnError";
}
