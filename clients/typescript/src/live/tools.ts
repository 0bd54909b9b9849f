/** Client tools: calls that the turn waits for run here, and their results are posted. */

import type { ClaimedClientTool, WaitingCall } from "../api.js";
import { ApiError } from "../errors.js";
import { type Http, path } from "../http.js";
import { newId } from "../ids.js";
import { isObject } from "../state/fields.js";
import type { Item, Json } from "../state/state.js";
import { wait } from "../wait.js";
import { alone, type Locks } from "./locks.js";
import { keep, stored, type TextStorage } from "./storage.js";

/** A call, as its tool sees it. */
export interface ToolContext {
  readonly conversationId: string;
  /** The tool execution: the same for every run of this call. */
  readonly executionId: string;
  /** Aborted when nobody waits for the result any more. */
  readonly signal: AbortSignal;
}

/** Runs a call. What it returns is the result; what it throws is an error that the model reads. */
export type ToolFunction = (input: any, context: ToolContext) => unknown;

/** A tool that this program runs. */
export interface ClientTool {
  readonly run: ToolFunction;
  /**
   * True for a tool that does no harm when it runs twice, as one that only reads. Another one is not run again when it
   * was cut off, by a reload for instance: the model is told that its outcome is unknown.
   */
  readonly mayRepeat?: boolean;
}

/** The tools of a program, by the names that the gateway's configuration gives them. */
export type ClientTools = Readonly<Record<string, ToolFunction | ClientTool>>;

/** A call that waits for a client. */
export interface OpenCall {
  readonly executionId: string;
  readonly toolName: string;
  readonly toolInput: Json;
}

interface Result {
  readonly result: unknown;
  readonly is_error: boolean;
}

const UNKNOWN: Result = {
  result: { error: "The client stopped while it ran this call. Whether it took effect is unknown." },
  is_error: true,
};

/** Milliseconds between two claims of a call that runs. A claim that is not made again holds for 30 s. */
const RENEW_MS = 10_000;

/** The call has ended, or is none: nobody waits for a result. */
class NothingToRun extends Error {}

/** Another client runs the call. */
class Held extends Error {
  constructor(readonly waitMs: number) {
    super("Another client runs this call.");
  }
}

/**
 * Runs the client tools of one conversation: each call once, also when the conversation is open in several tabs, or on
 * several devices.
 */
export class ToolRunner {
  readonly #http: Http;
  readonly #conversationId: string;
  readonly #tools: ReadonlyMap<string, ClientTool>;
  readonly #storage: TextStorage;
  readonly #locks: Locks;
  /** The calls that were begun here, and what aborts each. */
  readonly #begun = new Map<string, AbortController>();
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(http: Http, conversationId: string, tools: ClientTools, storage: TextStorage, locks: Locks) {
    this.#http = http;
    this.#locks = locks;
    this.#conversationId = conversationId;
    this.#storage = storage;
    const named = Object.entries(tools).map(([name, tool]) => [name, typeof tool === "function" ? { run: tool } : tool]);
    this.#tools = new Map(named as [string, ClientTool][]);
  }

  /** True when there is no tool to run. */
  get isIdle(): boolean {
    return this.#tools.size === 0;
  }

  /** Begins the calls that wait, and aborts those that nobody waits for any more. */
  consider(items: readonly Item[]): void {
    if (this.isIdle) return;
    for (const item of items) {
      if (item.type !== "tool_call" || !item.clientTool || item.executionId === undefined) continue;
      const { executionId, toolName, toolInput } = item;
      if (item.state === "running") this.begin({ executionId, toolName, toolInput });
      else this.#forget(executionId);
    }
  }

