/** The developer's view in Chromium, against `everturn dev` with a model that does as it is told. `make page` runs it. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, afterEach, before, test } from "node:test";
import { Everturn, eventData, reduce, turnRows } from "everturn-client";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { type RealGateway, startGateway } from "../../../clients/typescript/test/support/everturn.js";
import { startModel } from "./support/model";
import { assertAccessible, openTab, see, send, startChromium, type Tab, turnEnds } from "./support/page";

const config = (model: string, temporalUi: string) => `
[providers.scripted]
kind = "openai"
base_url = "${model}"

[agents.default]
provider = "scripted"
model = "scripted"
tools = ["calculate", { name = "current_time", approval = "always" }]
delegates = ["helper"]

[agents.helper]
provider = "scripted"
model = "scripted"
description = "Sums up."
tools = ["calculate"]

[gateway]
${temporalUi}
`;
const TEMPORAL_UI = 'temporal_ui = "http://temporal.example.com/namespaces/default/workflows/{workflow_id}"';

let folder: string;
let model: Awaited<ReturnType<typeof startModel>>;
let gateway: RealGateway;
let browser: Browser;
const tabs: Tab[] = [];

before(async () => {
  folder = mkdtempSync(`${tmpdir()}/everturn-developer-`);
  model = await startModel();
  scripts();
  [gateway, browser] = await Promise.all([startGateway(`${folder}/data`, config(model.url, TEMPORAL_UI)), startChromium()]);
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

const sum = (expression: string) => ({ name: "calculate", input: { expression } });

function scripts(): void {
  const time = { name: "current_time", input: { time_zone: "Asia/Tokyo" } };
  const task = { name: "delegate", input: { agent: "helper", task: "Sum up the figures." } };
  model.on("Sum up", (step) => (step === 0 ? { calls: [sum("1 + 2")] } : { texts: ["It is three."] }));
  model.on("all kinds", (step, attempt) => {
    if (step === 0 && attempt === 0) return { status: 503 };
    return step === 0 ? { texts: ["I look."], calls: [sum("6 * 7"), time, task] } : { texts: ["Forty-two."] };
  });
  model.on("many tools", (step) => {
    const calls = Array.from({ length: 40 }, (_, at) => sum(`${step} + ${at}`));
    return step < 6 ? { calls } : { texts: ["Enough."] };
  });
}

async function open(path: string, options: BrowserContextOptions = {}): Promise<Tab> {
  const tab = await openTab(browser, gateway.url + path, { viewport: { width: 1440, height: 900 }, ...options });
  tabs.push(tab);
  return tab;
}

/** Has a turn of all kinds of rows. It waits for the approval until `approve` is called. */
async function turnOfAllKinds(id: string, message = "Please use all kinds of things") {
  const chat = new Everturn({ url: gateway.url }).conversation(id);
  await chat.post(message);
  const approvals = async () => (await chat.approvals().catch(() => [])).slice();
  let waiting = await approvals();
  while (waiting.length === 0) waiting = await approvals();
  const approve = async () => {
    await chat.approve(waiting[0]!);
    for await (const { state } of chat.follow()) if (state.turn === null && state.items.some((item) => item.type === "end")) return;
  };
  return { chat, approve };
}

/** The rows of the waterfall that is shown. */
function rows(page: Page) {
  return page.locator(".waterfall tbody tr[data-kind]").evaluateAll((found) =>
    found.map((row) => [row.querySelector("button")?.textContent, row.getAttribute("data-depth"), row.getAttribute("data-state")].join(" ")),
  );
}

/** The names of the rows that `everturn show` prints. */
function printed(id: string): string[] {
  const args = ["show", id, "--url", gateway.url, "--width", "120"];
  const shown = spawnSync(process.env["EVERTURN_BIN"] ?? "", args, { encoding: "utf8" });
  assert.equal(shown.status, 0, shown.stderr);
  const lines = shown.stdout.split("\n").slice(3).filter((line) => line !== "");
  return lines.map((line) => line.slice(0, 30).trimEnd().slice(2));
}

