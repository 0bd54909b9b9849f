/** Requests and their answers: credentials, time-outs, repetitions, errors. */

import { ApiError, EverturnError } from "./errors.js";
import { DEFAULT_LIMITS, type EverturnOptions, type Limits } from "./options.js";
import type { Problem } from "./api.js";
import { isObject } from "./state/fields.js";
import { anySignal, wait } from "./wait.js";
import { isPermanent, nextStep, retryAfterMs } from "./wire/step.js";

/** The milliseconds from which the pauses between attempts grow. */
const FIRST_PAUSE_MS = 200;

/** One request. */
export interface Request {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** Below `/api/v1`. Ids in it are encoded by {@link path}. */
  readonly path: string;
  readonly query?: Record<string, string | number | undefined>;
  readonly headers?: Record<string, string>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is. */
  readonly body?: NonNullable<RequestInit["body"]>;
  /** It has the same effect when it is sent twice, so it is repeated when nobody answers. */
  readonly isRepeatable?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Writes a path; what is put in is encoded. */
export function path(strings: TemplateStringsArray, ...ids: string[]): string {
  // A URL has no way to write these: they would lead to another path.
  if (ids.some((id) => id === "" || id === "." || id === "..")) {
    throw new EverturnError("invalid_id", `There is nothing with the id \`${ids.join("/")}\`.`);
  }
  return String.raw({ raw: strings }, ...ids.map(encodeURIComponent));
}

/** The gateways, as seen by one caller. */
export class Http {
  readonly limits: Limits;
  readonly #options: EverturnOptions;
  readonly #base: string;

  constructor(options: EverturnOptions) {
    this.#options = options;
    this.#base = options.url.replace(/\/+$/, "");
    this.limits = { ...DEFAULT_LIMITS, ...options.limits };
  }

  /** True when another credential can be got for the next request. */
  get getsKeys(): boolean {
    return typeof this.#options.key === "function";
  }

  /** Sends a request and reads the JSON of its answer; undefined when there is none. */
  async json<T>(request: Request): Promise<T> {
    const bytes = await this.bytes(request);
    if (bytes.length === 0) return undefined as T;
    try {
      return JSON.parse(new TextDecoder().decode(bytes)) as T;
    } catch (cause) {
      throw unexpected(`${request.path} was answered with something that is no JSON.`, cause);
    }
  }

  /** Sends a request and reads its answer. */
  async bytes(request: Request): Promise<Uint8Array> {
    const most = request.isRepeatable ? this.limits.attempts : 1;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(request);
      } catch (error) {
        if (attempt >= most || request.signal?.aborted || !mayPass(error)) throw error;
        const least = error instanceof ApiError ? error.retryAfterMs : 0;
        const step = nextStep({ cut: true }, { failures: attempt, retryMs: FIRST_PAUSE_MS }, Math.random());
        const pause = "waitMs" in step ? Math.max(step.waitMs, least) : least;
        await wait(pause, request.signal ?? new AbortController().signal);
      }
    }
  }

  /** Sends a request, and returns the response when it is a success. The caller reads and cancels its body. */
  async open(request: Request, signal: AbortSignal): Promise<Response> {
    const response = await this.#fetch(request, signal);
    if (response.ok) return response;
    throw await this.#problem(response);
  }

  async #attempt(request: Request): Promise<Uint8Array> {
    const timeout = AbortSignal.timeout(this.limits.requestMs);
    const { signal, release } = anySignal(request.signal, timeout);
    try {
      const response = await this.open(request, signal);
      return await readAll(response, this.limits.answerBytes);
    } catch (error) {
      request.signal?.throwIfAborted();
      if (error instanceof EverturnError) throw error;
      const detail = timeout.aborted ? `gave no answer within ${this.limits.requestMs} ms` : "cannot be reached";
      throw new EverturnError("unreachable", `The gateway at ${this.#base} ${detail}.`, { cause: error });
    } finally {
      release();
    }
  }

  async #fetch({ method, path, query, headers, json, body }: Request, signal: AbortSignal): Promise<Response> {
    const { key, credentials, fetch: own } = this.#options;
    const url = new URL(`${this.#base}/api/v1${path}`);
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const sent = new Headers(headers);
    const bearer = typeof key === "function" ? await key() : key;
    if (bearer !== undefined) sent.set("authorization", `Bearer ${bearer}`);
    if (json !== undefined) sent.set("content-type", "application/json");
    return (own ?? fetch)(url, {
      method: method ?? "GET",
      headers: sent,
      signal,
      ...(credentials === undefined ? {} : { credentials }),
      ...(json === undefined ? (body === undefined ? {} : { body }) : { body: JSON.stringify(json) }),
    });
  }

  async #problem(response: Response): Promise<EverturnError> {
    const wanted = retryAfterMs(response.headers.get("retry-after"));
    const bytes = await readAll(response, this.limits.answerBytes);
    try {
      const problem = JSON.parse(new TextDecoder().decode(bytes)) as unknown;
      if (isObject(problem) && typeof problem["code"] === "string") {
        const known = problem as unknown as Problem;
        return new ApiError(known, new URL(known.type ?? "", `${this.#base}/`).href, wanted);
      }
    } catch {
      // It is no problem of a gateway's, which the sentence below says.
    }
    return new NotAGateway(response.status, wanted);
  }
}

/** Something between the client and the gateway answered with an error of its own. */
class NotAGateway extends EverturnError {
  constructor(
    readonly status: number,
    readonly retryAfterMs: number,
  ) {
    super("unexpected_answer", `Something that is no gateway answered with the status ${status}.`);
  }
}

/** The status of a refusal; undefined when nobody answered. */
export function refusal(error: unknown): { status: number; retryAfter: string } | undefined {
  if (!(error instanceof ApiError || error instanceof NotAGateway)) return undefined;
  return { status: error.status, retryAfter: String(error.retryAfterMs / 1000) };
}

/** True when the same request may succeed later. */
function mayPass(error: unknown): boolean {
  const refused = refusal(error);
  if (refused) return !isPermanent(refused.status);
  return error instanceof EverturnError && error.code === "unreachable";
}

function unexpected(sentence: string, cause: unknown): EverturnError {
  return new EverturnError("unexpected_answer", sentence, { cause });
}

/** Reads a body, but no more than so many bytes. */
async function readAll(response: Response, maxBytes: number): Promise<Uint8Array> {
  if (!response.body) return new Uint8Array();
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    chunks.push(read.value);
    length += read.value.length;
    if (length > maxBytes) {
      await reader.cancel();
      throw new EverturnError("answer_too_large", `An answer has more than ${maxBytes} bytes.`);
    }
  }
  const bytes = new Uint8Array(length);
  chunks.reduce((at, chunk) => (bytes.set(chunk, at), at + chunk.length), 0);
  return bytes;
}
