/** Frames in, state out: everything that a client knows follows from the frames that it has seen. No I/O. */

import { bindMethods } from "../bound.js";
import { count, isObject, text } from "./fields.js";
import { Fold } from "./fold.js";
import { EMPTY_STATE, type Item, type Json, type JsonObject, type State } from "./state.js";
import { Reports } from "./progress.js";
import { Texts } from "./texts.js";
import { Waits } from "./waits.js";

/** A frame of the stream of events. */
export interface Frame {
  /** Of an event: its cursor. */
  readonly id?: string;
  /** The value of `data:`. What is no object is ignored. */
  readonly data: unknown;
}

/** Where a reducer begins, and how much it keeps. */
export interface ReducerOptions {
  /** What came before is not known: the cursor to begin behind. Default `"0"`, the beginning. */
  readonly cursor?: string | undefined;
  /** The most events that are kept, 50 000 by default. Past it, the oldest tenth is forgotten. */
  readonly maxEvents?: number | undefined;
  /** The most characters of the kept events' values, 64 Mi by default. Past it, the oldest are forgotten, too. */
  readonly maxChars?: number | undefined;
}

/** Events that are read in one step: a few milliseconds. */
const STEP = 1000;

interface KnownEvent {
  readonly id: string;
  readonly sequenceNumber: number;
  readonly data: JsonObject;
  readonly chars: number;
}

/** Events that replace the texts of their agent execution. */
const REPLACES_TEXTS = new Set(["thought", "assistant_message", "complete", "error", "cancelled"]);

/** Events that end an agent execution. */
const ENDS = new Set(["complete", "error", "cancelled"]);

/** Turns the frames of one conversation into its state. */
export class Reducer {
  #start: { cursor: string; sequenceNumber: number };
  readonly #maxEvents: number;
  readonly #maxChars: number;
  #events: KnownEvent[] = [];
  /** Of all events. */
  #chars = 0;
  #fold = new Fold();
  readonly #texts = new Texts();
  readonly #waits = new Waits();
  readonly #progress = new Reports();
  #ended: string | null = null;
  /** A copy of the fold's items, which every state has until the next event. Texts, which come often, leave it as it is. */
  #items: readonly Item[] | undefined;
  #state: State | undefined;

  constructor(options: ReducerOptions = {}) {
    const cursor = options.cursor ?? EMPTY_STATE.cursor;
    this.#start = { cursor, sequenceNumber: Number.parseInt(cursor, 10) || 0 };
    this.#maxEvents = options.maxEvents ?? 50_000;
    this.#maxChars = options.maxChars ?? 64 * 1024 * 1024;
    bindMethods(this);
  }

  /** The state now. It is made anew only when something has changed. */
  get state(): State {
    return (this.#state ??= {
      cursor: this.#events.at(-1)?.id ?? this.#start.cursor,
      status: this.#fold.turn === null ? "idle" : this.#fold.isWaiting ? "waiting" : "running",
      turn: this.#fold.turn,
      ended: this.#ended,
      items: (this.#items ??= this.#fold.items.slice()),
      texts: this.#texts.shown(),
      ...(this.#waits.shown.length > 0 && { waits: this.#waits.shown }),
      ...(this.#progress.shown.length > 0 && { progress: this.#progress.shown }),
    });
  }

  /** The number of the first event that is known, or of the next one when none is. */
  get firstSequence(): number {
    return this.#events[0]?.sequenceNumber ?? this.#start.sequenceNumber + 1;
  }

  /** No more events are kept: for each new one, old ones are forgotten. */
  get isFull(): boolean {
    return this.#events.length >= this.#maxEvents || this.#chars >= this.#maxChars;
  }

  /** The number of the last event; 0 before the first. */
  get lastSequence(): number {
    return this.#events.at(-1)?.sequenceNumber ?? this.#start.sequenceNumber;
  }

  /** Takes the next frame. True when the state has changed. */
  apply(frame: Frame): boolean {
    const data = frame.data;
    if (!isObject(data)) return false;
    const hasChanged = this.#take(frame.id, data);
    if (hasChanged) this.#state = undefined;
    return hasChanged;
  }

  /**
   * Adds events from before the first that is known, in their order, each as its frame's data has it. Those that are
   * known already are left out.
   */
  prepend(older: readonly JsonObject[]): void {
    for (const _ of this.prependInSteps(older));
  }

  /**
   * Does what `prepend` does, in steps: all events are read anew, which takes a while when they are many. Between two steps
   * the state is the one from before, and frames may be applied.
   */
  *prependInSteps(older: readonly JsonObject[]): Generator<void, void> {
    const before = this.firstSequence;
    const events = older.flatMap((data) => known(undefined, data) ?? []);
    // Events that come meanwhile are added to the same array. Another array is another log, and everything begins anew.
    for (let newer = this.#events, isDone = false; !isDone; newer = this.#events) {
      const added = events.filter((event) => event.sequenceNumber < this.firstSequence);
      const hasGap = this.firstSequence > before;
      if (added.length === 0 || hasGap) return;
      const fold = new Fold();
      let at = 0;
      for (; newer === this.#events && at < added.length + newer.length; at++) {
        const event = (added[at] ?? newer[at - added.length])!;
        fold.apply(event.data, event.sequenceNumber);
        if (at % STEP === STEP - 1) yield;
      }
      isDone = newer === this.#events;
      if (isDone) this.#replace([...added, ...newer], fold);
    }
  }

  /** Forgets all events but the last ones, at least one. They can be read and prepended again. */
  keepLast(count: number): void {
    const kept = Math.max(1, count);
    if (this.#events.length > kept) this.#refold(this.#events.slice(-kept));
  }

  #take(frameId: string | undefined, data: JsonObject): boolean {
    const event = known(frameId, data);
    if (event) return this.#takeEvent(event);
    switch (data["type"]) {
      case "replay":
        return this.#connect();
      case "text_start":
      case "text_delta":
      case "text_end":
        return this.#takeText(data, text(data, "agent_execution_id"));
      case "model_waiting":
        return this.#waits.apply(data);
      case "tool_progress":
        return this.#progress.apply(data);
      case "reset":
        return this.#reset(count(data, "from_sequence") ?? 1);
      case "end":
        this.#ended = text(data, "reason");
        return true;
      default:
        return false;
    }
  }

  /** Begins another connection: what is still open comes anew. */
  #connect(): boolean {
    const hadEnded = this.#ended !== null;
    this.#ended = null;
    const hadWaits = this.#waits.clear();
    const hadProgress = this.#progress.clear();
    return this.#texts.clear() || hadEnded || hadWaits || hadProgress;
  }

  /** Takes a text frame. A model that writes waits no longer. */
  #takeText(data: JsonObject, agentExecutionId: string): boolean {
    const hadWait = this.#waits.drop(agentExecutionId);
    return this.#texts.apply(data, this.#fold.parentOf(agentExecutionId)) || hadWait;
  }