const ROWS = [
  "LLM call 0 0 done",
  "calculate 0 done",
  "current_time 0 done",
  "delegate → helper 0 done",
  "LLM call 0 1 done",
  "calculate 1 done",
  "LLM call 1 1 done",
  "LLM call 1 0 done",
];

test("a turn is a waterfall while it runs, with its waits, tries and sub-agents", async () => {
  const { approve } = await turnOfAllKinds("kinds");
  const { page } = await open("/#/c/kinds");
  await page.getByRole("link", { name: "Developer's view" }).click();
  await see(page, ".turn-about", "running");
  await see(page, ".waterfall tr.running", /current_time.*waits for an approval/);
  await page.locator(".waterfall tr.done", { hasText: "delegate" }).waitFor();
  const during = ROWS.slice(0, -1).map((row) => row.replace("current_time 0 done", "current_time 0 running"));
  assert.deepEqual(await rows(page), during);
  await approve();
  await see(page, ".waterfall tr.done", /current_time.*waited .* for an approval/);
  assert.deepEqual(await rows(page), ROWS);
  const names = ROWS.map((row) => ["", "  "][Number(row.at(-6))] + row.slice(0, -7));
  assert.deepEqual(printed("kinds"), names, "the terminal shows the same rows");
  const first = page.locator(".waterfall tr.kind-llm_call").first();
  await first.filter({ hasText: /2 tries.*scripted.*10 → 5 tokens/ }).waitFor();
  await see(page, ".turn-about", /done.*2 LLM calls/);
  await page.getByRole("button", { name: "calculate" }).first().click();
  await see(page, ".row-details pre", '"expression": "6 * 7"');
});

test("bars stand on the axis where their rows' times are", async () => {
  const { chat, approve } = await turnOfAllKinds("bars");
  await approve();
  const { page } = await open("/#/c/bars/turns");
  await page.locator(".waterfall tr[data-kind]").nth(7).waitFor();
  const { events } = await chat.events({ fromSequence: 1 });
  const { items, turn } = reduce(events.map((event) => ({ data: eventData(event) })));
  const expected = turnRows(items, turn)[0]!;
  const span = expected.ended! - expected.started;
  const drawn = await page.locator(".track").evaluateAll((tracks) =>
    tracks.map((track) => {
      const box = track.getBoundingClientRect();
      const parts = [...track.querySelectorAll(".bar-part")].map((part) => part.getBoundingClientRect());
      return [Math.min(...parts.map((part) => part.left)), Math.max(...parts.map((part) => part.right))].map((at) => (at - box.left) / box.width);
    }),
  );
  for (const [at, row] of expected.rows.entries()) {
    const [from, until] = drawn[at]!;
    assert.ok(Math.abs(from! - (row.started - expected.started) / span) < 0.02, `${row.name} begins at ${from}`);
    assert.ok(Math.abs(until! - (row.ended! - expected.started) / span) < 0.02, `${row.name} ends at ${until}`);
  }
  const approval = page.locator(".waterfall tr", { hasText: "current_time" });
  assert.equal(await approval.locator(".bar-part.waited").count(), 1);
});

