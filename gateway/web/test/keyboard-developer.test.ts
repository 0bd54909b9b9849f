/**
 * The developer's view by the keyboard alone, in Chromium: nothing is clicked, and nothing is focused but by Tab. `make page` runs
 * it.
 */

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type Bench, startBench } from "./support/bench";
import { enter, getsFocus, tabTo, unfold, write } from "./support/keyboard";
import { assertAccessible, see } from "./support/page";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
tools = ["calculate"]
delegates = ["helper"]

[agents.helper]
provider = "scripted"
model = "scripted"
description = "Sums up."
tools = ["calculate"]

[gateway]
temporal_ui = "http://temporal.example.com/namespaces/default/workflows/{workflow_id}"
`;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
  const sum = (expression: string) => ({ name: "calculate", input: { expression } });
  const task = { name: "delegate", input: { agent: "helper", task: "Sum up the figures." } };
  bench.model.on("Sum up", (step) => (step === 0 ? { calls: [sum("1 + 2")] } : { texts: ["It is three."] }));
  bench.model.on("look at figures", (step) => (step === 0 ? { calls: [sum("6 * 7"), task] } : { texts: ["Forty-two."] }));
  const chat = bench.client.conversation("behind");
  await chat.ask("Hello");
  await chat.ask("Please look at figures");
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

test("a turn is chosen, its rows and agent executions are opened, and the view is closed", async () => {
  const { page } = await bench.open("/#/c/behind");
  await enter(page, "link", "Developer's view");
  await page.getByRole("heading", { name: "Developer's view" }).and(page.locator(":focus")).waitFor();
  await page.locator(".waterfall tr[data-kind]").nth(5).waitFor();
  await enter(page, "button", "calculate");
  await see(page, ".row-details pre", '"expression": "6 * 7"');
  await assertAccessible(page);
  await page.keyboard.press("Enter");
  await page.locator(".row-details").waitFor({ state: "detached" });
  const agents = page.locator(".executions > ul > li");
  await unfold(page, agents, /^default/);
  await page.getByRole("table", { name: "Checkpoints" }).waitFor();
  await tabTo(page, "link", "Workflow in the Temporal UI");
  await unfold(page, agents, "Record as JSON");
  await see(page, ".executions pre", '"agent": "default"');
  await unfold(page, agents.locator("> ul > li"), /^helper/);
  await page.getByRole("table", { name: "Checkpoints" }).nth(1).waitFor();
  await assertAccessible(page);
  await enter(page, "link", /^Hello/);
  await see(page, ".turn h3", "Hello");
  await enter(page, "link", "Close");
  const link = page.getByRole("link", { name: "Developer's view" });
  await link.and(page.locator(":focus")).waitFor();
  await page.keyboard.press("Enter");
  await page.locator("#developer-heading:focus").waitFor();
  await page.keyboard.press("Escape");
  await link.and(page.locator(":focus")).waitFor();
});

test("events are filtered by type and by text, opened and copied", async () => {
  const { page } = await bench.open("/#/c/behind/turns");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await enter(page, "link", "Events");
  const events = page.locator(".events li");
  await events.nth(10).waitFor();
  await tabTo(page, "combobox", "Type of events");
  await page.keyboard.press("a"); // act
  await page.waitForFunction(() => document.querySelectorAll(".events li").length === 3);
  await write(page, "Text in events", "6 * 7", "searchbox");
  await page.waitForFunction(() => document.querySelectorAll(".events li").length === 1);
  await unfold(page, events, "act");
  await see(page, ".events pre", '"expression": "6 * 7"');
  await enter(page, "button", "Copy the JSON");
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText())) as { event_type: string };
  assert.equal(copied.event_type, "act");
  await assertAccessible(page);
  await page.keyboard.press("Tab");
  await getsFocus(page.locator(".events pre"), "the text of the event has no focus, so the keyboard cannot scroll it");
  await write(page, "Text in events", "nothing is like this", "searchbox");
  await see(page, ".developer .hint", "No event that was read is like this.");
  await assertAccessible(page);
});