  #takeEvent(event: KnownEvent): boolean {
    if (event.sequenceNumber <= this.lastSequence) return false;
    this.#events.push(event);
    this.#chars += event.chars;
    this.#dropProgress(event.data);
    if (REPLACES_TEXTS.has(text(event.data, "type"))) {
      this.#texts.drop(text(event.data, "agent_execution_id"));
      this.#waits.drop(text(event.data, "agent_execution_id"));
    }
    if (this.#events.length > this.#maxEvents || this.#chars > this.#maxChars) {
      this.#refold(this.#newest());
    } else {
      this.#fold.apply(event.data, event.sequenceNumber);
      this.#items = undefined;
    }
    return true;
  }

  /** Drops the reports of a tool, or of the tools of an agent, that has ended. */
  #dropProgress(data: JsonObject): void {
    const type = text(data, "type");
    if (type === "observe") this.#progress.drop(text(data, "execution_id"));
    if (ENDS.has(type)) this.#progress.dropOfAgent(text(data, "agent_execution_id"));
  }

  /** The newest events: nine tenths of what may be kept, but at least one. */
  #newest(): KnownEvent[] {
    const all = this.#events;
    let [from, chars] = [all.length, 0];
    do {
      from--;
      chars += all[from]!.chars;
    } while (from > 0 && all.length - from < 0.9 * this.#maxEvents && chars + all[from - 1]!.chars <= 0.9 * this.#maxChars);
    return all.slice(from);
  }

  /** Forgets the events from this number on: another log has taken their place. */
  #reset(from: number): boolean {
    this.#texts.clear();
    this.#waits.clear();
    this.#progress.clear();
    if (from <= this.#start.sequenceNumber) {
      const before = Math.max(0, from - 1);
      this.#start = { cursor: String(before), sequenceNumber: before };
    }
    this.#refold(this.#events.filter((event) => event.sequenceNumber < from));
    return true;
  }

  #refold(events: KnownEvent[]): void {
    const fold = new Fold();
    for (const event of events) fold.apply(event.data, event.sequenceNumber);
    this.#replace(events, fold);
  }

  #replace(events: KnownEvent[], fold: Fold): void {
    this.#events = events;
    this.#chars = events.reduce((sum, event) => sum + event.chars, 0);
    this.#fold = fold;
    this.#items = undefined;
    this.#state = undefined;
  }
}

/** Returns the event that a frame is; undefined when it is none. */
function known(frameId: string | undefined, data: JsonObject): KnownEvent | undefined {
  const sequenceNumber = count(data, "sequence_number");
  if (!sequenceNumber || typeof data["type"] !== "string") return undefined;
  return { id: frameId || String(sequenceNumber), sequenceNumber, data, chars: charsOf(data) };
}

/** About how many characters a value has: those of its texts and names, and some for each other value. */
function charsOf(value: Json): number {
  let chars = 0;
  const open: Json[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next === "string") chars += next.length;
    else if (typeof next !== "object" || next === null) chars += 8;
    else if (Array.isArray(next)) for (const inner of next) open.push(inner);
    else {
      for (const name in next) {
        chars += name.length;
        open.push(next[name] ?? null);
      }
    }
  }
  return chars;
}

/** The state after these frames. */
export function reduce(frames: Iterable<Frame>, options?: ReducerOptions): State {
  const reducer = new Reducer(options);
  for (const frame of frames) reducer.apply(frame);
  return reducer.state;
}
