/** What a person does with a turn and with a conversation, in Chromium. `make page` runs it. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, afterEach, before, test } from "node:test";
import { Everturn } from "everturn-client";
import type { Browser, Page } from "playwright-core";
import { type RealGateway, startGateway } from "../../../clients/typescript/test/support/everturn.js";
import { gate, startModel } from "./support/model";
import { assertAccessible, openedId, openTab } from "./support/page";
import { see, send, startChromium, type Tab, turnEnds } from "./support/page";
import { type Roles, startRoles } from "./support/roles";
import { assertSameAsApi } from "./support/same";

const config = (model: string) => `
[providers.scripted]
kind = "openai"
base_url = "${model}"

[agents.default]
provider = "scripted"
model = "scripted"
tools = ["current_time", "locate"]

[client_tools.locate]
description = "Says where the person is."
`;

let folder: string;
let model: Awaited<ReturnType<typeof startModel>>;
let gateway: RealGateway;
let browser: Browser;
const tabs: Tab[] = [];

before(async () => {
  folder = mkdtempSync(`${tmpdir()}/everturn-control-`);
  model = await startModel();
  [gateway, browser] = await Promise.all([startGateway(folder, config(model.url)), startChromium()]);
});

afterEach(async () => {
  const opened = tabs.splice(0);
  for (const { page } of opened) await page.context().close();
  assert.deepEqual(opened.flatMap((tab) => tab.complaints), [], "the browser complained");
});

after(async () => {
  await browser?.close();
  gateway?.stop();
  model?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

async function open(url = `${gateway.url}/`): Promise<Tab> {
  const tab = await openTab(browser, url);
  tabs.push(tab);
  return tab;
}

/** What the browser says itself of requests that failed as they should. */
function expect(tab: Tab, said: RegExp): void {
  tab.complaints.splice(0, Infinity, ...tab.complaints.filter((text) => !said.test(text)));
}

/** Chooses what the next message does with the turn that runs. */
async function choose(page: Page, what: "queue" | "steer" | "interrupt"): Promise<void> {
  await page.getByRole("combobox", { name: "While a turn runs" }).selectOption(what);
}

test("a message joins the turn that runs", async () => {
  const rest = gate();
  const call = { name: "current_time", input: { time_zone: "Asia/Tokyo" } };
  model.on("be steered", () => ({ texts: ["I look.", rest.opened], calls: [call] }));
  model.on("and the weather", () => ({ texts: ["Both are answered."] }));
  const { page } = await open();
  await send(page, "Now be steered");
  await see(page, "[data-writing]", "I look.");
  await choose(page, "steer");
  await assertAccessible(page);
  await send(page, "and the weather");
  await page.locator("[data-pending=queued]").waitFor();
  rest.open();
  await turnEnds(page);
  await see(page, ".assistant_message", "Both are answered.");
  assert.equal(await page.locator(".end").count(), 1, "it is one turn");
  await assertSameAsApi(page, gateway.url);
});

test("a message ends the turn that runs, and has its own", async () => {
  const never = gate();
  model.on("be interrupted", () => ({ texts: ["Half", never.opened] }));
  const { page } = await open();
  await send(page, "Now be interrupted");
  await see(page, "[data-writing]", "Half");
  await choose(page, "interrupt");
  await send(page, "instead of that");
  await turnEnds(page, 2);
  await see(page, ".end.cancelled", "Cancelled");
  await see(page, ".assistant_message", /instead of that/);
  await assertSameAsApi(page, gateway.url);
  never.open();
});

test("a message that waits has its turn, or is withdrawn", async () => {
  const rest = gate();
  let asked = 0;
  model.on("take your time", () => ({ texts: ["Slowly", rest.opened, "."] }));
  // The quote ends the request's message: a withdrawn message is a part of the next one.
  model.on('never mind this"', () => (asked++, { texts: ["I mind."] }));
  const { page } = await open();
  await send(page, "Please take your time");
  await see(page, "[data-writing]", "Slowly");
  await send(page, "never mind this");
  await send(page, "and then this");
  const waiting = page.locator("[data-pending=queued]");
  await waiting.nth(1).waitFor();
  await waiting.filter({ hasText: "never mind" }).getByRole("button", { name: "Withdraw" }).click();
  await waiting.getByText("Will not run").waitFor();
  rest.open();
  await turnEnds(page, 3);
  assert.equal(asked, 0, "the model was not asked");
  await see(page, ".assistant_message", /and then this/);
  await assertSameAsApi(page, gateway.url);
});

test("a call that no program has run is answered by a person", async () => {
  const call = { name: "locate", input: { precise: true } };
  model.on("where am I", (step) => (step < 2 ? { calls: [call] } : { texts: ["You are there."] }));
  const { page } = await open();
  await send(page, "Tell me where am I");
  const card = page.getByRole("group", { name: /Waits for a program/ });
  await card.getByRole("textbox").fill('{"city": "Turin"}');
  await assertAccessible(page);
  await card.getByRole("button", { name: "Send the result" }).click();
  await see(page, ".tool.done", "locate");
  await card.getByRole("textbox").fill("no signal");
  await card.getByRole("textbox").press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await see(page, ".tool.failed", "locate");
  await turnEnds(page);
  const events = new Everturn({ url: gateway.url }).conversation(await openedId(page));
  const { timeline } = await events.timeline();
  const results = timeline.filter((item) => item.type === "tool_result").map((item) => item.toolOutput);
  assert.deepEqual(results, [{ city: "Turin" }, "no signal"]);
  await assertSameAsApi(page, gateway.url);
});

