/** A turn reads as a story: tools in a line each, sub-agents with their cause, what is waited for. `make page` runs it. */

import assert from "node:assert/strict";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { type Bench, startBench } from "./support/bench";
import { gate } from "./support/model";
import { assertAccessible, see, send, turnEnds } from "./support/page";
import { type Seed, turn } from "./support/seed";

const config = (shop: string) => `
[agents.default]
provider = "scripted"
model = "scripted"
tools = ["stock", { name = "refund", approval = "always" }]
delegates = ["researcher"]

[agents.researcher]
provider = "scripted"
model = "scripted"
tools = ["stock"]

[tools.stock]
description = "Says how much of an item there is."
url = "${shop}/{item}"
input = { properties = { item = { type = "string" } }, required = ["item"] }

[client_tools.refund]
description = "Refunds an order."

[egress]
allow = ["127.0.0.0/8"]
`;

let bench: Bench;
let shop: Server;
/** Requests that the shop has not answered. */
const asked: ServerResponse[] = [];

before(async () => {
  shop = createServer((_, response) => void asked.push(response));
  await new Promise<void>((resolve) => shop.listen(0, "127.0.0.1", resolve));
  bench = await startBench(config(`http://127.0.0.1:${(shop.address() as AddressInfo).port}`));
});
afterEach(() => bench.closeTabs());
after(async () => {
  await bench?.stop();
  shop?.closeAllConnections();
  shop?.close();
});

