/** One conversation as this program follows it: its state, its connection, and everybody who listens for changes. */

import type { EventPage, NewMessage } from "../api.js";
import { ApiError, EverturnError } from "../errors.js";
import { type Http, path, refusal } from "../http.js";
import { eventData } from "../state/events.js";
import { Reducer } from "../state/reducer.js";
import type { State } from "../state/state.js";
import { wait } from "../wait.js";
import { FIRST_RETRY_MS, nextStep } from "../wire/step.js";
import { type Connection, streamFrames } from "../wire/stream.js";
import type { Locks } from "./locks.js";
import { Outbox, type PendingMessage } from "./outbox.js";
import type { TextStorage } from "./storage.js";
import { type ClientTools, ToolRunner, waitingCalls } from "./tools.js";

/** Larger than all sequence numbers: reads backwards from the end. */
export const END = 4_294_967_295;

/** Lets everything else have its turn, so that nobody notices that something long is done. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** What a program shows of a conversation at one moment. The same object stands for as long as nothing changes. */
export interface Update {
  readonly state: State;
  /** Messages that were sent and are not in the log yet. */
  readonly pending: readonly PendingMessage[];
  readonly connection: Connection;
  /** There are events before the first one that is known. */
  readonly hasOlder: boolean;
  /** As many events are known as the limits allow: no older ones are read. */
  readonly isFull: boolean;
}

/** What a session needs to know. */
export interface SessionOptions {
  readonly conversationId: string;
  readonly cursor?: string | undefined;
  readonly history: number;
  readonly tools: ClientTools;
  readonly storage: TextStorage;
  readonly locks: Locks;
  /** What the first message makes the conversation of. */
  readonly first: NonNullable<NewMessage["create"]>;
}

/** Why a conversation cannot be followed. */
interface Failure {
  readonly error: unknown;
}

/** A conversation that is followed while somebody wants to know. */
export class Session {
  readonly outbox: Outbox;
  readonly #http: Http;
  readonly #options: SessionOptions;
  readonly #tools: ToolRunner;
  #reducer: Reducer;
  #isLoaded: boolean;
  #connection: Connection = { status: "closed" };
  #current: Update | undefined;
  readonly #listeners = new Set<() => void>();
  /** Ends the connection; undefined while there is none. */
  #stop: AbortController | undefined;
  /** Why following failed, until it is tried again. */
  #failure: Failure | undefined;
  #isAnnounced = false;
  /** How often a request of this program has created the conversation, or found it. */
  #found = 0;
  /** What was known at first. */
  readonly initial: Update;

  constructor(http: Http, options: SessionOptions) {
    const { conversationId, cursor, storage, first } = options;
    this.#http = http;
    this.#options = options;
    this.#reducer = this.#newReducer(cursor);
    this.#isLoaded = cursor !== undefined;
    this.outbox = new Outbox(http, conversationId, storage, first, () => this.changed(), () => this.exists());
    this.#tools = new ToolRunner(http, conversationId, options.tools, storage, options.locks);
    this.initial = this.current;
  }

