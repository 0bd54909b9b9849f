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
  let is: "up" | "killed" | "up again" = "up";
  for await (const { state, connection } of chat.send("What is 21 * 2, and what time is it in Tokyo?")) {
    if (is === "up" && state.texts.some((text) => text.step === 1 && text.text.length > 5)) {
      is = "killed";
      await gateway.kill();
    } else if (is === "killed" && connection.status === "waiting") {
      is = "up again";
      gateway = await gateway.restart();
    }
  }
  assert.equal(is, "up again", "a text was open, and the client waited");
  const { state } = chat.current;
  assert.deepEqual(timeline(state.items), common((await chat.timeline()).timeline));
  assert.deepEqual(state.texts, []);
  assert.equal(state.items.filter((item) => item.type === "assistant_message").length, 2);
});
