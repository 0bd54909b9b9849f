/** A conversation: what is said in it, and what may be done with it. */

import type {
  AcceptedMessage,
  AgentExecutionDetail,
  AgentExecutions,
  AnsweredApproval,
  Cancelled,
  Conversation as ConversationRow,
  ConversationDetail,
  EventPage,
  ExecutionStatus,
  ModelCallContent,
  ModelCalls,
  NewMessage,
  PendingApproval,
  Resumed,
  SettledToolOutcome,
  StoredResult,
  Timeline,
  ToolResultSlice,
  WaitingCall,
} from "./api.js";
import { bindMethods } from "./bound.js";
import { EverturnError, TurnError } from "./errors.js";
import { type Http, path, type Request } from "./http.js";
import { newId } from "./ids.js";
import { defaultLocks, type Locks } from "./live/locks.js";
import type { PendingMessage } from "./live/outbox.js";
import { END, Session, type Update } from "./live/session.js";
import { memoryStorage, type TextStorage } from "./live/storage.js";
import type { ClientTools } from "./live/tools.js";
import { answerOfTurn, endOfTurn, itemsOfTurn } from "./state/select.js";
import type { End, Item, Json, JsonObject, ToolCall } from "./state/state.js";

/** Events of the newest page, by default. */
const HISTORY = 1000;

/** How a conversation is followed. */
export interface ConversationOptions {
  /** The agent of a conversation that the first message creates. */
  readonly agent?: string;
  /** The title of a conversation that the first message creates. */
  readonly title?: string;
  /** The model of the messages of a conversation that the first message creates: `provider/model`. */
  readonly model?: string;
  /** Begins behind this cursor, which a state had, instead of with the newest page. */
  readonly cursor?: string;
  /** Events of the newest page, with which a conversation begins: 1 to 1000, by default 1000. */
  readonly history?: number;
  /** The client tools that this program runs. */
  readonly tools?: ClientTools;
  /** What survives a reload: `localStorage` in a browser. Without it, as on a server, nothing does. */
  readonly storage?: TextStorage | undefined;
  /** What lets a single tab run a call of a client tool: `navigator.locks`, which pages with TLS have by default. */
  readonly locks?: Locks;
}

/** How a message is sent. */
export interface SendOptions {
  /** Your own id of the message: the same one twice in a conversation is one message. By default a new one. */
  readonly messageId?: string;
  /** Files that were uploaded before. */
  readonly attachments?: NewMessage["attachments"];
  /** The model of the whole turn, `provider/model`, among the `models` of the agent. By default the conversation's. */
  readonly model?: NewMessage["model"];
  /** What to do while a turn runs: `queue` (default), `steer`, `interrupt` or `reject`. */
  readonly onBusy?: NewMessage["on_busy"];
  readonly signal?: AbortSignal;
}

/** The answer of a turn. */
export interface Answer {
  /** What the agent answered, whole: a provider may have cut it into parts. */
  readonly content: string;
  /** The value of the answer, when the agent has an output schema. */
  readonly output?: Json;
  readonly end: End;
  /** Everything of the turn that is known. */
  readonly items: readonly Item[];
}

/** A call that waits for a person: from the state, or from the list of approvals. */
export type ApprovalRequest = ToolCall | PendingApproval;

/** How a call is approved, or its question answered. */
export interface ApproveOptions {
  /** An input instead of the input of the model. */
  readonly toolInput?: Json;
  /** The input as JSON text, which is sent as it is: `toolInput` cannot have numbers of more than 15 digits. */
  readonly toolInputText?: string;
  /** Never ask for this tool again in the conversation. */
  readonly remember?: boolean;
  /** The answer to a question with a `schema`. A question with a `url` has none. */
  readonly answer?: JsonObject;
  /** The answer as JSON text, which is sent as it is. */
  readonly answerText?: string;
  readonly signal?: AbortSignal;
}

/** One conversation. It is followed while somebody iterates over it or listens. Its methods are bound. */
export class Conversation {
  readonly id: string;
  readonly #http: Http;
  readonly #session: Session;
  readonly #options: ConversationOptions;
  readonly #path: string;

