/** The calls of models that wait for their provider: rule 10 of the shared transcripts. */

import { count, text } from "./fields.js";
import type { JsonObject, ModelWait } from "./state.js";

/** Past so many waiting calls, the oldest is dropped. */
const MAX_WAITS = 256;

/** The waiting calls of a conversation, at most one of each agent execution. */
export class Waits {
  #waits: readonly ModelWait[] = [];

  /** The waiting calls, the newest news last. The array changes only with the calls. */
  get shown(): readonly ModelWait[] {
    return this.#waits;
  }

  /** Takes the news of a waiting call. True when something changed. */
  apply(data: JsonObject): boolean {
    const [step, attempt] = [count(data, "step"), count(data, "attempt")];
    const retryAfterMs = count(data, "retry_after_ms");
    if (step === undefined || attempt === undefined || retryAfterMs === undefined) return false;
    const agentExecutionId = text(data, "agent_execution_id");
    const [code, message, messageId] = [text(data, "code"), text(data, "message"), text(data, "message_id")];
    const wait = { agentExecutionId, step, code, message, attempt, retryAfterMs, messageId };
    const others = this.#waits.filter((other) => other.agentExecutionId !== agentExecutionId);
    this.#waits = [...others, wait].slice(-MAX_WAITS);
    return true;
  }

  /** Drops the waiting call of an agent execution. True when there was one. */
  drop(agentExecutionId: string): boolean {
    const left = this.#waits.filter((wait) => wait.agentExecutionId !== agentExecutionId);
    return this.#keep(left);
  }

  /** Drops all waiting calls. True when there were some. */
  clear(): boolean {
    return this.#keep([]);
  }

  #keep(left: readonly ModelWait[]): boolean {
    const hasChanged = left.length < this.#waits.length;
    if (hasChanged) this.#waits = left;
    return hasChanged;
  }
}
