/** What a gateway sends to a reader that comes back, computed from a transcript: "Cuts" of clients/transcripts/README.md. */

import { isObject } from "../../src/state/fields.js";
import { Reducer } from "../../src/state/reducer.js";
import type { OpenText } from "../../src/state/state.js";
import type { Step } from "./transcripts.js";

/** What has happened in a conversation so far. */
export class Gateway {
  #log: { step: Step; cursor: string; sequence: number }[] = [];
  #lastReset: number | undefined;
  /** It knows which texts are open, by the rules that hold for readers, too. */
  readonly #reader = new Reducer();

  /** The next frame happens. */
  take(step: Step): void {
    if (step.cut) return void this.#reader.apply({ data: { type: "replay" } });
    this.#reader.apply({ ...(step.id === undefined ? {} : { id: step.id }), data: step.data });
    const data = isObject(step.data) ? step.data : {};
    const sequence = data["sequence_number"];
    if (data["type"] === "reset") {
      const from = Number(data["from_sequence"]);
      this.#lastReset = from;
      this.#log = this.#log.filter((event) => event.sequence < from);
    } else if (Number.isInteger(sequence) && typeof data["type"] === "string") {
      const number = sequence as number;
      if (number <= (this.#log.at(-1)?.sequence ?? 0)) return;
      this.#log.push({ step, cursor: step.id ?? String(number), sequence: number });
    }
  }

  /** The frames with which a connection begins. */
  connect(cursor: string): Step[] {
    const known = cursor === "0" || this.#log.some((event) => event.cursor === cursor);
    const from = known ? Number.parseInt(cursor, 10) + 1 : (this.#lastReset ?? 1);
    const reset = { event: "reset", data: { type: "reset", from_sequence: from } };
    const missed = this.#log.filter((event) => event.sequence >= from).map((event) => event.step);
    const texts = this.#reader.state.texts.flatMap(framesOf);
    return [{ event: "replay", data: { type: "replay" } }, ...(known ? [] : [reset]), ...missed, ...texts];
  }
}

function framesOf(text: OpenText): Step[] {
  const key = {
    message_id: text.messageId,
    agent_execution_id: text.agentExecutionId,
    step: text.step,
    part: text.part,
    generation: text.generation,
  };
  const start = { event: "text_start", data: { type: "text_start", ...key, text: text.text } };
  const end = { event: "text_end", data: { type: "text_end", ...key } };
  return text.ended ? [start, end] : [start];
}
