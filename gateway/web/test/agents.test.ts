/**
 * Where a conversation begins, and what waits for a person, in Chromium: agents to choose, approvals as in the terminal, the
 * list of waiting conversations, and formulas. `make page` runs it.
 */

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type Bench, startBench } from "./support/bench";
import { enter, getsFocus } from "./support/keyboard";
import { assertAccessible, openedId, see, send, turnEnds } from "./support/page";
import type { Seed } from "./support/seed";
import { fiftyAgents } from "./support/shop";

const REFUND = 'tools = [{ name = "refund", approval = { when = { properties = {} }, timeout = "15m" } }]';
const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
models = ["scripted/large"]
description = "Answers questions about orders."
samples = ["Where is my order?", "Refund my order."]
${REFUND}

[client_tools.refund]
description = "Refunds an order."

${fiftyAgents()}
`;
const PHONE = { viewport: { width: 390, height: 844 }, colorScheme: "dark" } as const;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

test("one of many agents is found, chosen, kept, and answers a sample", async () => {
  const { page } = await bench.open();
  await see(page, ".about-agent", "refund");
  await see(page, ".agents [role=status]", "51 agents");
  await assertAccessible(page);
  assert.equal(await page.getByRole("textbox", { name: "Message" }).getAttribute("placeholder"), "Message default");
  await page.getByRole("searchbox", { name: "Search agents" }).fill("legal WEEKLY");
  await see(page, ".agents [role=status]", "1 of 51 agents");
  await page.getByRole("radio", { name: /legal-reports/ }).press("Space");
  await page.reload();
  assert.ok(await page.getByRole("radio", { name: /legal-reports/ }).isChecked(), "the choice is kept");
  await enter(page, "button", "What is new today?");
  await turnEnds(page);
  await see(page, ".user_message", /^What is new today\?$/);
  await see(page, ".heading .agent", /^legal-reports$/);
  await see(page, ".list a[aria-current] .agent", /^legal-reports$/);
  assert.equal((await bench.client.conversation(await openedId(page)).show()).agent, "legal-reports");
  const { page: phone } = await bench.open("/", PHONE);
  await see(phone, ".samples", "Where is my order?");
  await assertAccessible(phone);
});

test("a call is denied with a reason, edited and put back, and allowed for good; it waits on top of the list", async () => {
  const call = (order: number) => ({ calls: [{ name: "refund", input: { order, to: "a\u202eb" } }] });
  let seen = "";
  bench.model.on("refund thrice", (step, _, results) => {
    seen = JSON.stringify(results);
    return step < 3 ? call(step) : { texts: ["Done."] };
  });
  await bench.client.create({ id: "newer", title: "A newer conversation" });
  const { page } = await bench.open();
  await send(page, "Please refund thrice");
  const card = page.locator(".approval");
  await see(page, ".deadline", /^1[45]:\d\d left/);
  assert.equal(await card.locator("button.main").count(), 1, "one button has weight");
  assert.equal(await page.locator(".tool .brief").count(), 0, "the input stands in the question, and nowhere else");
  await page.waitForFunction(() => document.title.startsWith("(1) "));
  const top = page.locator(".list ul").first();
  assert.equal(await top.getAttribute("aria-label"), "Waiting for you");
  await see(page, ".list ul:first-of-type a", "Please refund thrice");
  await enter(page, "button", "Give a reason");
  await getsFocus(page.getByRole("textbox", { name: /Reason/ }), "the reason has the focus");
  await page.keyboard.insertText("It has left the house.");
  await assertAccessible(page);
  await enter(page, "button", "Deny");
  await see(page, ".tool.failed", "denied");
  await see(page, ".tool.failed .gist", /^It has left the house\.$/);
  await enter(page, "button", "Edit the input");
  const field = page.getByRole("textbox", { name: "Input" });
  assert.equal(await field.inputValue(), '{"order":1,"to":"a\\u202eb"}', "hidden characters can be seen");
  assert.match(await field.evaluate((element) => getComputedStyle(element).fontFamily), /mono/);
  await field.fill("[1]");
  await page.getByRole("button", { name: "Approve with this input" }).click();
  await see(page, ".approval [role=alert]", "The input is an object");
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  await assertAccessible(page);
  await page.getByRole("button", { name: "Undo my changes" }).click();
  assert.match(await field.inputValue(), /"order":1,/);
  await field.press("Escape");
  await getsFocus(page.getByRole("button", { name: "Approve", exact: true }), "the way back leads to the question");
  await page.getByRole("checkbox", { name: /Always allow refund/ }).check();
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  for (const done of [0, 1]) {
    await page.getByRole("textbox", { name: /Result/ }).fill("refunded");
    await page.getByRole("button", { name: "Send the result" }).click();
    await page.locator(".tool.done").nth(done).waitFor();
  }
  await turnEnds(page);
  assert.match(seen, /It has left the house\./, "the model reads the reason");
  await page.waitForFunction(() => !document.title.startsWith("("));
  assert.equal(await page.locator(".list .waiting").count(), 0);
});

test("the model of an agent is chosen for a new conversation, and for the next message", async () => {
  const { page } = await bench.open();
  const picker = page.getByRole("combobox", { name: "Model" });
  await picker.selectOption("scripted/large");
  await send(page, "Which model are you?");
  await turnEnds(page);
  assert.equal(bench.model.models.at(-1), "large");
  await page.reload();
  await page.locator(".end").waitFor();
  assert.equal(await picker.inputValue(), "scripted/large", "the conversation keeps its model");
  await assertAccessible(page);
  await picker.selectOption("scripted/scripted");
  await send(page, "And now?");
  await turnEnds(page, 2);
  assert.equal(bench.model.models.at(-1), "scripted");
});

test("a conversation that waits is on top of the list, however old", async () => {
  bench.model.on("an old refund", (step) => (step === 0 ? { calls: [{ name: "refund", input: {} }] } : { texts: ["Done."] }));
  await bench.client.create({ id: "waits-long", title: "Waits for long" });
  const chat = bench.client.conversation("waits-long");
  await chat.post("Make an old refund");
  while ((await chat.approvals()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  for (let number = 0; number < 101; number++) await bench.client.create({ title: `Newer ${number}` });
  const { page } = await bench.open();
  const waiting = page.getByRole("list", { name: "Waiting for you" }).getByRole("link", { name: /Waits for long/ });
  await waiting.waitFor();
  assert.equal(await page.getByRole("list", { name: "Today" }).getByRole("link", { name: /Waits for long/ }).count(), 0);
  await waiting.click();
  await page.getByRole("button", { name: "Deny" }).click();
  await turnEnds(page);
  await waiting.waitFor({ state: "detached" });
  await page.getByRole("list", { name: "Today" }).getByRole("link", { name: /Waits for long/ }).waitFor();
  await chat.post("Make an old refund");
  await waiting.waitFor();
  for (let number = 0; number < 101; number++) await bench.client.create({ title: `Newest ${number}` });
  await page.reload();
  await waiting.waitFor();
  await page.evaluate(() => {
    // A browser reports a scroll in the next frame, and the view may have gone by then.
    const timeline = document.querySelector(".timeline")!;
    const observer = new MutationObserver(() => timeline.isConnected || timeline.dispatchEvent(new Event("scroll")));
    observer.observe(document.body, { childList: true, subtree: true });
  });
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await see(page, ".timeline", "Choose an agent");
  assert.equal(await waiting.count(), 0, "a conversation that is gone waits no more");
});

const said = (content: string): Seed[] => [
  { type: "user_message", data: { content: "Go", message_id: "m" } },
  { type: "assistant_message", data: { content, message_id: "a", agent_execution_id: "run" } },
  { type: "complete", data: { steps: 1, agent_execution_id: "run" } },
];

test("formulas are drawn, amounts are not, and nothing in a formula does harm", async () => {
  const parts = [
    "Inline $x^2$ and \\(\\frac{a}{b}\\), but $5 and $6, US$7 and `$y$`.",
    "$$\\begin{pmatrix}a & b\\\\c & d\\end{pmatrix}$$",
    "\\[\n\\sqrt{2}\n\\]",
    "$\\href{javascript:alert(1)}{x}$ and $\\def\\a{\\a\\a}\\a$ and $\\text{<img src=x onerror=alert(2)>}$ and $\\style{color:red}{x}$",
  ];
  await bench.seed("formulas", said(parts.join("\n\n")));
  await bench.seed("plain", said("No formula: it costs $5."));
  const { page } = await bench.open("/#/c/plain");
  await see(page, ".assistant_message", "costs $5.");
  const isLoaded = () => page.evaluate(() => performance.getEntriesByType("resource").some(({ name }) => name.endsWith("math.js")));
  assert.equal(await isLoaded(), false, "the library is loaded for a formula only");
  await page.evaluate(() => (location.hash = "#/c/formulas"));
  await page.locator("math mtext").waitFor();
  assert.equal(await isLoaded(), true);
  assert.deepEqual(await page.locator("math").evaluateAll((found) => found.map((math) => math.textContent?.replaceAll("\u00a0", " "))), [
    "x2",
    "ab",
    "(abcd)",
    "2",
    "<img src=x onerror=alert(2)>",
  ]);
  assert.equal(await page.locator("math").first().evaluate((math) => math.namespaceURI), "http://www.w3.org/1998/Math/MathML");
  await see(page, ".assistant_message p", "but $5 and $6, US$7 and $y$.");
  const asWritten = await page.locator(".assistant_message code").allTextContents();
  assert.deepEqual(asWritten.filter((text) => text.includes("\\")).length, 3, "what is refused stands as it was written");
  assert.equal(await page.locator(".timeline :is(img, a, script)").count(), 0);
  await assertAccessible(page);
});
