/** The parser of server-sent events, on the shared cases and at its limit. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser } from "../src/wire/sse.js";
import { randomNumbers, SEED } from "./support/random.js";
import { readShared } from "./support/transcripts.js";

interface Case {
  about: string;
  chunks: string[];
  messages: object[];
}

for (const { about, chunks, messages } of readShared("sse.json") as Case[]) {
  const bytes = chunks.map((chunk) => Buffer.from(chunk, "base64"));

  test(about, () => {
    const parser = new SseParser(1000);
    assert.deepEqual(bytes.flatMap((chunk) => parser.push(chunk)), messages);
  });

  test(`${about}: in other pieces`, () => {
    const whole = Buffer.concat(bytes);
    for (let run = 0; run < 200; run++) {
      const random = randomNumbers(SEED + run);
      const parser = new SseParser(1000);
      const read = [];
      for (let from = 0; from < whole.length; ) {
        const to = from + random(5); // a piece may be empty
        read.push(...parser.push(whole.subarray(from, to)));
        from = to;
      }
      assert.deepEqual(read, messages, `EVERTURN_SEED=${SEED + run} repeats it`);
    }
  });
}

test("a message that is too large is an error, and one that is not is none", () => {
  const tooLarge = { code: "frame_too_large" };
  const line = Buffer.from("data: 123456789\n");
  assert.throws(() => new SseParser(100).push(Buffer.from("x".repeat(101))), tooLarge, "a line without an end");
  const parser = new SseParser(100);
  assert.throws(() => Array.from({ length: 20 }, () => parser.push(line)), tooLarge, "lines without a blank one");
  const many = new SseParser(100);
  for (let count = 0; count < 100; count++) {
    assert.equal(many.push(Buffer.concat([line, Buffer.from("\n")])).length, 1);
  }
});

test("a large message in small pieces is read in linear time", () => {
  const parser = new SseParser(20_000_000);
  const piece = Buffer.from("x".repeat(1000));
  parser.push(Buffer.from("data: "));
  for (let count = 0; count < 10_000; count++) parser.push(piece);
  const [message] = parser.push(Buffer.from("\n\n"));
  assert.equal(message?.data.length, 10_000_000);
});
