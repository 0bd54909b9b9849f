/**
 * What a person approves in Chromium is what the store has, to the last digit: the card, an edit, and the inbox of approvals.
 * `make page` runs it.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, afterEach, before, test } from "node:test";
import { type Bench, startBench } from "./support/bench";
import { assertAccessible, openedId, see, send, turnEnds } from "./support/page";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
tools = [{ name = "transfer", approval = "always" }]

[client_tools.transfer]
description = "Transfers money."
title = "Transfer to {to}"
`;

/** Numbers that JavaScript rounds, in an order and with spaces that the store does not keep. */
const WRITTEN = '{ "to" : "Ada", "amount":12345678901234567890123 , "id":9007199254740993, "rate":1.50 }';
const STORED = '{"amount":12345678901234567890123,"id":9007199254740993,"rate":1.50,"to":"Ada"}';

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

/** The arguments of a conversation's calls, as the store has them. */
function stored(conversation: string): string[] {
  const select = `SELECT tool_input FROM tool_execution_records WHERE conversation_id = '${conversation}' ORDER BY created_at;`;
  const done = spawnSync("sqlite3", [`${bench.folder}/data/everturn.db`], { input: select, encoding: "utf8" });
  assert.equal(done.status, 0, `${done.error ?? ""}${done.stderr}`);
  return done.stdout.trim().split("\n");
}

function transfers(start: string, input: string): void {
  bench.model.on(start, (step) => (step === 0 ? { calls: [{ name: "transfer", input }] } : { texts: ["Done."] }));
}

test("the card shows the text that the store has, and an edit keeps every digit", async () => {
  transfers("pay her", WRITTEN);
  const tab = await bench.open();
  const { page } = tab;
  await send(page, "Please pay her");
  await page.locator(".approval").waitFor();
  const id = await openedId(page);
  assert.deepEqual(stored(id), [STORED]);
  assert.equal(await page.locator(".approval pre").textContent(), STORED);
  await page.getByRole("button", { name: "Edit the input" }).click();
  const field = page.getByRole("textbox", { name: "Input" });
  assert.equal(await field.inputValue(), STORED);
  await field.fill(STORED.replace('"rate":1.50', '"rate":1.50,"rate":9'));
  await page.getByRole("button", { name: "Approve with this input" }).click();
  await see(page, ".approval [role=alert]", "`rate` more than once");
  assert.deepEqual(stored(id), [STORED], "the call waits on");
  await field.fill(` { "to":"Bob", ${STORED.slice(1).replace(',"to":"Ada"', "")}`);
  await page.getByRole("button", { name: "Approve with this input" }).click();
  await see(page, ".tool", "Waits for a program of yours");
  const edited = STORED.replace("Ada", "Bob");
  assert.deepEqual(stored(id), [edited]);
  assert.equal(await page.locator(".approval pre").textContent(), edited);
  await page.reload();
  await see(page, ".approval pre", edited);
  await page.getByRole("button", { name: "Stop" }).click();
  await see(page, ".end.cancelled", "Cancelled");
  // The gateway refuses the repeated key.
  tab.complaints.splice(0, Infinity, ...tab.complaints.filter((complaint) => !complaint.includes("status of 400")));
});

test("a repeated key asks nobody, and the model is told", async () => {
  transfers("pay twice", '{"to":"Ada","amount":5000,"amount":1}');
  const { page } = await bench.open();
  await send(page, "Please pay twice");
  await turnEnds(page);
  assert.equal(await page.locator(".approval").count(), 0);
  await see(page, ".tool.failed", "`amount` more than once");
});

test("the inbox has the calls of all conversations, with the same text", async () => {
  transfers("for the inbox", WRITTEN);
  const { page } = await bench.open();
  await send(page, "Something for the inbox");
  await page.locator(".approval").waitFor();
  const id = await openedId(page);
  await page.getByRole("link", { name: "Approvals" }).click();
  const call = page.locator(".inbox li");
  await call.waitFor();
  assert.equal(await call.count(), 1);
  await see(page, ".inbox li strong", "Transfer to Ada");
  await see(page, ".inbox li .agent", "default");
  await see(page, ".inbox li [role=timer]", /left to answer/);
  assert.equal(await call.locator("pre").textContent(), STORED);
  assert.deepEqual(stored(id), [STORED]);
  await assertAccessible(page);
  await call.getByRole("button", { name: "Deny" }).click();
  await see(page, ".inbox", "No call waits for you.");
  await page.goBack();
  await turnEnds(page);
  await see(page, ".tool.failed", "denied");
});