/** Answers the request of a tool, which may still be on its way. */
async function answer(status: number, body: string): Promise<void> {
  while (asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  asked.shift()!.writeHead(status, { "content-type": "text/plain" }).end(body);
}

const stock = (item: string) => ({ name: "stock", input: { item } });
const line = (page: Page, item: string) => page.locator(".tool", { hasText: item }).first();

/** The seconds that a clock shows. */
async function secondsOf(clock: Locator): Promise<number> {
  const [minutes, seconds] = ((await clock.textContent()) ?? "").split(":").map(Number);
  return 60 * minutes! + seconds!;
}

test("a tool has a line: a clock while it runs, its result or the reason of its failure, and the rest on demand", async () => {
  bench.model.on("two teas", (step) => (step === 0 ? { calls: [stock("green"), stock("black")] } : { texts: ["Seen."] }));
  const { page } = await bench.open();
  await send(page, "Look for two teas");
  const [green, black] = [line(page, "green"), line(page, "black")];
  await page.waitForFunction(() => document.querySelector(".tool .clock")?.textContent === "0:01");
  const heights = async () => Promise.all([green, black].map(async (tool) => (await tool.boundingBox())?.height));
  const before = await heights();
  assert.ok(before.every((height) => height! < 44), `lines are ${before} high`);
  await see(page, ".activity", "Waits for 2 tools: stock");
  await assertAccessible(page);
  // Requests come in any order: each gets the answer of its item.
  while (asked.length < 2) await page.waitForTimeout(10);
  asked.sort((one, other) => (one.req.url! < other.req.url! ? 1 : -1));
  await answer(200, "12 boxes of green tea\nand more");
  await answer(404, "The shelf of black tea is closed.");
  await turnEnds(page);
  await see(page, ".tool.done .gist", /12 boxes/);
  await see(page, ".tool.failed .gist", /closed/);
  assert.match((await green.locator(".outcome").textContent()) ?? "", /^\d+\.\d s$/);
  assert.equal(await green.getByRole("img", { name: "done" }).count(), 1);
  assert.equal(await black.getByRole("img", { name: "failed" }).count(), 1);
  assert.equal((await heights())[0], before[0], "the result moves nothing");
  assert.equal(await page.locator(".tool pre").count(), 0, "the whole is there on demand");
  await green.locator("summary").click();
  await see(page, ".tool.done [data-part=input] pre", "green");
  await see(page, ".tool.done [data-part=output] pre", "and more");
  assert.equal(await page.locator(".activity").count(), 0);
});

test("clocks go by the gateway's time, and stand while nobody looks", async () => {
  bench.model.on("slow tea", (step) => (step === 0 ? { calls: [stock("slow")] } : { texts: ["Seen."] }));
  const { page } = await bench.open("/about");
  // This device is an hour ahead.
  await page.clock.install({ time: Date.now() + 3_600_000 });
  await page.goto(bench.gateway.url);
  await send(page, "Look for slow tea");
  const clock = page.locator(".tool .clock");
  await clock.waitFor();
  assert.ok((await secondsOf(clock)) < 60, `it shows ${await clock.textContent()}`);
  const look = (state: string) =>
    page.evaluate((visibilityState) => {
      Object.defineProperty(document, "visibilityState", { value: visibilityState, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, state);
  await look("hidden");
  const stood = await secondsOf(clock);
  await page.clock.runFor(5000);
  assert.equal(await secondsOf(clock), stood);
  await look("visible");
  await page.waitForFunction((least) => Number(document.querySelector(".tool .clock")!.textContent!.slice(2)) >= least, stood + 5);
  await answer(200, "12");
  await turnEnds(page);
});

test("whoever wants less motion has none", async () => {
  bench.model.on("still tea", (step) => (step === 0 ? { calls: [stock("still")] } : { texts: ["Seen."] }));
  const { page } = await bench.open("/", { reducedMotion: "no-preference" });
  await send(page, "Look for still tea");
  const icon = page.locator(".tool.running .icon");
  const motion = () => icon.evaluate((mark) => getComputedStyle(mark).animationName);
  await icon.waitFor();
  assert.equal(await motion(), "pulse");
  await page.emulateMedia({ reducedMotion: "reduce" });
  assert.equal(await motion(), "none");
  await answer(200, "12");
  await turnEnds(page);
});

test("a sub-agent names the tool that has triggered it, in the conversation and in the developer's view", async () => {
  const calls = [{ name: "delegate", input: { agent: "researcher", task: "count the tea" } }];
  bench.model.on("tea be counted", (step) => (step === 0 ? { calls } : { texts: ["Counted."] }));
  bench.model.on("count the tea", (step) => (step === 0 ? { calls: [stock("counted")] } : { texts: ["Three boxes."] }));
  const { page } = await bench.open("/", { viewport: { width: 1400, height: 900 } });
  await send(page, "Let the tea be counted");
  await see(page, ".nested .tool.running", "counted");
  await see(page, ".activity", /^Waits for the tool stock/);
  await answer(200, "3");
  await turnEnds(page);
  await see(page, ".parallel > .tool > .call .what", "Ask researcher");
  await see(page, ".nested > summary", /Sub-agent researcher: count the tea triggered by tool delegate/);
  await page.locator(".nested > summary").click();
  assert.equal(await page.locator(".nested .assistant_message").isVisible(), false, "a sub-agent folds");
  await page.getByRole("link", { name: "Developer's view" }).click();
  await see(page, ".executions li li summary", /researcher.*triggered by tool delegate/);
});

test("what is waited for is said: the model, a person, a program, a tool", async () => {
  const [first, rest] = [gate(), gate()];
  bench.model.on("everything", (step) => {
    if (step === 0) return { texts: [first.opened, "I refund", rest.opened], calls: [{ name: "refund", input: { order: 1 } }] };
    return step === 1 ? { calls: [stock("awaited")] } : { texts: ["Done."] };
  });
  const { page } = await bench.open();
  await send(page, "Wait for everything");
  await see(page, ".activity", /^Waits for the model0:0\d$/);
  await assertAccessible(page);
  first.open();
  await see(page, ".activity", "The model writes");
  rest.open();
  await see(page, ".activity", "Waits for your approval");
  await see(page, ".tool .gist", "Waits for your approval");
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await see(page, ".activity", "Waits for your program to run refund");
  await page.getByRole("textbox", { name: /Result/ }).fill("refunded");
  await page.getByRole("button", { name: "Send the result" }).click();
  await see(page, ".activity", "Waits for the tool stock");
  await assertAccessible(page);
  await answer(200, "12");
  await turnEnds(page);
  await page.locator(".activity").waitFor({ state: "detached" });
});

test("results of every form fit a line", async () => {
  const results: readonly (readonly [unknown, string, boolean?])[] = [
    ["\n\n  First line  \nSecond line", "First line"],
    [{ found: 3, name: "Ada", list: [1, 2] }, "found: 3 · name: Ada · list: [1,2]"],
    [{ content: [{ type: "text", text: "" }, { type: "text", text: "From a server\nmore" }] }, "From a server"],
    [{ truncated: true, text: "The beginning\nof much", total_bytes: 90_000 }, "The beginning"],
    [{ of: "Ada", value: 59.7 }, "value: 59.7"],
    [{ error: "No such order." }, "No such order.", true],
    [{ status: 200, body: { left: 12 } }, "left: 12"],
    [null, "failed", true],
    [[1, "two"], '[1,"two"]'],
    [false, "false"],
    ["x".repeat(5000), `${"x".repeat(240)}…`],
  ];
  const call = (at: number) => ({ execution_id: `e${at}`, call_id: `c${at}`, tool_name: `tool_${at}`, agent_execution_id: "run", step: 0 });
  const act = (_: unknown, at: number): Seed => ({ type: "act", data: { ...call(at), tool_input: { of: "Ada" } } });
  const observe = ([result, , is_error = false]: (typeof results)[number], at: number): Seed => ({
    type: "observe",
    data: { ...call(at), result, is_error, duration_ms: 65_000 },
  });
  await bench.seed("forms", [turn(1)[0]!, ...results.map(act), ...results.map(observe), ...turn(1).slice(-2)]);
  const { page } = await bench.open("/#/c/forms", { viewport: { width: 390, height: 844 } });
  await see(page, ".end", "tokens");
  assert.deepEqual(await page.locator(".gist").allTextContents(), results.map(([, text]) => text));
  await see(page, ".outcome", "1 min 5 s");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
  await assertAccessible(page);
});