test("files go with a message, and one that is refused does not", async () => {
  const tab = await open();
  const { page } = tab;
  const chooser = page.locator("input[type=file]");
  await chooser.setInputFiles([
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("Remember the milk.") },
    { name: "program.exe", mimeType: "application/x-msdownload", buffer: Buffer.from("MZ") },
  ]);
  await page.locator("[data-attachment=ready]").waitFor();
  await page.locator("[data-attachment=failed]").getByRole("alert").waitFor();
  await assertAccessible(page);
  await page.getByRole("textbox", { name: "Message" }).fill("Read this");
  assert.equal(await page.getByRole("button", { name: "Send" }).isDisabled(), true);
  await page.getByRole("button", { name: "Remove program.exe" }).click();
  await page.getByRole("button", { name: "Send" }).click();
  await turnEnds(page);
  assert.equal(await page.locator("[data-attachment]").count(), 0);
  const { timeline } = await new Everturn({ url: gateway.url }).conversation(await openedId(page)).timeline();
  expect(tab, /415/);
  const [message] = timeline;
  assert.match(JSON.stringify(message?.attachments), /notes\.txt/);
});

test("a conversation gets another title, and is deleted when one is sure", async () => {
  const { page } = await open();
  await send(page, "A title to change");
  await turnEnds(page);
  const id = await openedId(page);
  await page.getByRole("button", { name: "Rename" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "Title" }).fill("Changed");
  await assertAccessible(page);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await see(page, ".list a[aria-current]", /^Changed$/);
  const remove = page.getByRole("button", { name: "Delete" });
  await remove.click();
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await remove.click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.locator(".list a").filter({ hasText: "Changed" }).waitFor({ state: "detached" });
  await see(page, ".timeline", "Send a message to begin.");
  await assert.rejects(new Everturn({ url: gateway.url }).conversation(id).show(), /No conversation/);
});

test("a turn in which nothing happens is resumed", async () => {
  const never = gate();
  model.on("be quiet", () => ({ texts: [never.opened] }));
  const { page } = await open();
  await page.clock.install();
  await send(page, "Now be quiet");
  await page.locator(".list .dot.running").waitFor();
  await page.clock.fastForward(16_000);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Nothing has happened for a while.").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".end.cancelled").waitFor();
  await assertSameAsApi(page, gateway.url);
  never.open();
});

test("a failed turn is retried at its end", async () => {
  let calls = 0;
  model.on("try twice", () => (++calls === 1 ? { status: 400 } : { texts: ["Now it works."] }));
  const { page } = await open();
  await send(page, "Please try twice");
  await page.locator(".end.error").waitFor();
  const retry = page.getByRole("button", { name: "Retry", exact: true });
  await assertAccessible(page);
  await retry.click();
  await see(page, ".timeline", "Now it works.");
  await see(page, ".timeline", "The failed turn is tried again.");
  await retry.waitFor({ state: "detached" });
  await turnEnds(page, 2);
  assert.equal(await page.locator(".item.user_message").count(), 1);
  assert.equal(calls, 2);
  await assertSameAsApi(page, gateway.url);
});

test("conversations before the newest hundred are shown when they are asked for", async () => {
  const everturn = new Everturn({ url: gateway.url });
  for (let number = 0; number < 110; number++) await everturn.create({ title: `Number ${number}` });
  const { page } = await open();
  await see(page, ".list a", /^Number 109$/);
  const first = page.locator(".list a").filter({ hasText: /^Number 0$/ });
  assert.equal(await first.count(), 0);
  await page.getByRole("button", { name: "Show earlier conversations" }).click();
  await first.waitFor();
  assert.equal(await page.locator(".list a").filter({ hasText: /^Number 109$/ }).count(), 1);
});

test("a worker that is killed alone, and a gateway beside another one, lose and double nothing", async () => {
  const own = mkdtempSync(`${tmpdir()}/everturn-roles-`);
  const temporal = process.env["EVERTURN_TEMPORAL_BIN"] ?? "temporal";
  const roles: Roles = await startRoles(own, config(model.url), temporal, process.env["EVERTURN_BIN"] ?? "");
  try {
    const never = gate();
    model.on("lose its worker", (_, attempt) => ({ texts: ["Half ", ...(attempt === 0 ? [never.opened] : []), "and whole."] }));
    const tab = await open(`${roles.url}/`);
    await send(tab.page, "This will lose its worker");
    await see(tab.page, "[data-writing]", "Half");
    await roles.killWorker();
    roles.startWorker();
    await tab.page.locator(".end").waitFor({ timeout: 60_000 });
    await see(tab.page, ".assistant_message", /^Half and whole\.$/);
    await assertSameAsApi(tab.page, roles.url);
    never.open();

    const rest = gate();
    model.on("lose its gateway", () => ({ texts: ["Before ", rest.opened, "and after."] }));
    await send(tab.page, "This will lose its gateway");
    await see(tab.page, "[data-writing]", "Before");
    await roles.killGateway();
    rest.open();
    await turnEnds(tab.page, 2);
    await see(tab.page, ".assistant_message", /^Before and after\.$/);

    await roles.killWorker();
    await send(tab.page, "Is a worker there");
    await see(tab.page, "[data-pending=queued]", "Waits for a worker");
    roles.startWorker();
    await turnEnds(tab.page, 3);
    await assertSameAsApi(tab.page, roles.url);
    await tab.page.context().close();
    expect(tab, /ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/);
  } finally {
    await roles.stop();
    rmSync(own, { recursive: true, force: true });
  }
});
