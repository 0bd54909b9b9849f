/**
 * Every action of the page by the keyboard alone, in Chromium: nothing is clicked, and nothing is focused but by Tab. In each
 * state on the way, axe finds no serious fault. `make page` runs it.
 */

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type Bench, startBench } from "./support/bench";
import { enter, send, tabTo, unfold, write } from "./support/keyboard";
import { gate } from "./support/model";
import { assertAccessible, openedId, see, turnEnds } from "./support/page";
import { assertSameAsApi } from "./support/same";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
tools = ["calculate", "locate", { name = "refund", approval = "always" }]

[client_tools.locate]
description = "Says where the person is."

[client_tools.refund]
description = "Refunds an order."
`;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

test("messages are sent, wait, join and interrupt, and are withdrawn", async () => {
  const rest = gate();
  const never = gate();
  const sum = { name: "calculate", input: { expression: "1 + 1" } };
  bench.model.on("take your time", () => ({ texts: ["Slowly", rest.opened, "."], calls: [sum] }));
  bench.model.on("stop this", () => ({ texts: ["So far", never.opened] }));
  const { page } = await bench.open();
  await assertAccessible(page);
  await send(page, "Please take your time");
  await see(page, "[data-writing]", "Slowly");
  await assertAccessible(page);
  await send(page, "never mind this");
  await enter(page, "button", "Withdraw");
  await see(page, "[data-pending=queued]", "Will not run");
  await tabTo(page, "combobox", "While a turn runs");
  await page.keyboard.press("A"); // Add to this turn
  await send(page, "be brief");
  await page.locator("[data-pending=queued]").filter({ hasText: "be brief" }).waitFor();
  await assertAccessible(page);
  rest.open();
  await turnEnds(page, 2); // that of the message that was withdrawn ends as cancelled
  assert.deepEqual(await page.locator(".end").evaluateAll((ends) => ends.map((end) => end.className)), [
    "item end complete",
    "item end cancelled",
  ]);
  await see(page, ".assistant_message", 'You said "be brief"');
  await assertSameAsApi(page, bench.gateway.url);
  await send(page, "Now stop this");
  await see(page, "[data-writing]", "So far");
  await enter(page, "button", "Stop");
  await turnEnds(page, 3);
  await see(page, ".assistant_message", /^So far$/);
  await assertAccessible(page);
  never.open();
});

test("calls are approved, edited, denied and answered, and what they gave is opened", async () => {
  const order = (number: number) => ({ name: "refund", input: { order: number } });
  const orders = [order(1), order(2), order(3)];
  bench.model.on("three refunds", (step) => (step === 0 ? { calls: orders } : { texts: ["Done."] }));
  const locate = { name: "locate", input: {} };
  bench.model.on("where I am", (step) => (step < 2 ? { calls: [locate] } : { texts: ["There."] }));
  const { page } = await bench.open();
  await send(page, "Make three refunds");
  await page.getByRole("button", { name: "Deny" }).nth(2).waitFor();
  await assertAccessible(page);
  await enter(page, "button", "Deny");
  await see(page, ".tool.failed", "denied");
  await enter(page, "button", "Edit the input");
  await write(page, "Input", '{"order": 22}');
  await enter(page, "button", "Approve with this input");
  await see(page, ".tool", /approved.*"order":22/s);
  await enter(page, "button", "Approve");
  await see(page, ".tool", /approved.*"order":3/s);
  await assertAccessible(page);
  for (const done of [0, 1]) {
    await write(page, "Result: a text, or JSON", "refunded");
    await enter(page, "button", "Send the result");
    await page.locator(".tool.done").nth(done).waitFor();
  }
  await turnEnds(page);
  await send(page, "Say where I am");
  await write(page, "Result: a text, or JSON", '{"city": "Turin"}');
  await enter(page, "button", "Send the result");
  await page.locator(".tool.done").filter({ hasText: "locate" }).waitFor();
  await write(page, "Result: a text, or JSON", "no signal");
  await enter(page, "button", "It failed");
  await turnEnds(page, 2);
  await unfold(page, page.locator(".tool.done", { hasText: "locate" }), "locate");
  await see(page, ".tool.done details[open]", "Turin");
  await assertAccessible(page);
  await assertSameAsApi(page, bench.gateway.url);
});

test("conversations are begun, found, opened, renamed and deleted, and files are chosen", async () => {
  const { page } = await bench.open();
  await send(page, "The first of two");
  await turnEnds(page);
  const first = await openedId(page);
  await enter(page, "link", "New conversation");
  await see(page, ".timeline", "Send a message to begin.");
  // Chromium is told to hand the chooser over before the key is pressed, and not at the same time.
  const chosen = page.waitForEvent("filechooser");
  await tabTo(page, "button", "Attach files");
  const [chooser] = await Promise.all([chosen, page.keyboard.press("Enter")]);
  await chooser.setFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("Remember the milk.") });
  await page.locator("[data-attachment=ready]").waitFor();
  await enter(page, "button", "Remove notes.txt");
  await page.locator("[data-attachment]").waitFor({ state: "detached" });
  await send(page, "The second of two");
  await turnEnds(page);
  await tabTo(page, "searchbox", "Search titles");
  await page.keyboard.type("first of");
  await page.getByRole("link", { name: "The second of two" }).waitFor({ state: "detached" });
  await assertAccessible(page);
  await enter(page, "link", /The first of two/);
  assert.equal(await openedId(page), first);
  await enter(page, "button", "Rename");
  await write(page, "Title", "Changed");
  await assertAccessible(page);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await enter(page, "button", "Delete");
  await page.getByRole("dialog").waitFor();
  await assertAccessible(page);
  await enter(page, "button", "Delete");
  await see(page, ".timeline", "Send a message to begin.");
  await assert.rejects(bench.client.conversation(first).show(), /No conversation/);
});

test("an error, a lost connection and a turn in which nothing happens are accessible", async () => {
  const never = gate();
  bench.model.on("be refused", () => ({ status: 400 }));
  bench.model.on("be quiet", () => ({ texts: [never.opened] }));
  const { page } = await bench.open();
  await send(page, "Now be refused");
  await tabTo(page, "link", "llm_bad_request");
  await assertAccessible(page);
  await page.clock.install();
  await send(page, "Now be quiet");
  await page.locator(".list a[aria-current] .dot.running").waitFor();
  await page.clock.fastForward(16_000);
  await tabTo(page, "button", "Resume");
  await assertAccessible(page);
  await page.context().setOffline(true);
  await see(page, ".status", /offline|connection is lost/);
  await assertAccessible(page);
  await page.context().setOffline(false);
  await enter(page, "button", "Stop");
  await page.locator(".end.cancelled").waitFor();
  never.open();
});

test("a message that was refused is discarded, or sent again", async () => {
  const tab = await bench.open();
  const { page } = tab;
  const problem = { type: "docs/errors/rate_limited", title: "Too many", status: 400, code: "invalid_request", detail: "No <b>." };
  const messages = "**/messages";
  await page.route(messages, (route) => route.fulfill({ status: 400, json: problem, contentType: "application/problem+json" }));
  await send(page, "The first one");
  await see(page, "[data-pending=failed]", "Not sent: No <b>. invalid_request");
  await assertAccessible(page);
  await enter(page, "button", "Discard");
  await page.locator("[data-pending]").waitFor({ state: "detached" });
  await send(page, "The second one");
  await page.locator("[data-pending=failed]").waitFor();
  await page.unroute(messages);
  await enter(page, "button", "Try again");
  await turnEnds(page);
  assert.deepEqual(await page.locator(".user_message").allTextContents(), ["The second one"]);
  await assertSameAsApi(page, bench.gateway.url);
  tab.complaints.splice(0, Infinity, ...tab.complaints.filter((complaint) => !complaint.includes("status of 400")));
});
