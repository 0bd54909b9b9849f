/**
 * Every action of the page by the keyboard alone, in Chromium: nothing is clicked, and nothing is focused but by Tab. In each
 * state on the way, axe finds no serious fault. `make page` runs it.
 */

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { type Bench, startBench } from "./support/bench";
import { assertAccessible, assertSameAsApi, openedId, see, turnEnds } from "./support/page";

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

/** More than the page has that can be focused. */
const MOST_TABS = 80;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

/** A promise that a test resolves. */
function gate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Presses Tab until this is focused. */
async function tabTo(page: Page, role: Parameters<Page["getByRole"]>[0], name: string | RegExp): Promise<void> {
  const targets = page.getByRole(role, { name, exact: true });
  await targets.first().waitFor();
  for (let tabs = 0; tabs < MOST_TABS; tabs++) {
    if (await targets.evaluateAll((found) => found.includes(document.activeElement as HTMLElement))) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`Tab never comes to the ${role} ${name}`);
}

/** Goes to this, and presses Enter. */
async function enter(page: Page, role: Parameters<Page["getByRole"]>[0], name: string | RegExp): Promise<void> {
  await tabTo(page, role, name);
  await page.keyboard.press("Enter");
}

/** Goes to the field, and writes this in the place of what is in it. */
async function write(page: Page, name: string, text: string): Promise<void> {
  await tabTo(page, "textbox", name);
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
}

async function send(page: Page, text: string): Promise<void> {
  await write(page, "Message", text);
  await page.keyboard.press("Enter");
}

test("messages are sent, wait, join and interrupt, and are withdrawn", async () => {
  const rest = gate();
  const never = gate();
  bench.model.on("take your time", () => ({ texts: ["Slowly", rest.opened, "."] }));
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
  await turnEnds(page);
  await assertSameAsApi(page, bench.gateway.url);
  await send(page, "Now stop this");
  await see(page, "[data-writing]", "So far");
  await enter(page, "button", "Stop");
  await see(page, ".end.cancelled", "Cancelled");
  await assertAccessible(page);
  never.open();
});

test("calls are approved, edited, denied and answered, and what they gave is opened", async () => {
  const order = (number: number) => ({ name: "refund", input: { order: number } });
  bench.model.on("two refunds", (step) => (step === 0 ? { calls: [order(1), order(2)] } : { texts: ["Done."] }));
  const locate = { name: "locate", input: {} };
  bench.model.on("where I am", (step) => (step < 2 ? { calls: [locate] } : { texts: ["There."] }));
  const { page } = await bench.open();
  await send(page, "Make two refunds");
  await page.getByRole("button", { name: "Deny" }).nth(1).waitFor();
  await assertAccessible(page);
  await enter(page, "button", "Deny");
  await see(page, ".tool.failed", "denied");
  await enter(page, "button", "Edit the input");
  await write(page, "Input", '{"order": 22}');
  await enter(page, "button", "Approve with this input");
  await see(page, ".tool", /"order":22.*running · approved/);
  await assertAccessible(page);
  await write(page, "Result: a text, or JSON", "refunded");
  await enter(page, "button", "Send the result");
  await turnEnds(page);
  await send(page, "Say where I am");
  await write(page, "Result: a text, or JSON", '{"city": "Turin"}');
  await enter(page, "button", "Send the result");
  await page.locator(".tool.done").filter({ hasText: "locate" }).waitFor();
  await write(page, "Result: a text, or JSON", "no signal");
  await enter(page, "button", "It failed");
  await turnEnds(page, 2);
  const output = page.locator(".tool.done", { hasText: "locate" }).locator("summary", { hasText: "Output" });
  for (let tabs = 0; !(await output.evaluate((summary) => summary === document.activeElement)); tabs++) {
    assert.ok(tabs < MOST_TABS, "Tab never comes to the output");
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Enter");
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
  await tabTo(page, "button", "Attach files");
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.keyboard.press("Enter")]);
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
  await assert.rejects(bench.client.conversation(first).show(), /no conversation/);
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