test("agent executions are a tree with their records, and lead to Temporal, in dev to the server of dev", async (t) => {
  const { approve } = await turnOfAllKinds("tree");
  await approve();
  const { page } = await open("/#/c/tree/turns");
  const tree = page.locator(".executions > ul > li");
  await tree.locator("> ul > li").waitFor();
  assert.equal(await page.locator(".executions li").count(), 2, "the sub-agent is below its parent");
  const [summary] = await tree.locator("> details > summary").all();
  await summary!.click();
  await tree.getByRole("table", { name: "Checkpoints" }).first().waitFor();
  const points = await tree.getByRole("table", { name: "Checkpoints" }).first().locator("tbody tr").allInnerTexts();
  const types = points.map((point) => point.split("\t").slice(0, 2).join(" "));
  const aroundTools = ["tool_complete", "tool_start"].flatMap((type) => Array<string>(3).fill(`0 ${type}`));
  assert.deepEqual(types.sort(), ["0 llm_complete", ...aroundTools, "1 llm_complete"]);
  const tools = await tree.getByRole("table", { name: "Tool calls" }).first().locator("tbody tr").allInnerTexts();
  assert.deepEqual(tools.map((tool) => tool.split("\t").slice(0, 4)), [
    ["0", "calculate", "completed", "1"],
    ["0", "current_time", "completed (approved)", "1"],
    ["0", "delegate", "completed", "1"],
  ]);
  await tree.locator("> ul summary").first().click();
  await tree.locator("> ul").getByRole("link").waitFor();
  const links = await page.getByRole("link", { name: "Workflow in the Temporal UI" }).evaluateAll((found) => found.map((link) => link.getAttribute("href")));
  const base = "http://temporal.example.com/namespaces/default/workflows/conversation-tree";
  assert.deepEqual([...new Set(links)].map((link) => link?.replace(/exec_.*/, "exec_")), [base, `${base}%2Fexec_`]);

  const plain = await startGateway(`${folder}/plain`, config(model.url, ""));
  t.after(() => plain.stop());
  await new Everturn({ url: plain.url }).conversation("plain").ask("Hello");
  const tab = await openTab(browser, `${plain.url}/#/c/plain/turns`);
  tabs.push(tab);
  await tab.page.locator(".executions summary").first().click();
  await tab.page.getByRole("table", { name: "Checkpoints" }).waitFor();
  const link = await tab.page.getByRole("link", { name: "Workflow in the Temporal UI" }).first().getAttribute("href");
  assert.match(link ?? "", /^http:\/\/127\.0\.0\.1:\d+\/namespaces\/default\/workflows\/conversation-plain$/);
});

test("each LLM call shows what it was sent and answered, and why tries failed", async () => {
  // The model fails once for each message.
  const { approve } = await turnOfAllKinds("calls", "Please use all kinds of things, once more");
  await approve();
  const { page } = await open("/#/c/calls/turns");
  await page.locator(".executions > ul > li > details > summary").click();
  const first = page.locator('.calls [data-step="0"]').first();
  await first.locator("summary").filter({ hasText: /LLM call 0.*scripted.*1 try failed/ }).click();
  const tries = first.getByRole("table", { name: "Tries without an answer" });
  await tries.filter({ hasText: /llm_unavailable.*503/ }).waitFor();
  const sent = first.getByRole("region", { name: "Sent", exact: true });
  await sent.filter({ hasText: "Please use all kinds of things" }).filter({ hasText: "Tools: calculate, current_time, delegate" }).waitFor();
  await first.getByRole("region", { name: "Answered", exact: true }).filter({ hasText: "I look." }).waitFor();
  await assertAccessible(page);

  // The gateway refuses a caller without the scope.
  const other = await open("/#/c/calls/turns");
  const problem = { type: "/docs/errors/insufficient_scope", title: "No", status: 403, detail: "No", code: "insufficient_scope", instance: "", request_id: "" };
  await other.page.route(/\/calls\/0$/, (route) => route.fulfill({ status: 403, contentType: "application/problem+json", body: JSON.stringify(problem) }));
  await other.page.locator(".executions > ul > li > details > summary").click();
  await other.page.locator('.calls [data-step="0"] > summary').first().click();
  await see(other.page, ".calls", "You need the scope `calls`");
  other.complaints.splice(0);
});

test("raw events are those of the API, and are found by type and by text", async () => {
  const { chat, approve } = await turnOfAllKinds("raw");
  const { page } = await open("/#/c/raw/events");
  await see(page, ".events li", "approval_requested");
  await approve();
  const { events } = await chat.events({ fromSequence: 1 });
  await page.locator(`.events li[data-event="${events.at(-1)?.sequence_number}"]`).waitFor();
  for (const summary of await page.locator(".events summary").all()) await summary.click();
  await page.locator(".events pre").nth(events.length - 1).waitFor();
  const shown = await page.locator(".events pre").allTextContents();
  assert.deepEqual(shown.map((text) => JSON.parse(text)), events);
  await page.getByRole("combobox", { name: "Type of events" }).selectOption("act");
  assert.equal(await page.locator(".events li").count(), 4);
  await page.getByRole("searchbox", { name: "Text in events" }).fill("1 + 2");
  await see(page, "[role=status]", `1 of ${events.length} events`);
  assert.match((await page.locator(".events li").first().textContent()) ?? "", /"expression":"1 \+ 2"/);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.locator(".events li").getByRole("button", { name: "Copy" }).click();
  const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText())) as { event_type: string };
  assert.equal(copied.event_type, "act");
});

