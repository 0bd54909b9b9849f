/** The page in Chromium, against `everturn dev` with a model that does as it is told. `make page` runs it. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { after, afterEach, before, test } from "node:test";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { type RealGateway, startGateway } from "../../../clients/typescript/test/support/everturn.js";
import { Everturn } from "everturn-client";
import { createKey } from "./support/keys";
import { gate, startModel } from "./support/model";
import { assertAccessible, beginAnew, openedId, openTab } from "./support/page";
import { see, send, startChromium, type Tab, turnEnds } from "./support/page";
import { assertSameAsApi } from "./support/same";

const ROOT = resolve("../..");

const config = (model: string) => `
[providers.scripted]
kind = "openai"
base_url = "${model}"

[agents.default]
provider = "scripted"
model = "scripted"
tools = ["calculate", "current_time", "works__work", "works__ask", "works__pay", { name = "works__lose", timeout = "1s" }, { name = "refund", approval = "always" }, { name = "charge", approval = "always" }]

[mcp.works]
command = ["${ROOT}/.tools/venv/bin/python", "${ROOT}/tests/mcp/servers/works.py"]
process.unconfined = true

[client_tools.refund]
description = "Refunds an order."

[client_tools.charge]
description = "Charges a customer."
title = "Charge {customer} {amount} euros"
`;

let folder: string;
let model: Awaited<ReturnType<typeof startModel>>;
let gateway: RealGateway;
let browser: Browser;
const tabs: Tab[] = [];

before(async () => {
  folder = mkdtempSync(`${tmpdir()}/everturn-page-`);
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

async function open(path = "/", options: BrowserContextOptions = {}, beside?: Tab): Promise<Tab> {
  const tab = await openTab(browser, gateway.url + path, options, beside);
  tabs.push(tab);
  return tab;
}

test("tools run beside one another, and a reload in mid-message loses nothing", async () => {
  const rest = gate();
  model.on("two tools", (step) =>
    step === 0
      ? {
          texts: ["I need two tools."],
          calls: [
            { name: "calculate", input: { expression: "21 * 2" } },
            { name: "current_time", input: { time_zone: "Asia/Tokyo" } },
          ],
        }
      : { texts: ["It is ", "forty-", rest.opened, "two."] },
  );
  const { page } = await open();
  await send(page, "Use two tools");
  await see(page, "[data-writing]", "It is forty-");
  assert.equal(await page.locator(".parallel .tool.done").count(), 2, "both are in one row, and done");
  await page.reload();
  await see(page, "[data-writing]", "It is forty-");
  rest.open();
  await turnEnds(page);
  await see(page, ".assistant_message", /^It is forty-two\.$/);
  await assertSameAsApi(page, gateway.url);
  const entry = page.locator(".list a").filter({ hasText: "Use two tools" });
  await entry.locator(".dot.idle").waitFor();
});

test("a gateway that is killed in mid-message is followed again when it is back", async () => {
  const never = gate();
  model.on("be killed", (_, attempt) => ({ texts: ["Half ", ...(attempt === 0 ? [never.opened] : []), "and whole."] }));
  const tab = await open();
  await send(tab.page, "Now be killed");
  await see(tab.page, "[data-writing]", "Half");
  await gateway.kill();
  await see(tab.page, ".status", /connection is lost/);
  gateway = await gateway.restart();
  await turnEnds(tab.page);
  assert.equal(await tab.page.locator(".status").innerText(), "");
  await assertSameAsApi(tab.page, gateway.url);
  never.open();
  // That nobody answered is what the browser says itself.
  tab.complaints.splice(0, Infinity, ...tab.complaints.filter((text) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(text)));
});

test("two tabs show the same, whoever sends", async () => {
  const rest = gate();
  model.on("both tabs", () => ({ texts: ["Seen ", rest.opened, "by both."] }));
  const first = await open();
  await send(first.page, "Hello to both tabs");
  const id = await openedId(first.page);
  const second = await open(`/#/c/${id}`, {}, first);
  for (const { page } of [first, second]) await see(page, "[data-writing]", "Seen");
  rest.open();
  await turnEnds(second.page);
  await send(second.page, "Again to both tabs");
  for (const { page } of [first, second]) {
    await turnEnds(page, 2);
    await assertSameAsApi(page, gateway.url);
  }
});

test("whoever leaves a conversation and comes back sees it whole, and back and forward work", async () => {
  const rest = gate();
  model.on("conversation A", () => ({ texts: ["A begins, ", rest.opened, "A ends."] }));
  const { page } = await open();
  await send(page, "This is conversation A");
  await see(page, "[data-writing]", "A begins");
  await beginAnew(page);
  await send(page, "This is conversation B");
  await turnEnds(page);
  await assertSameAsApi(page, gateway.url);
  await page.locator(".list a").filter({ hasText: "conversation A" }).click();
  await see(page, "[data-writing]", "A begins");
  rest.open();
  await turnEnds(page);
  await assertSameAsApi(page, gateway.url);
  await page.goBack();
  await see(page, ".user_message", "conversation B");
  await page.goForward();
  await see(page, ".assistant_message", "A begins, A ends.");
  await assertSameAsApi(page, gateway.url);
});

test("an address that changes while the page is drawn for the first time is followed", async () => {
  await new Everturn({ url: gateway.url }).conversation("meanwhile").ask("Are you there?");
  const { page } = await open();
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector(".frame")) return;
      observer.disconnect();
      location.hash = "#/c/meanwhile";
    }).observe(document, { childList: true, subtree: true });
  });
  await page.reload();
  await see(page, ".user_message", "Are you there?");
});

test("a turn is stopped, and the text so far is kept", async () => {
  const never = gate();
  model.on("be stopped", () => ({ texts: ["So far", never.opened] }));
  const { page } = await open();
  await send(page, "Now be stopped");
  await see(page, "[data-writing]", "So far");
  await page.getByRole("button", { name: "Stop" }).click();
  await see(page, ".end.cancelled", "Cancelled");
  await see(page, ".assistant_message", "So far");
  await assertSameAsApi(page, gateway.url);
  never.open();
});

test("a person sees why a turn waits for its provider", async () => {
  model.on("be patient", (_step, attempt) => (attempt < 3 ? { status: 503 } : { texts: ["At last."] }));
  const { page } = await open();
  await send(page, "Now be patient");
  await see(page, ".activity", "The provider is not available; next try in");
  await see(page, ".assistant_message", "At last.");
  assert.equal(await page.locator(".activity").count(), 0);
});

test("a person sees how far a running tool is", async () => {
  model.on("work for long", (step) => (step === 0 ? { calls: [{ name: "works__work", input: {} }] } : { texts: ["Worked."] }));
  const { page } = await open();
  await send(page, "Now work for long");
  await see(page, ".activity", /^Waits for the tool works__work\s*\d+\/150 step \d+/);
  await assertAccessible(page);
  await see(page, ".assistant_message", "Worked.");
  await page.locator(".activity").waitFor({ state: "detached" });
});

test("a person settles the outcome of a call that was cut off", async () => {
  model.on("lose it", (step) => (step === 0 ? { calls: [{ name: "works__lose", input: {} }] } : { texts: ["Lost."] }));
  const { page } = await open();
  await send(page, "Now lose it");
  await turnEnds(page);
  const call = page.locator(".tool", { hasText: "lose" });
  await see(page, ".tool .approval", "Did this call have its effect?");
  await assertAccessible(page);
  await call.getByLabel("Comment (optional)").fill("The bank has it.");
  await call.getByRole("button", { name: "It happened" }).click();
  await page.locator(".tool.done", { hasText: "lose" }).waitFor();
  assert.equal(await call.locator(".approval").count(), 0);
  await see(page, ".note", "lose");
  await assertSameAsApi(page, gateway.url);
});

test("a running tool asks the person, who answers or declines", async () => {
  const results: string[] = [];
  model.on("ask me", (step, _, last) => (step === 0 ? { calls: [{ name: "works__ask", input: {} }] } : (results.push(...last), { texts: ["Asked."] })));
  const { page } = await open();
  await send(page, "Now ask me");
  await see(page, ".question .asked", /works__ask.* asks you/);
  await see(page, ".question .said", "Who travels, and on how many seats?");
  await see(page, ".question [role=timer]", /left to answer/);
  await page.locator(".list .dot.waiting_for_approval").waitFor();
  await assertAccessible(page);
  await page.getByLabel("Name").fill("Ada");
  await page.getByLabel("Seats").fill("9");
  await page.getByRole("button", { name: "Answer" }).click();
  await see(page, ".question .problem", "The number must be at most 8.");
  await page.getByLabel("Seats").fill("3");
  await page.getByRole("button", { name: "Answer" }).click();
  await turnEnds(page);
  await see(page, ".tool.done .decision", "answered");
  assert.match(results.join(), /3 seats for Ada/);
  await assertSameAsApi(page, gateway.url);
  await send(page, "And ask me again");
  await page.getByRole("button", { name: "Decline" }).click();
  await turnEnds(page, 2);
  await see(page, ".tool.done .decision", "declined");
  assert.match(results.join(), /nobody travels/);
});

test("a running tool asks the person to open an address", async () => {
  const results: string[] = [];
  model.on("let me pay", (step, _, last) => (step === 0 ? { calls: [{ name: "works__pay", input: {} }] } : (results.push(...last), { texts: ["Paid."] })));
  const { page } = await open();
  await send(page, "Now let me pay");
  await see(page, ".question .host", "pay.example");
  await see(page, ".question pre", "https://pay.example/7");
  assert.equal(await page.getByRole("link", { name: "Open pay.example in a new tab" }).getAttribute("rel"), "noopener noreferrer");
  await assertAccessible(page);
  await page.getByRole("link", { name: "Approvals" }).click();
  await see(page, ".inbox .question .host", "pay.example");
  await page.getByRole("button", { name: "I have done this" }).click();
  await see(page, ".inbox", "No call waits for you.");
  await page.goBack();
  await turnEnds(page);
  assert.match(results.join(), /paid/);
});

test("calls are approved, edited and denied", async () => {
  const order = (number: number) => ({ name: "refund", input: { order: number } });
  model.on("refunds", (step) => (step === 0 ? { calls: [order(1), order(2)] } : { texts: ["Done with refunds."] }));
  const { page } = await open();
  await send(page, "Make refunds");
  const cards = page.locator(".tool");
  await cards.nth(1).getByRole("button", { name: "Deny" }).waitFor();
  await page.locator(".list .dot.waiting_for_approval").waitFor();
  await cards.nth(0).getByRole("button", { name: "Deny" }).click();
  await see(page, ".tool.failed", "denied");
  const second = cards.nth(1);
  await second.getByRole("button", { name: "Edit the input" }).click();
  await second.getByRole("textbox").fill("no JSON");
  await second.getByRole("button", { name: "Approve with this input" }).click();
  await see(page, ".approval [role=alert]", "This is no JSON.");
  await second.getByRole("textbox").fill('{"order": 22}');
  await second.getByRole("button", { name: "Approve with this input" }).click();
  await see(page, ".tool", /approved.*"order":22/s);
  await assertSameAsApi(page, gateway.url);
  await page.getByRole("button", { name: "Stop" }).click();
  await see(page, ".end.cancelled", "Cancelled");
  await assertSameAsApi(page, gateway.url);
});

test("what the model says before a tool stays in sight, live and after a reload", async () => {
  const call = { name: "refund", input: { order: 7 } };
  const rest = gate();
  model.on("say why", (step) => (step === 0 ? { texts: ["I refund order 7.", rest.opened], calls: [call] } : { texts: ["Done."] }));
  const { page } = await open();
  await send(page, "Now say why");
  await see(page, "[data-writing]", "I refund order 7.");
  rest.open();
  const deny = page.getByRole("button", { name: "Deny" });
  await deny.waitFor();
  const said = page.locator(".said");
  assert.equal(await said.innerText(), "I refund order 7.");
  assert.equal(await page.locator("[data-writing], .thought").count(), 0, "the text is neither doubled nor folded");
  await page.reload();
  await deny.waitFor();
  assert.equal(await said.innerText(), "I refund order 7.");
  await assertSameAsApi(page, gateway.url);
  await deny.click();
  await turnEnds(page);
});

test("a call has the title of its tool, which changes with an edited input", async () => {
  const call = { name: "charge", input: { customer: "<b>Ada</b>", amount: 20 } };
  model.on("charge her", (step) => (step === 0 ? { calls: [call] } : { texts: ["Done."] }));
  const { page } = await open();
  await send(page, "Please charge her");
  const card = page.locator(".tool");
  await see(page, ".tool strong", /^Charge <b>Ada<\/b> 20 euros$/);
  assert.equal(await card.locator("code.brief").textContent(), "charge", "the name stays beside the title");
  await assertSameAsApi(page, gateway.url);
  await card.getByRole("button", { name: "Edit the input" }).click();
  await card.getByRole("textbox").fill('{"customer": "Bob", "amount": 30}');
  await card.getByRole("button", { name: "Approve with this input" }).click();
  await see(page, ".tool strong", /^Charge Bob 30 euros$/);
  await assertSameAsApi(page, gateway.url);
  await page.getByRole("button", { name: "Stop" }).click();
  await see(page, ".end.cancelled", "Cancelled");
});

test("texts of others do nothing but show", async () => {
  const evil = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "[a link](javascript:alert(3)) [data](data:text/html,x) [good](https://example.com/)",
    "![picture](https://example.com/x.png)",
    "`<b>` & &lt;i&gt; \u202Eesrever",
  ].join("\n\n");
  model.on("evil", () => ({ texts: [evil] }));
  model.on("huge", () => ({ texts: ["x ".repeat(500_000)] }));
  const { page } = await open();
  await send(page, `evil ${evil}`);
  await turnEnds(page);
  const answer = page.locator(".assistant_message");
  const text = await answer.innerText();
  for (const part of ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "<b>", "& <i> ⟨202E⟩esrever"]) {
    assert.ok(text.includes(part), `${part} in ${text}`);
  }
  const links = await answer.locator("a").evaluateAll((found) => found.map((link) => [link.getAttribute("href"), link.getAttribute("rel")]));
  assert.deepEqual(links.map(([href]) => href), ["https://example.com/", "https://example.com/x.png"]);
  assert.ok(links.every(([, rel]) => rel?.includes("noopener")));
  assert.equal(await page.locator(".timeline :is(script, img, iframe, b)").count(), 0);
  await send(page, "huge");
  await turnEnds(page, 2);
  await page.getByRole("button", { name: /Show all 1,000,000 characters/ }).click();
  assert.equal((await page.locator(".assistant_message").nth(1).textContent())?.length, 1_000_000);
});

test("an error has its code, and a link to the page that says what to do", async () => {
  model.on("be refused", () => ({ status: 400 }));
  const { page } = await open();
  await send(page, "Now be refused");
  const link = page.locator(".end.error a");
  await link.waitFor();
  assert.equal(await link.innerText(), "llm_bad_request");
  const target = new URL((await link.getAttribute("href")) ?? "", page.url());
  assert.match(await (await fetch(target)).text(), /llm_bad_request/);
});

test("a conversation that is not there is told", async () => {
  const { page, complaints } = await open("/#/c/nowhere");
  await see(page, "[role=alert]", "There is no conversation with this id.");
  complaints.splice(0, Infinity, ...complaints.filter((text) => !text.includes("status of 404")));
});

test("what came before is read when somebody scrolls up", async () => {
  const { page } = await open();
  await send(page, "Message 0");
  await turnEnds(page);
  const id = await openedId(page);
  const post = (number: number) =>
    fetch(`${gateway.url}/api/v1/agent/conversations/${id}/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ content: `Message ${number}` }),
    });
  for (let number = 1; number <= 110; number++) {
    let answer = await post(number);
    while (answer.status === 429 || answer.status === 409) answer = await post(number);
    assert.equal(answer.status, 202);
    await see(page, ".user_message", new RegExp(`^Message ${number}$`));
  }
  await see(page, ".assistant_message", "Message 110");
  await page.locator(".row:last-child .end").waitFor();
  await page.reload();
  await see(page, ".user_message", /^Message 110$/);
  await page.locator(".earlier").waitFor(); // only the newest page is there
  await page.waitForFunction(() => {
    document.querySelector(".timeline")!.scrollTop = 0;
    return !document.querySelector(".earlier");
  });
  await see(page, ".user_message", /^Message 0$/);
  await assertSameAsApi(page, gateway.url);
});

test("whoever must say who they are trades a key for a session", async (t) => {
  const own = `${folder}/keys`;
  const asks = await startGateway(own, `${config(model.url)}\n[auth]\nrequired = true\n`);
  t.after(() => asks.stop());
  const tab = await openTab(browser, `${asks.url}/`);
  tabs.push(tab);
  const { page, complaints } = tab;
  const key = page.getByLabel("Key or token");
  await key.fill("no-such-key");
  await key.press("Enter");
  await see(page, "[role=alert]", "unauthenticated");
  await key.fill(createKey(own));
  await key.press("Enter");
  await send(page, "Hello with a key");
  await turnEnds(page);
  await page.reload();
  await see(page, ".assistant_message", "Hello with a key");
  await page.getByRole("button", { name: "Sign out" }).click();
  await key.waitFor();
  complaints.splice(0, Infinity, ...complaints.filter((text) => !text.includes("status of 401")));
});

test("axe finds no serious fault in a conversation, light or dark", async () => {
  const markdown = "# Title\n\n> `code` and [a link](https://example.com/)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] done";
  const sum = { name: "calculate", input: { expression: "2 * 3" } };
  model.on("be asked", () => ({ texts: ["I ask."], calls: [{ name: "refund", input: { order: 1 } }] }));
  model.on("show all", (step) => (step === 0 ? { texts: ["I think."], calls: [sum] } : { texts: [markdown] }));
  for (const colorScheme of ["light", "dark"] as const) {
    const { page } = await open("/", { colorScheme });
    await send(page, "Now be asked");
    await page.locator(".approval").waitFor();
    await assertAccessible(page);
    await page.getByRole("button", { name: "Stop" }).click();
    await see(page, ".end.cancelled", "Cancelled");
    await beginAnew(page);
    await send(page, "Now show all");
    await turnEnds(page);
    for (const summary of await page.locator(".timeline summary").all()) await summary.click();
    await assertAccessible(page);
  }
});

test("it speaks Chinese, fits a phone, and works by keyboard", async () => {
  await new Everturn({ url: gateway.url }).conversation("phone", { title: "On a phone" }).ask("A word ".repeat(50));
  const { page } = await open("/", { locale: "zh-CN", viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  assert.equal(await page.locator("html").getAttribute("lang"), "zh");
  await page.getByRole("button", { name: "显示对话列表" }).press("Enter");
  await page.getByRole("link", { name: "新对话" }).waitFor();
  await page.getByRole("searchbox", { name: "搜索标题" }).fill("PHONE");
  const found = page.locator(".list li");
  await found.filter({ hasText: "On a phone" }).waitFor();
  assert.equal(await found.count(), 1);
  await found.getByRole("link").press("Enter");
  await see(page, ".user_message", "A word");
  const tooWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  assert.equal(tooWide, false, "nothing is wider than the phone");
  const box = page.getByRole("textbox", { name: "消息" });
  await box.focus();
  await page.keyboard.type("one");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("two");
  assert.equal(await box.inputValue(), "one\ntwo");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "发送");
});
