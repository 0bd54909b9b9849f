/** Many tabs of one browser at a gateway without TLS: a browser has six connections for all of them. `make page` runs it. */

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { ASLEEP_AFTER_MS } from "../src/shared/protocol";
import { HELD, liveTabs, type Tab as SharedTab, VISIT_MS } from "../src/shared/slots";
import { type Bench, startBench } from "./support/bench";
import { gate } from "./support/model";
import { openTab, see, send, type Tab, turnEnds } from "./support/page";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
`;

/** More than a browser has connections. */
const MANY = 8;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

/** Opens tabs of one browser at these addresses. */
async function openAll(paths: readonly string[]): Promise<Tab[]> {
  const first = await bench.open(paths[0]);
  const tabs = [first];
  for (const path of paths.slice(1)) tabs.push(await openTab(bench.browser, bench.gateway.url + path, {}, first));
  return tabs;
}

test("many tabs of one conversation show a new message, its answer and the list's change", async () => {
  await bench.client.create({ id: "shared", title: "Shared by many" });
  const tabs = await openAll(Array.from({ length: MANY }, () => "/#/c/shared"));
  for (const { page } of tabs) await see(page, ".list a", "Shared by many");
  await send(tabs[0]!.page, "Hello to many tabs");
  for (const { page } of tabs) {
    await see(page, ".user_message", "Hello to many tabs");
    await see(page, ".assistant_message", "You said");
  }
  await bench.client.conversation("shared").rename("Has another title");
  for (const { page } of tabs) await see(page, ".list a", "Has another title");
});

test("many tabs of many conversations can all be written in, and show what others write", async () => {
  const ids = Array.from({ length: MANY }, (_, at) => `many-${at}`);
  for (const id of ids) await bench.client.create({ id, title: id });
  const tabs = await openAll(ids.map((id) => `/#/c/${id}`));
  for (const { page } of tabs) {
    await send(page, "Hello from a tab");
    await turnEnds(page);
  }
  for (const id of ids) await bench.client.conversation(id).ask("Hello from a program");
  for (const { page } of tabs) await see(page, ".user_message", "Hello from a program");
});

/** Tells the tab that nobody sees it, or that somebody does. */
async function show(page: Page, state: "visible" | "hidden"): Promise<void> {
  await page.evaluate((now) => {
    Object.defineProperty(document, "visibilityState", { value: now, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

test("a tab that nobody sees gives its stream back after a while, and goes on where it was", async () => {
  const rest = gate();
  bench.model.on("while hidden", () => ({ texts: ["It goes on ", rest.opened, "behind."] }));
  const { page } = await bench.open();
  await page.clock.install();
  await send(page, "Write while hidden");
  await see(page, "[data-writing]", "It goes on");
  const status = page.locator("[data-connection]");
  await show(page, "hidden");
  await page.clock.fastForward(ASLEEP_AFTER_MS / 2);
  assert.equal(await status.getAttribute("data-connection"), "open", "whoever comes back soon has lost nothing");
  await page.clock.fastForward(ASLEEP_AFTER_MS);
  await page.locator("[data-connection=closed]").waitFor({ state: "attached" });
  rest.open();
  await show(page, "visible");
  await turnEnds(page);
  await see(page, ".assistant_message", /^It goes on behind\.$/);
});

const tab = (order: number, more: Partial<SharedTab> = {}): SharedTab => ({
  order,
  sight: "shown",
  hasConversation: true,
  isBehind: false,
  comesToFront: false,
  visitedAt: 0,
  ...more,
});

test("the tabs that were used last hold streams, and the others have their turns", () => {
  const [old, older] = [tab(1, { isBehind: true }), tab(0, { isBehind: true })];
  const used = [tab(5), tab(4), tab(3)];
  const others = [tab(9, { sight: "hidden" }), tab(8, { sight: "asleep" }), tab(7, { hasConversation: false })];
  const tabs = [old, older, ...others, ...used];
  assert.equal(used.length, HELD);
  const first = liveTabs(tabs, undefined, 1000);
  assert.deepEqual([...first.live], [...used, old]);
  assert.equal(liveTabs(tabs, old, 1000 + VISIT_MS - 1).visitor, old, "who catches up has time for it");
  const second = liveTabs(tabs, old, 1000 + VISIT_MS);
  assert.equal(second.visitor, older);
  assert.equal(liveTabs(tabs, older, 1000 + 2 * VISIT_MS).visitor, old, "each has its turn again");
  const done = liveTabs([tab(1), tab(0), ...used], undefined, 0);
  assert.deepEqual([...done.live], used, "who has all needs no stream");
});
