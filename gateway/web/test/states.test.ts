/**
 * States that few people see, in Chromium: nobody is signed in, something is not there, the gateway refuses. Each is reached and
 * left by the keyboard alone, and axe finds no serious fault in it, in English and in Chinese. `make page` runs it.
 */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, afterEach, before, test } from "node:test";
import { type RealGateway, startGateway } from "../../../clients/typescript/test/support/everturn.js";
import { type Bench, startBench } from "./support/bench";
import { createKey } from "./support/keys";
import { enter, tabTo, tabToOne, write } from "./support/keyboard";
import { assertAccessible, see, type Tab, turnEnds } from "./support/page";
import { turn } from "./support/seed";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
tools = [{ name = "refund", approval = "always" }]

[client_tools.refund]
description = "Refunds an order."
`;

let bench: Bench;
/** A gateway that asks who is there, and its folder. */
let asks: RealGateway;
let folder: string;

before(async () => {
  folder = mkdtempSync(`${tmpdir()}/everturn-states-`);
  bench = await startBench(CONFIG);
  const provider = `[providers.scripted]\nkind = "openai"\nbase_url = "${bench.model.url}"\n`;
  asks = await startGateway(folder, `${provider}${CONFIG}\n[auth]\nrequired = true\n`);
});
afterEach(() => bench.closeTabs());
after(async () => {
  asks?.stop();
  await bench?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** What the browser says itself of requests that failed as they should. */
function expect(tab: Tab, status: number): void {
  tab.complaints.splice(0, Infinity, ...tab.complaints.filter((text) => !text.includes(`status of ${status}`)));
}

const LANGUAGES = [
  { locale: "en-US", key: "Key or token", signIn: "Sign in", signOut: "Sign out", message: "Message" },
  { locale: "zh-CN", key: "密钥或令牌", signIn: "登录", signOut: "退出登录", message: "消息" },
] as const;

test("one signs in and out", async () => {
  for (const { locale, key, signIn, signOut, message } of LANGUAGES) {
    const tab = await bench.open(`${asks.url}/`, { locale, colorScheme: locale === "zh-CN" ? "dark" : "light" });
    const { page } = tab;
    const field = page.getByLabel(key);
    await field.waitFor();
    await assertAccessible(page);
    // A password field has no role.
    const writeKey = async (value: string) => {
      await tabToOne(page, field, "the key");
      await page.keyboard.press("Control+A");
      await page.keyboard.insertText(value);
    };
    await writeKey("no-such-key");
    await enter(page, "button", signIn);
    await see(page, "[role=alert]", "unauthenticated");
    await assertAccessible(page);
    await writeKey(createKey(folder));
    await page.keyboard.press("Enter");
    await write(page, message, "Hello with a key");
    await page.keyboard.press("Enter");
    await turnEnds(page);
    await enter(page, "button", signOut);
    await field.waitFor();
    expect(tab, 401);
  }
});

test("a conversation that is not there is left for another one", async () => {
  const tab = await bench.open("/#/c/nowhere");
  const { page } = tab;
  await see(page, "[role=alert]", "There is no conversation with this id.");
  await assertAccessible(page);
  await enter(page, "link", "New conversation");
  await see(page, ".timeline", "Send a message to begin.");
  expect(tab, 404);
});

test("a gateway that refuses is asked again", async () => {
  const problem = { type: "docs/errors/forbidden", title: "Forbidden", status: 403, code: "forbidden", detail: "Not now." };
  const refusal = { status: 403, json: problem, contentType: "application/problem+json" };
  const tab = await bench.open("/about");
  const { page } = tab;
  for (const what of ["**/session", "**/events?*"]) await page.route(what, (route) => route.fulfill(refusal));
  await bench.seed("refused", turn(1));
  await page.goto(`${bench.gateway.url}/#/c/refused`);
  await see(page, ".alone [role=alert]", "Not now. forbidden");
  await assertAccessible(page);
  await page.unroute("**/session");
  await enter(page, "button", "Try again");
  await see(page, ".status[role=alert]", "Not now. forbidden");
  await assertAccessible(page);
  await page.unroute("**/events?*");
  await enter(page, "button", "Try again");
  await see(page, ".assistant_message", "Answer 1");
  assert.equal(await page.locator("[role=alert]").count(), 0);
  expect(tab, 403);
});

test("the page is accessible in Chinese: empty, with a question, with what was opened, and behind it", async () => {
  bench.model.on("refund it", (step) => (step === 0 ? { calls: [{ name: "refund", input: { order: 1 } }] } : { texts: ["Done."] }));
  await bench.seed("chinese", [
    ...turn(1),
    { type: "work_plan", data: { plan_id: "p", title: "A plan", steps: [{ step_number: 1, description: "A step", status: "completed" }] } },
    { type: "model_fallback", data: { from: "a/one", to: "b/two", code: "llm_overloaded" } },
  ]);
  const tab = await bench.open("/", { locale: "zh-CN", viewport: { width: 1400, height: 1600 } });
  const { page } = tab;
  await see(page, ".timeline", "发送一条消息即可开始。");
  await assertAccessible(page);
  await write(page, "消息", "Please refund it");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "批准", exact: true }).waitFor();
  await assertAccessible(page);
  await enter(page, "button", "拒绝");
  await turnEnds(page);
  await enter(page, "link", /chinese/);
  await see(page, ".note", "模型 a/one 失败");
  await page.locator(".timeline details").evaluateAll((found) => found.forEach((details) => details.setAttribute("open", "")));
  await see(page, ".tool pre", "A page.");
  await assertAccessible(page);
  await enter(page, "link", "开发者视图");
  await page.locator(".waterfall tr[data-kind]").first().waitFor();
  await assertAccessible(page);
  await tabTo(page, "link", "事件");
  await page.keyboard.press("Enter");
  await page.locator(".events li").first().waitFor();
  await assertAccessible(page);
});
