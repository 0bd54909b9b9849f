/** The shared transcripts of the list's stream: every one ends in its list, also with cuts at random bytes. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { isObject } from "../src/state/fields.js";
import { ConversationList } from "../src/state/list.js";
import { SseParser } from "../src/wire/sse.js";
import { randomNumbers, SEED } from "./support/random.js";
import { lists, rendered, type Step } from "./support/transcripts.js";

const CUTS = 500;

/** What a program knows, and the connection that it reads. */
class Reader {
  readonly known = new ConversationList();
  #parser = new SseParser(1_000_000);

  connect(): void {
    this.#parser = new SseParser(1_000_000);
  }

  read(step: Step, bytes?: number): void {
    if (step.cut) return this.connect();
    for (const { data } of this.#parser.push(Buffer.from(rendered(step)).subarray(0, bytes))) this.known.apply(parsed(data));
  }
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function readWithACut(steps: readonly Step[], random: (below: number) => number): unknown {
  const [reader, gateway] = [new Reader(), new ConversationList()];
  const happens = (step: Step) => gateway.apply(step.data);
  const at = random(steps.length);
  for (const step of steps.slice(0, at)) {
    reader.read(step);
    happens(step);
  }
  const half = steps[at]!;
  if (!half.cut) reader.read(half, random(Buffer.from(rendered(half)).length));
  let next = at;
  for (const away = at + random(steps.length - at + 1); next < away; next++) {
    const { data } = steps[next]!;
    if (isObject(data) && data["type"] === "end") break;
    happens(steps[next]!);
  }
  reader.connect();
  reader.read({ event: "list", data: { type: "list", conversations: gateway.conversations } });
  for (const step of steps.slice(next)) reader.read(step);
  return reader.known.conversations;
}

for (const [name, { about, frames, list }] of lists()) {
  test(`${name}: ${about}`, () => {
    const reader = new Reader();
    for (const step of frames) reader.read(step);
    assert.deepEqual(reader.known.conversations, list);
  });

  test(`${name}: with cuts`, () => {
    for (let run = 0; run < CUTS; run++) {
      const seed = SEED + run;
      assert.deepEqual(readWithACut(frames, randomNumbers(seed)), list, `EVERTURN_SEED=${seed} repeats it`);
    }
  });
}
