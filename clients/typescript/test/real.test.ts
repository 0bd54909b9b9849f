/** The client against a real gateway that is killed. `make clients` says which (EVERTURN_BIN). */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { Everturn, timeline } from "../src/index.js";
import { startGateway } from "./support/everturn.js";
import { common } from "./support/timeline.js";

const skip = process.env["EVERTURN_BIN"] ? false : "EVERTURN_BIN names no everturn: use `make clients`";

test("everything is killed in the middle of a message, and starts again", { skip }, async (t) => {
  const folder = mkdtempSync(`${tmpdir()}/everturn-killed-`);
  let gateway = await startGateway(folder, "");
  t.after(() => {
    gateway.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const chat = new Everturn({ url: gateway.url }).conversation("killed");
  await chat.ask("What is 1 + 1?");
  const waits = new Set<string>();
  let isKilled = false;
  for await (const { state, connection } of chat.send("What is 21 * 2, and what time is it in Tokyo?")) {
    waits.add(connection.status);
    if (isKilled || !state.texts.some((text) => text.step === 1 && text.text.length > 5)) continue;
    isKilled = true;
    await gateway.kill();
    gateway = await gateway.restart();
  }
  assert.ok(isKilled, "a text was open");
  assert.ok(waits.has("waiting"), [...waits].join());
  const { state } = chat.current;
  assert.deepEqual(timeline(state.items), common((await chat.timeline()).timeline));
  assert.deepEqual(state.texts, []);
  assert.equal(state.items.filter((item) => item.type === "assistant_message").length, 2);
});
