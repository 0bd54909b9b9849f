/**
 * What is long, old, large or elsewhere is reached by the keyboard alone, in Chromium: nothing is clicked, and nothing is focused
 * but by Tab. `make page` runs it.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { type Bench, startBench } from "./support/bench";
import { enter, getsFocus, send, tabTo, tabToOne, unfold } from "./support/keyboard";
import { gate } from "./support/model";
import { assertAccessible, openedId, painted, see, turnEnds } from "./support/page";
import { gif } from "./support/pictures";
import { type Seed, turn } from "./support/seed";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
tools = ["look"]

[client_tools.look]
description = "Looks at something."
`;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

/** True when the button of this name has the focus: pressing it took nothing away. */
async function assertKeepsFocus(page: Page, name: string | RegExp): Promise<void> {
  await getsFocus(page.getByRole("button", { name }), `the focus is no longer at ${name}`);
}

test("a long message, a long part of a sub-agent and a large picture are opened", async () => {
  const of = { agent_execution_id: "run-sub" };
  const call = { execution_id: "exec-1-search", call_id: "call-1-search" };
  const attachments = [{ blob_id: "blob_large", media_type: "image/gif", file_name: "large.gif", bytes: 5_000_000 }];
  const thoughts = Array.from({ length: 70 }, (_, step): Seed => ({ type: "thought", data: { reasoning: `Thought ${step}`, step, ...of } }));
  await bench.seed("folded", [
    { type: "user_message", data: { content: "many words ".repeat(2500), message_id: "m", attachments } },
    ...turn(1).slice(1, 3),
    { type: "sub_agent_start", data: { agent: "helper", task: "think", ...call, ...of } },
    ...thoughts,
  ]);
  const { page } = await bench.open("/#/c/folded", { viewport: { width: 900, height: 4000 } });
  await page.route("**/blobs/blob_large", (route) => route.fulfill({ contentType: "image/gif", body: gif(300, 300) }));
  await see(page, ".nested", "Thought 69");
  await assertAccessible(page);
  await enter(page, "button", "Show all 27,500 characters");
  const message = page.locator(".user_message .plain");
  await getsFocus(message, "the focus is not at the whole message, where the button was");
  assert.equal((await message.textContent())?.length, 27_500);
  await enter(page, "button", "Show the picture");
  await page.waitForFunction(() => document.querySelector("img")?.naturalWidth === 300);
  await getsFocus(page.getByRole("link", { name: "large.gif" }), "the focus is not at the picture, where the button was");
  await assertAccessible(page);
  await enter(page, "button", "Show what came before (40)");
  await page.getByRole("button", { name: "Show what came before (10)" }).waitFor();
  await assertKeepsFocus(page, "Show what came before (10)");
  await page.keyboard.press("Enter");
  await see(page, ".nested .thought", /^Thought/);
  await page.waitForFunction(() => document.querySelectorAll(".nested .thought").length === 70);
});

test("a long result is read slice by slice, and saved", async () => {
  const lines = Array.from({ length: 5000 }, (_, number) => `line ${number} of it`).join("\n");
  bench.model.on("long result", (step) => (step === 0 ? { calls: [{ name: "look", input: {} }] } : { texts: ["Seen."] }));
  const { page } = await bench.open();
  await send(page, "Give a long result");
  await see(page, ".tool", "Waits for a program of yours to run it.");
  const chat = bench.client.conversation(await openedId(page));
  const call = (await chat.timeline()).timeline.find((item) => item.type === "tool_call");
  await chat.answerTool(String(call?.executionId), lines);
  await turnEnds(page);
  await unfold(page, page.locator(".tool"), "look");
  await enter(page, "button", "Show more");
  await see(page, ".tool .hint", "32.8 KB of");
  await assertKeepsFocus(page, "Show more");
  await assertAccessible(page);
  await page.keyboard.press("Enter");
  await see(page, ".tool .hint", "65.5 KB of");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Show more" }).waitFor({ state: "detached" });
  await tabTo(page, "button", "Save all of it");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  assert.equal(readFileSync(await saved.path(), "utf8"), lines);
  await assertKeepsFocus(page, "Save all of it");
});

test("what came before is shown", async () => {
  await bench.seed("before", Array.from({ length: 60 }, (_, number) => turn(number + 1)).flat());
  const { page } = await bench.open();
  // It reads as soon as it is in sight. So the answer waits for Tab, or nothing would be left to be asked for.
  const arrival = gate();
  const isOlder = (url: URL) => Number(url.searchParams.get("before") ?? Number.MAX_SAFE_INTEGER) < 10_000;
  await page.route(isOlder, async (route) => {
    await arrival.opened;
    await route.continue();
  });
  await page.goto(`${bench.gateway.url}/#/c/before`);
  await tabToOne(page, page.locator(".earlier"), "what came before");
  await page.keyboard.press("Enter");
  arrival.open();
  await page.locator(".earlier").waitFor({ state: "detached" });
  await tabTo(page, "region", "Messages");
  // Whoever presses the key while rows are still put in stays where they were, and presses it again.
  const first = page.locator(".user_message").filter({ hasText: "Question 1." }).first();
  while (!(await first.isVisible())) {
    await page.keyboard.press("Home");
    await painted(page);
  }
});

test("a conversation is chosen on a phone, and one from before the newest hundred", async () => {
  for (let number = 0; number < 110; number++) await bench.client.create({ title: `Number ${number}` });
  const { page } = await bench.open("/", { viewport: { width: 360, height: 740 } });
  await tabTo(page, "button", "Show the conversations");
  assert.equal(await page.getByRole("searchbox").isVisible(), false);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Show the conversations", expanded: true }).waitFor();
  await see(page, ".list a", /^Number 109$/);
  await assertAccessible(page);
  await enter(page, "button", "Show earlier conversations");
  await see(page, ".list a", /^Number 0$/);
  await enter(page, "link", /Number 0$/);
  await page.getByRole("button", { name: "Show the conversations", expanded: false }).waitFor();
  await see(page, ".timeline", "Send a message to begin.");
  const { title } = await bench.client.conversation(await openedId(page)).show();
  assert.equal(title, "Number 0");
});