  /** Begins a call, unless it was begun or its tool is not one of ours. */
  begin(call: OpenCall): void {
    const tool = this.#tools.get(call.toolName);
    if (!tool || this.#begun.has(call.executionId)) return;
    const abort = new AbortController();
    this.#begun.set(call.executionId, abort);
    // The result waits in the storage. The call is considered again with the next update.
    const failed = () => void (abort.signal.aborted || this.#begun.delete(call.executionId));
    this.#runWhenFree(tool, call, abort.signal).catch(failed);
  }

  /** Runs a call, as soon as no other client does. */
  async #runWhenFree(tool: ClientTool, call: OpenCall, signal: AbortSignal): Promise<void> {
    const run = async (isLate: boolean) => {
      if (signal.aborted || (isLate && !(await this.#isWaiting(call)))) return;
      await this.#runOnce(tool, call, signal);
    };
    for (;;) {
      try {
        return await this.#inTurn(() => alone(this.#locks, this.#key(call.executionId), signal, run));
      } catch (error) {
        if (!(error instanceof Held)) throw error;
        await wait(error.waitMs, signal);
      }
    }
  }

  /** A call has ended, so nobody waits for it, and nobody will ask what became of it. */
  #forget(executionId: string): void {
    const begun = this.#begun.get(executionId);
    if (!begun || begun.signal.aborted) return;
    begun.abort(new Error("The call has ended."));
    this.#storage.removeItem(this.#key(executionId));
  }

  #key(executionId: string): string {
    return `everturn-tool/${this.#conversationId}/${executionId}`;
  }

  async #isWaiting({ executionId }: OpenCall): Promise<boolean> {
    const calls = await waitingCalls(this.#http, this.#conversationId);
    return calls.some((call) => call.executionId === executionId);
  }

  async #inTurn(run: () => Promise<void>): Promise<void> {
    if (this.#running >= this.#http.limits.parallelTools) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running++;
    }
    try {
      await run();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  async #runOnce(tool: ClientTool, call: OpenCall, signal: AbortSignal): Promise<void> {
    try {
      await this.#post(call.executionId, await this.#result(tool, call, signal));
    } catch (error) {
      if (!(error instanceof NothingToRun)) throw error;
      this.#storage.removeItem(this.#key(call.executionId));
    }
  }

  /** The result of a call: it runs, unless it ran before, or was cut off and may not run twice. */
  async #result(tool: ClientTool, call: OpenCall, signal: AbortSignal): Promise<Result> {
    const key = this.#key(call.executionId);
    const before = stored(this.#storage, key);
    const known = isObject(before) ? before : {};
    if ("is_error" in known) return known as unknown as Result;
    // Who had begun it here claims it again after a reload, and need not wait until its own claim has ended.
    const begunBy = typeof known["claimant"] === "string" ? known["claimant"] : undefined;
    const claimant = begunBy ?? newId();
    const isRepeated = await this.#claim(call.executionId, claimant);
    if ((isRepeated || begunBy !== undefined) && tool.mayRepeat !== true) return UNKNOWN;
    keep(this.#storage, key, JSON.stringify({ claimant }));
    const renewing = setInterval(() => void this.#claim(call.executionId, claimant).catch(() => undefined), RENEW_MS);
    (renewing as { unref?: () => void }).unref?.(); // in Node, a claim alone is no reason to stay
    try {
      const result = await this.#run(tool, call, signal);
      keep(this.#storage, key, JSON.stringify(result));
      return result;
    } finally {
      clearInterval(renewing);
    }
  }

  /**
   * Claims a call. True when another client had begun it.
   *
   * @throws {Held} that another client runs it.
   * @throws {NothingToRun} that it waits no more.
   */
  async #claim(executionId: string, claimant: string): Promise<boolean> {
    const target = path`/agent/conversations/${this.#conversationId}/client-tools/${executionId}/claim`;
    const request = { method: "POST", path: target, json: { claimant }, isRepeatable: true } as const;
    try {
      return (await this.#http.json<ClaimedClientTool>(request)).is_repeated;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500 || error.status === 429) throw error;
      throw error.code === "client_tool_claimed" ? new Held(Math.max(error.retryAfterMs, 1000)) : new NothingToRun();
    }
  }

  async #run(tool: ClientTool, call: OpenCall, signal: AbortSignal): Promise<Result> {
    try {
      const { executionId } = call;
      const context = { conversationId: this.#conversationId, executionId, signal };
      const result = await tool.run(call.toolInput, context);
      return { result: result ?? null, is_error: false };
    } catch (error) {
      return { result: { error: error instanceof Error ? error.message : String(error) }, is_error: true };
    }
  }

  async #post(executionId: string, result: Result): Promise<void> {
    const target = path`/agent/conversations/${this.#conversationId}/client-tools/${executionId}`;
    const send = (json: Result) => this.#http.json({ method: "POST", path: target, json, isRepeatable: true });
    try {
      await send(result);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "result_too_large") {
        await send({ result: { error: error.message }, is_error: true });
      } else if (error.status >= 500 || error.status === 429) {
        throw error;
      }
      // Else somebody else was first, or nobody waits any more.
    }
  }
}

/** The calls of a conversation that wait for a client. */
export async function waitingCalls(http: Http, conversationId: string, signal?: AbortSignal): Promise<OpenCall[]> {
  const calls = path`/agent/conversations/${conversationId}/client-tools`;
  const answer = await http.json<{ client_tools: WaitingCall[] }>({ path: calls, isRepeatable: true, signal });
  return answer.client_tools.map(({ execution_id, tool_name, tool_input }) => ({
    executionId: execution_id,
    toolName: tool_name,
    toolInput: tool_input as Json,
  }));
}