  /** What is known now. */
  get current(): Update {
    if (this.#current) return this.#current;
    // Whoever looks before the listeners are told must not see a message twice: pending, and in the log.
    this.outbox.settle(this.#reducer.state.items);
    return (this.#current = {
      state: this.#reducer.state,
      pending: this.outbox.pending,
      connection: this.#connection,
      hasOlder: this.#reducer.firstSequence > 1,
      isFull: this.#reducer.isFull,
    });
  }

  /** Calls the listener after each change, and follows the conversation meanwhile. Returns what ends it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    if (!this.#stop) void this.#follow();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#close();
    };
  }

  /**
   * Yields what is known, and then each change. Whoever is slow skips what lies between. It ends when the gateway says
   * not to come back.
   */
  async *updates(signal: AbortSignal | undefined): AsyncGenerator<Update, void> {
    signal?.throwIfAborted();
    let wake = (): void => undefined;
    let [isNew, hasFailed] = [true, false];
    const unsubscribe = this.subscribe(() => {
      isNew = true;
      wake();
    });
    const abort = () => wake();
    signal?.addEventListener("abort", abort, { once: true });
    try {
      while (!hasFailed) {
        if (isNew) {
          isNew = false;
          yield this.current;
        } else {
          await new Promise<void>((resolve) => (wake = resolve));
        }
        signal?.throwIfAborted();
        hasFailed = this.#failure !== undefined;
        if (!isNew && this.current.state.ended !== null && !this.#stop) return;
      }
      throw this.#failure?.error;
    } finally {
      signal?.removeEventListener("abort", abort);
      unsubscribe();
    }
  }

  /** Reads the events before the first one that is known. False when there are none, or no more are kept. */
  async older(limit: number, signal?: AbortSignal): Promise<boolean> {
    if (this.#reducer.isFull) return false;
    const before = this.#reducer.firstSequence;
    const page = await this.#page(before, limit, signal);
    // Whatever was forgotten meanwhile would be missing between the page and the rest.
    if (this.#reducer.firstSequence > before) return true;
    for (const _ of this.#reducer.prependInSteps(page.events.map(eventData))) await nextTask();
    this.changed();
    return page.events.length > 0;
  }

  /** Forgets all events but the last ones. `older` reads them again. */
  forget(keep: number): void {
    this.#reducer.keepLast(keep);
    this.changed();
  }

  /** Tells the listeners, once for everything that comes together. */
  changed(): void {
    this.#current = undefined;
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    setTimeout(() => {
      this.#isAnnounced = false;
      if (this.#stop) this.#tools.consider(this.#reducer.state.items);
      this.outbox.settle(this.#reducer.state.items);
      for (const listener of [...this.#listeners]) listener();
    });
  }

  /** Follows the conversation that was missing, and that a request of this program has created or found. */
  exists(): void {
    this.#found++;
    const isAwaited = this.#listeners.size > 0 && !this.#stop;
    if (isAwaited && this.#connection.status === "missing") void this.#follow();
  }

  async #follow(): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    this.#failure = undefined;
    for (;;) {
      const found = this.#found;
      const failure = await this.#read(stop);
      // A message that is on its way creates the conversation, also one that was on its way before a reload.
      if (isMissing(failure)) await this.outbox.restore().then(() => this.outbox.sent());
      if (this.#stop !== stop) return;
      if (isMissing(failure) && this.#found !== found) continue;
      this.#failure = failure;
      this.#setConnection(stop, isMissing(failure) ? { status: "missing" } : { status: "closed", ...failure });
      this.#stop = undefined;
      return;
    }
  }

  /** Reads events until the gateway says that no more come. Returns why they cannot be read. */
  async #read(stop: AbortController): Promise<Failure | undefined> {
    try {
      await this.#begin(stop);
      void this.outbox.restore();
      await this.#readStream(stop);
      return undefined;
    } catch (error) {
      return { error };
    }
  }

  async #readStream(stop: AbortController): Promise<void> {
    const query = () => ({ cursor: this.#reducer.state.cursor });
    const onConnection = (connection: Connection) => this.#setConnection(stop, connection);
    const events = path`/agent/conversations/${this.#options.conversationId}/events/stream`;
    const frames = streamFrames(this.#http, { path: events, query, signal: stop.signal, onConnection });
    for await (const frame of frames) {
      if (this.#reducer.apply(frame)) this.changed();
    }
  }

  /** Reads what is needed before the first connection, as patiently as connections are made. */
  async #begin(stop: AbortController): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        this.#setConnection(stop, { status: "connecting" });
        await this.#load(stop.signal);
        return await this.#findCalls(stop.signal);
      } catch (error) {
        stop.signal.throwIfAborted();
        const step = nextStep(refusal(error) ?? { cut: true }, { failures, retryMs: FIRST_RETRY_MS }, Math.random());
        if ("stop" in step || failures >= this.#http.limits.connections) throw error;
        this.#setConnection(stop, { status: "waiting", waitMs: step.waitMs, error });
        await wait(step.waitMs, stop.signal);
      }
    }
  }

  /** Reads the newest page, before the first connection. */
  async #load(signal: AbortSignal): Promise<void> {
    if (this.#isLoaded) return;
    const page = await this.#page(END, this.#options.history, signal);
    signal.throwIfAborted();
    this.#reducer = this.#newReducer(String(page.events.at(-1)?.sequence_number ?? 0));
    this.#reducer.prepend(page.events.map(eventData));
    this.#isLoaded = true;
    this.changed();
  }

  /** Begins the calls that wait for a client since before the first event that is known. */
  async #findCalls(signal: AbortSignal): Promise<void> {
    if (this.#tools.isIdle || this.#reducer.firstSequence <= 1) return;
    const calls = await waitingCalls(this.#http, this.#options.conversationId, signal);
    for (const call of calls) this.#tools.begin(call);
  }

  #page(before: number, limit: number, signal: AbortSignal | undefined): Promise<EventPage> {
    const events = path`/agent/conversations/${this.#options.conversationId}/events`;
    return this.#http.json({ path: events, query: { before, limit }, isRepeatable: true, signal });
  }

  #newReducer(cursor: string | undefined): Reducer {
    const { events: maxEvents, eventChars: maxChars } = this.#http.limits;
    return new Reducer({ cursor, maxEvents, maxChars });
  }

  #setConnection(stop: AbortController, connection: Connection): void {
    if (this.#stop !== stop) return;
    this.#connection = connection;
    this.changed();
  }

  #close(): void {
    const stop = this.#stop;
    if (!stop) return;
    this.#stop = undefined;
    this.#connection = { status: "closed" };
    this.#current = undefined;
    stop.abort(new EverturnError("stream_ended", "Nobody follows the conversation any more."));
  }
}

/** True when the conversation does not exist. */
function isMissing(failure: Failure | undefined): boolean {
  return failure?.error instanceof ApiError && failure.error.code === "conversation_not_found";
}