test("a long turn and a long log are read in parts, and an old turn by its address", async () => {
  const chat = new Everturn({ url: gateway.url }).conversation("long");
  await chat.ask("The first turn");
  await chat.ask("Now use many tools");
  const { page } = await open("/#/c/long/turns");
  await see(page, ".turn-about", "7 LLM calls");
  assert.equal((await rows(page)).length, 200, "the newest rows");
  await page.getByRole("button", { name: "Show 47 earlier rows" }).click();
  assert.equal((await rows(page)).length, 6 * 41 + 1);
  await page.goto(`${gateway.url}/#/c/long/turns/1`);
  await page.reload();
  await see(page, ".turn h3", "The first turn");
  assert.deepEqual(await rows(page), ["LLM call 0 0 done"]);
  await page.goto(`${gateway.url}/#/c/long/turns/2`);
  await see(page, "[role=alert]", "There is no turn that begins with this event.");
  await page.getByRole("link", { name: "Events" }).click();
  const first = () => page.locator(".events li").first().getAttribute("data-event");
  await page.locator(".events li").nth(199).waitFor();
  assert.equal(await page.locator(".events li").count(), 200);
  while ((await first()) !== "1") {
    const before = await first();
    await page.locator(".developer").getByRole("button", { name: "Show what came before" }).click();
    await page.locator(`.events li[data-event="${Number(before) - 1}"]`).waitFor({ state: "attached" });
  }
  const last = (await chat.status()).last_sequence;
  assert.equal(await page.locator(".events li").count(), last);
});

test("the first text of an LLM call is seen while it is written, and new turns come by themselves", async () => {
  let finish = (): void => undefined;
  const rest = new Promise<void>((resolve) => (finish = resolve));
  let begin = (): void => undefined;
  const beginning = new Promise<void>((resolve) => (begin = resolve));
  model.on("first text", () => ({ texts: [beginning, "Here ", rest, "it is."] }));
  const { page } = await open("/#/");
  await send(page, "Hello");
  await turnEnds(page);
  await page.getByRole("link", { name: "Developer's view" }).click();
  await send(page, "Show me the first text");
  await page.locator(".waterfall tr.kind-llm_call.running").waitFor();
  begin();
  await see(page, ".waterfall tr.running", /first text after/);
  finish();
  await see(page, ".waterfall tr.done", /LLM call 0.*first text after/);
  assert.equal(await page.locator(".turn-list li").count(), 2);
});

test("it fits a phone, and axe finds no serious fault, light or dark", async () => {
  const { approve } = await turnOfAllKinds("phone");
  await approve();
  for (const colorScheme of ["light", "dark"] as const) {
    const { page } = await open("/#/c/phone", { colorScheme, viewport: { width: 360, height: 740 } });
    await page.getByRole("link", { name: "Developer's view" }).click();
    await page.locator(".waterfall tr[data-kind]").nth(7).waitFor();
    const isTooWide = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(await isTooWide(), false, "nothing is wider than the phone");
    await page.getByRole("button", { name: "current_time" }).click();
    await see(page, ".row-details pre", "current_time");
    for (const summary of await page.locator(".executions summary").all()) await summary.click();
    await assertAccessible(page);
    await page.getByRole("link", { name: "Events" }).click();
    await page.locator(".events summary").first().click();
    assert.equal(await isTooWide(), false, "nothing is wider than the phone");
    await assertAccessible(page);
    const wide = await open("/#/c/phone/turns", { colorScheme });
    await wide.page.locator(".waterfall tr[data-kind]").nth(7).waitFor();
    await assertAccessible(wide.page);
  }
});
