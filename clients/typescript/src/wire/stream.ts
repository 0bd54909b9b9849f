/** The frames of a stream of the API, over as many connections as it takes. */

import { EverturnError } from "../errors.js";
import { type Http, type Request, refusal } from "../http.js";
import { isObject } from "../state/fields.js";
import type { Frame } from "../state/reducer.js";
import { anySignal, wait } from "../wait.js";
import { SseParser } from "./sse.js";
import { FIRST_RETRY_MS, nextStep, type Outcome } from "./step.js";

/** How the connection is, for people. */
export type Connection =
  /** Nobody follows the conversation, or it cannot be followed: `error` says why. */
  | { readonly status: "closed"; readonly error?: unknown }
  /** The conversation does not exist. It is followed as soon as a message of this program has created it. */
  | { readonly status: "missing" }
  | { readonly status: "connecting" }
  | { readonly status: "open" }
  /** It was lost, and is made again after so many milliseconds. */
  | { readonly status: "waiting"; readonly waitMs: number; readonly error?: unknown };

/** Where a stream begins, and whom it tells. */
export interface StreamOptions {
  /** The stream, as {@link Request.path}. */
  readonly path: string;
  /** What to connect with, like a cursor: asked for each connection. */
  readonly query?: () => NonNullable<Request["query"]>;
  readonly signal: AbortSignal;
  readonly onConnection?: (connection: Connection) => void;
}

/**
 * Yields the frames of a stream, each as soon as it is complete. It comes back after each cut, and ends only with
 * the frame `end`.
 *
 * @throws {EverturnError} that the gateway refuses the stream for good, or that it cannot be reached.
 */
export async function* streamFrames(http: Http, options: StreamOptions): AsyncGenerator<Frame, void> {
  const { signal } = options;
  let [failures, retryMs] = [0, FIRST_RETRY_MS];
  for (;;) {
    options.onConnection?.({ status: "connecting" });
    let outcome: Outcome = { cut: true };
    let [hasFrame, error]: [boolean, unknown] = [false, undefined];
    try {
      for await (const message of connect(http, options)) {
        retryMs = message.retry ?? retryMs;
        const frame = frameOf(message);
        if (!frame) continue;
        if (!hasFrame) options.onConnection?.({ status: "open" });
        hasFrame = true;
        const own = ownOutcome(frame.data, http.getsKeys);
        yield frame;
        if (own) {
          outcome = own;
          break;
        }
      }
    } catch (caught) {
      signal.throwIfAborted();
      if (caught instanceof EverturnError && caught.code === "frame_too_large") throw caught;
      error = caught;
      outcome = refusal(caught) ?? outcome;
    }
    failures = hasFrame ? 0 : failures + 1;
    const step = nextStep(outcome, { failures, retryMs }, Math.random());
    if ("stop" in step && step.stop === "ended") return;
    if ("stop" in step || failures >= http.limits.connections) throw failure(error);
    options.onConnection?.({ status: "waiting", waitMs: step.waitMs, error });
    await wait(step.waitMs, signal);
  }
}

function failure(error: unknown): unknown {
  if (error instanceof EverturnError) return error;
  return new EverturnError("unreachable", "The stream cannot be opened.", { cause: error });
}

/** Yields the messages of one connection. It ends, or throws, when the connection does. */
async function* connect(http: Http, { path, query, signal }: StreamOptions) {
  const silence = new AbortController();
  const listen = () => setTimeout(() => silence.abort(new Error("The gateway is silent.")), http.limits.silenceMs);
  let timer = listen();
  const either = anySignal(signal, silence.signal);
  try {
    const request = {
      path,
      query: query?.() ?? {},
      headers: { accept: "text/event-stream" },
    };
    const response = await http.open(request, either.signal);
    if (!response.headers.get("content-type")?.startsWith("text/event-stream") || !response.body) {
      await response.body?.cancel();
      throw new EverturnError("unexpected_answer", "The stream was answered with something else.");
    }
    const parser = new SseParser(http.limits.frameChars);
    const reader = response.body.getReader();
    try {
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        clearTimeout(timer);
        timer = listen();
        yield* parser.push(read.value);
      }
    } finally {
      // Whoever leaves in the middle closes the connection; a broken one may refuse, which changes nothing.
      await reader.cancel().catch(() => undefined);
    }
  } finally {
    clearTimeout(timer);
    either.release();
  }
}

/** The frame of a message; undefined for one that has no data, or none that can be read. */
function frameOf({ id, data }: { id?: string; data: string }): Frame | undefined {
  if (data === "") return undefined;
  try {
    const value = JSON.parse(data) as unknown;
    return id === undefined ? { data: value } : { id, data: value };
  } catch {
    return undefined;
  }
}

/** How a frame says that its connection ends. Whoever can get another credential comes back with it. */
function ownOutcome(data: unknown, getsKeys: boolean): Outcome | undefined {
  if (!isObject(data) || "sequence_number" in data) return undefined;
  if (data["type"] === "end" && data["reason"] === "token_expired" && getsKeys) return { delayMs: 0 };
  if (data["type"] === "end") return { end: String(data["reason"]) };
  const delay = data["delay_ms"];
  if (data["type"] !== "reconnect") return undefined;
  return { delayMs: typeof delay === "number" && delay >= 0 ? Math.min(delay, 600_000) : FIRST_RETRY_MS };
}