  /** Use `everturn.conversation(id)`. */
  constructor(http: Http, id: string, options: ConversationOptions) {
    this.#http = http;
    this.id = id;
    this.#path = path`/agent/conversations/${id}`;
    this.#options = options;
    this.#session = new Session(http, {
      conversationId: id,
      cursor: options.cursor,
      history: options.history ?? HISTORY,
      tools: options.tools ?? {},
      storage: options.storage ?? memoryStorage(),
      locks: options.locks ?? defaultLocks(),
      first: firstMessage(options),
    });
    bindMethods(this);
  }

  /** What is known now. The same object stands for as long as nothing changes. */
  get current(): Update {
    return this.#session.current;
  }

  /** Returns `current`, for React's `useSyncExternalStore(chat.subscribe, chat.getSnapshot, chat.getServerSnapshot)`. */
  getSnapshot(): Update {
    return this.current;
  }

  /** Returns what was known at first: what a server renders, and what the browser then begins with. */
  getServerSnapshot(): Update {
    return this.#session.initial;
  }

  /**
   * Calls the listener after each change, and follows the conversation until the function that it returns is called. A
   * conversation that does not exist is `missing`, and followed as soon as a message of this program has created it.
   */
  subscribe(listener: () => void): () => void {
    return this.#session.subscribe(listener);
  }

  /**
   * Yields what is known, and then each change, over cuts and reconnections. Whoever is slow skips what lies between.
   * It ends when the gateway says not to come back: `state.ended` says why.
   *
   * @throws {ApiError} that the gateway refuses the stream, as for a conversation that is not there.
   */
  follow(options?: { signal?: AbortSignal }): AsyncGenerator<Update, void> {
    return this.#session.updates(options?.signal);
  }

  /**
   * Sends a message when the first update is asked for, and yields updates until its turn has ended. The message is
   * `pending` at once. A conversation that is missing is created.
   *
   * @throws {EverturnError} that the message was refused, or that the stream ended before the turn.
   */
  send(content: string, options: SendOptions = {}): AsyncGenerator<Update, void> {
    return this.#turn(content, options, {});
  }

  /**
   * Sends a message and waits for the answer.
   *
   * @throws {TurnError} that the turn ended without one.
   */
  async ask(content: string, options: SendOptions = {}): Promise<Answer> {
    const sent: { messageId?: string } = {};
    for await (const _ of this.#turn(content, options, sent));
    return answer(this.current.state.items, sent.messageId ?? "");
  }

  /**
   * Sends a message, and does not wait for its turn. It is `pending` until its turn takes it.
   *
   * @throws {EverturnError} that it was refused, or that nobody answered. It is then `failed`: post it again with the
   * same `messageId`, or discard it.
   */
  post(content: string, { signal, ...options }: SendOptions = {}) {
    const messageId = options.messageId ?? newId();
    return this.#session.outbox.post({ ...options, content, messageId }, signal);
  }

  /** Forgets a message that failed. */
  discard(message: Pick<PendingMessage, "messageId">): void {
    this.#session.outbox.discard(message.messageId);
  }

  /**
   * Reads events before the first one that is known, into the state. False when there are none, or when no more are kept
   * (`limits.events`, `limits.eventChars`).
   */
  older(limit = HISTORY, signal?: AbortSignal): Promise<boolean> {
    return this.#session.older(limit, signal);
  }

  /**
   * Forgets all events but the last `keep`, so that a program that shows a long conversation for long needs no more memory
   * than at first. `older` reads them again.
   */
  forget(keep = HISTORY): void {
    this.#session.forget(keep);
  }

  /** Creates the conversation. One that is there stays as it is. */
  async create(signal?: AbortSignal): Promise<ConversationRow> {
    const json = { id: this.id, ...firstMessage(this.#options) };
    const request = { method: "POST", path: "/agent/conversations", json, isRepeatable: true, signal } as const;
    const row = await this.#http.json<ConversationRow>(request);
    this.#session.exists();
    return row;
  }

  /** Its title, agent and activity, and the usage and cost of its LLM calls. */
  show(signal?: AbortSignal): Promise<ConversationDetail> {
    return this.#http.json(this.#request("", { signal }));
  }

  /** Gives it another title. */
  rename(title: string, signal?: AbortSignal): Promise<ConversationRow> {
    return this.#http.json(this.#request("", { method: "PATCH", json: { title }, signal }));
  }

  /** Chooses the model of new messages: `provider/model`, or the empty text for the agent's own model. */
  chooseModel(model: string, signal?: AbortSignal): Promise<ConversationRow> {
    return this.#http.json(this.#request("", { method: "PATCH", json: { model }, signal }));
  }

  /** Ends its turn, and removes it with everything in it. */
  delete(signal?: AbortSignal): Promise<void> {
    return this.#http.json(this.#request("", { method: "DELETE", isRepeatable: false, signal }));
  }

  /** Whether a turn runs, and which. */
  status(signal?: AbortSignal): Promise<ExecutionStatus> {
    return this.#http.json(this.#request("/execution-status", { signal }));
  }

  /**
   * Ends the turn that runs, or a message that waits, by the gateway's id of the message. Without an id, a client that
   * follows the conversation names the turn that its reader sees, so a second call never ends the next turn.
   */
  cancel(options: { messageId?: string; signal?: AbortSignal } = {}): Promise<Cancelled> {
    const messageId = options.messageId ?? this.current.state.turn;
    const json = messageId === null ? null : { message_id: messageId };
    return this.#http.json(this.#request("/cancel", { method: "POST", json, signal: options.signal }));
  }

  /** Goes on with what was accepted and not finished, when the conversation's workflow is gone. */
  resume(signal?: AbortSignal): Promise<Resumed> {
    return this.#http.json(this.#request("/resume", { method: "POST", signal }));
  }

  /**
   * Runs the newest turn again from its last checkpoint, after it has failed. `messageId` is that of the failed turn's
   * events: another turn is then not retried. The answer has the message id of the retry.
   */
  retry(options: { messageId?: string; signal?: AbortSignal } = {}): Promise<AcceptedMessage> {
    const json = options.messageId === undefined ? null : { message_id: options.messageId };
    return this.#http.json(this.#request("/retry", { method: "POST", json, signal: options.signal }));
  }

  /** The calls that wait for a person. */
  async approvals(signal?: AbortSignal): Promise<PendingApproval[]> {
    const page = await this.#http.json<{ approvals: PendingApproval[] }>(this.#request("/approvals", { signal }));
    return page.approvals;
  }

  /**
   * Approves a call: it runs with the input that was shown, or with yours. The decision `proposed` in the answer means that
   * another person must approve your input, too. A call with a `question` runs on with your `answer`; for a question with a
   * `url`, you say that you have done there what the question asks for.
   *
   * @throws {SyntaxError} that `toolInputText` or `answerText` is no JSON.
   */
  approve(call: ApprovalRequest, options: ApproveOptions = {}): Promise<AnsweredApproval> {
    const { toolInput, remember, answer, toolInputText, answerText, signal } = options;
    const edited = toolInput === undefined ? {} : { tool_input: toolInput };
    const answered = answer === undefined ? {} : { answer };
    const body = { decision: "approve", ...edited, ...answered, ...(remember ? { remember } : {}) };
    return this.#answer(call, body, signal, { tool_input: toolInputText, answer: answerText });
  }

  /** Denies a call; the model reads the reason. A call with a `question` runs on, and its tool is told that you decline. */
  deny(call: ApprovalRequest, options: { reason?: string; signal?: AbortSignal } = {}): Promise<AnsweredApproval> {
    const reason = options.reason === undefined ? {} : { reason: options.reason };
    return this.#answer(call, { decision: "deny", ...reason }, options.signal);
  }

  /** The calls that a client is to run. Those of `tools` run by themselves. */
  async clientTools(signal?: AbortSignal): Promise<WaitingCall[]> {
    const page = await this.#http.json<{ client_tools: WaitingCall[] }>(this.#request("/client-tools", { signal }));
    return page.client_tools;
  }

  /** Posts the result of a client tool that this program did not register under `tools`. */
  async answerTool(
    executionId: string,
    result: unknown,
    options: { isError?: boolean; signal?: AbortSignal } = {},
  ): Promise<StoredResult> {
    const json = { result, is_error: options.isError ?? false };
    const target = path`/client-tools/${executionId}`;
    return this.#http.json(this.#request(target, { method: "POST", json, signal: options.signal }));
  }

  /** The whole result of a tool whose output was cut, as text: its JSON, or the text that it is. */
  async toolResult(executionId: string, signal?: AbortSignal): Promise<string> {
    let [text, offset]: [string, number | null | undefined] = ["", 0];
    while (offset !== null && offset !== undefined) {
      const slice: ToolResultSlice = await this.toolResultSlice(executionId, {
        offset,
        limit: 262_144,
        ...(signal && { signal }),
      });
      [text, offset] = [text + slice.text, slice.next_offset];
    }
    return text;
  }

  /** A slice of that text, from `offset` on and of at most `limit` bytes. `next_offset` is where the next one begins. */
  toolResultSlice(
    executionId: string,
    options: { offset?: number; limit?: number; signal?: AbortSignal } = {},
  ): Promise<ToolResultSlice> {
    const { signal, ...query } = options;
    return this.#http.json(this.#request(path`/tool-executions/${executionId}/result`, { query, signal }));
  }

  /** A page of the API's timeline, the newest one or the one before `before`, which the page after it named. */
  timeline(options: { before?: number; limit?: number; signal?: AbortSignal } = {}): Promise<Timeline> {
    const { signal, ...query } = options;
    return this.#http.json(this.#request("/messages", { query, signal }));
  }

  /** A page of its events: from `fromSequence` on, or backwards from `before`, which the last event is before by default. */
  events(
    options: { fromSequence?: number; before?: number; limit?: number; signal?: AbortSignal } = {},
  ): Promise<EventPage> {
    const { fromSequence, before, limit, signal } = options;
    const query = { from_sequence: fromSequence, before: before ?? (fromSequence === undefined ? END : undefined), limit };
    return this.#http.json(this.#request("/events", { query, signal }));
  }

  /** A page of its turns and their sub-agents; of the turn of one message alone, when it is named. */
  executions(
    options: { messageId?: string; after?: string; limit?: number; signal?: AbortSignal } = {},
  ): Promise<AgentExecutions> {
    const { messageId: message_id, after, limit, signal } = options;
    return this.#http.json(this.#request("/executions", { query: { message_id, after, limit }, signal }));
  }

  /** One of them, with its LLM calls, checkpoints and tool calls. */
  execution(id: string, signal?: AbortSignal): Promise<AgentExecutionDetail> {
    return this.#http.json(this.#request(path`/executions/${id}`, { signal }));
  }

  /** A page of the LLM calls of an agent execution, without their content. */
  calls(executionId: string, options: { after?: number; limit?: number; signal?: AbortSignal } = {}): Promise<ModelCalls> {
    const { signal, ...query } = options;
    return this.#http.json(this.#request(path`/executions/${executionId}/calls`, { query, signal }));
  }

  /** The LLM call of a step, with what the model was sent and answered. It needs the scope `calls`. */
  call(executionId: string, step: number, signal?: AbortSignal): Promise<ModelCallContent> {
    return this.#http.json(this.#request(path`/executions/${executionId}/calls/${String(step)}`, { signal }));
  }

  /** Sends a message and yields updates to the end of its turn. `sent` gets the gateway's id of the message. */
  async *#turn(content: string, options: SendOptions, sent: { messageId?: string }): AsyncGenerator<Update, void> {
    options.signal?.throwIfAborted();
    const failed: { error?: unknown } = {};
    this.post(content, options)
      .then((accepted) => (sent.messageId = accepted.message_id))
      .catch((error: unknown) => (failed.error = error))
      .finally(() => this.#session.changed());
    try {
      for await (const update of this.#session.updates(options.signal)) {
        yield update;
        if (failed.error !== undefined) throw failed.error;
        if (sent.messageId !== undefined && (await this.#hasEnded(sent.messageId, options.signal))) return;
      }
    } catch (error) {
      // Why the message was refused says more than that its conversation is missing.
      throw failed.error ?? error;
    }
    throw new EverturnError("stream_ended", `The stream ended before the turn did: ${this.current.state.ended}.`);
  }

  /** True when the turn of a message that was accepted has ended. It may be in events that are not known yet. */
  async #hasEnded(messageId: string, signal: AbortSignal | undefined): Promise<boolean> {
    for (;;) {
      const { state, pending, hasOlder } = this.current;
      const isComplete = !hasOlder || state.items.some((item) => item.id === messageId);
      if (isComplete && endOfTurn(state.items, messageId)) return true;
      if (isComplete || pending.some((message) => message.acceptedAs === messageId)) return false;
      if (!(await this.older(HISTORY, signal))) return false;
    }
  }

  /**
   * Settles the outcome of a call whose `state` is `unknown`: whether the tool had its effect. Later LLM calls read the
   * outcome, with the `result` of a call that happened and with the `comment`. Needs the scope `approve`.
   */
  settleOutcome(
    executionId: string,
    outcome: "happened" | "not_happened",
    options: { result?: Json; comment?: string; signal?: AbortSignal } = {},
  ): Promise<SettledToolOutcome> {
    const { result, comment, signal } = options;
    const json = { outcome, ...(result !== undefined && { result }), ...(comment !== undefined && { comment }) };
    return this.#http.json(this.#request(path`/tool-calls/${executionId}/outcome`, { method: "POST", json, signal }));
  }

  async #answer(
    call: ApprovalRequest,
    answer: object,
    signal: AbortSignal | undefined,
    texts: Record<string, string | undefined> = {},
  ): Promise<AnsweredApproval> {
    const [executionId, inputHash] =
      "execution_id" in call ? [call.execution_id, call.input_hash] : [call.executionId, call.approval?.inputHash];
    const json = { input_hash: inputHash, ...answer };
    const target = path`/approvals/${executionId ?? ""}`;
    const given = Object.entries(texts).flatMap(([name, text]) => (text === undefined ? [] : [{ name, text }]));
    if (given.length === 0) {
      return this.#http.json(this.#request(target, { method: "POST", json, isRepeatable: false, signal }));
    }
    // One JSON value is a part of the body, and nothing else is.
    for (const { text } of given) JSON.parse(text);
    const body = `{${given.map(({ name, text }) => `"${name}":${text},`).join("")}${JSON.stringify(json).slice(1)}`;
    const headers = { "content-type": "application/json" };
    return this.#http.json(this.#request(target, { method: "POST", headers, body, isRepeatable: false, signal }));
  }

  #request(rest: string, request: Omit<Request, "path">): Request {
    return { isRepeatable: true, ...request, path: this.#path + rest };
  }
}

/** What a conversation is made of. */
function firstMessage({ agent, title, model }: ConversationOptions): NonNullable<NewMessage["create"]> {
  const named = { ...(agent === undefined ? {} : { agent }), ...(title === undefined ? {} : { title }) };
  return { ...named, ...(model === undefined ? {} : { model }) };
}

function answer(items: readonly Item[], messageId: string): Answer {
  const end = endOfTurn(items, messageId);
  if (!end) throw new EverturnError("stream_ended", "The turn of the message is not known.");
  if (end.outcome !== "complete") {
    throw new TurnError(end.code ?? end.outcome, end.message ?? end.reason ?? "The turn was cancelled.");
  }
  return {
    content: answerOfTurn(items, messageId) ?? "",
    end,
    items: itemsOfTurn(items, end.turn),
    ...(end.output === undefined ? {} : { output: end.output }),
  };
}
