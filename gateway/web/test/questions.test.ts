/**
 * Questions of running tools in Chromium: the form, the answer that is sent, and an address. The events are written into the
 * store, and the answers are taken before they reach the gateway: `page.test.ts` has a tool that asks. `make page` runs it.
 */

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { type Bench, startBench } from "./support/bench";
import { assertAccessible, see } from "./support/page";
import type { Seed } from "./support/seed";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
`;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

const AGENT = { agent_execution_id: "run-1", step: 0 };
const CALL = { execution_id: "exec-1", call_id: "call-1", tool_name: "works__ask" };

/** A call that asks, after it was approved. */
function asks(question: object): Seed[] {
  const expires = { expires_at: new Date(Date.now() + 3_600_000).toISOString() };
  return [
    { type: "user_message", data: { content: "Book seats", message_id: "message-1" } },
    { type: "act", data: { ...CALL, tool_input: {}, ...AGENT } },
    { type: "approval_requested", data: { ...CALL, tool_input: {}, input_hash: "first", ...expires, ...AGENT } },
    { type: "approval_resolved", data: { ...CALL, tool_input: {}, decision: "approved", ...AGENT } },
    { type: "approval_requested", data: { ...CALL, tool_input: {}, input_hash: "second", ...expires, question, ...AGENT } },
  ];
}

/** Opens a conversation with a question. Answers are refused as long as `refusals` has sentences, and then taken. */
async function opened(id: string, question: object, options: { locale?: string; refusals?: string[] } = {}) {
  await bench.seed(id, asks(question));
  const tab = await bench.open("/about", { viewport: { width: 1000, height: 1600 }, locale: options.locale ?? "en-US" });
  const { page } = tab;
  const answers: string[] = [];
  await page.route("**/approvals/exec-1", (route) => {
    answers.push(route.request().postData() ?? "");
    const detail = options.refusals?.shift();
    if (detail === undefined) return route.fulfill({ json: { execution_id: "exec-1", tool_name: "works__ask", decision: "approved" } });
    const problem = { type: "docs/errors/invalid_body", title: "Invalid", status: 400, code: "invalid_body", detail };
    return route.fulfill({ status: 400, json: problem, contentType: "application/problem+json" });
  });
  await page.goto(`${bench.gateway.url}/#/c/${id}`);
  await page.locator(".question").waitFor();
  return { page, answers, tab };
}

/** Waits until the buttons rest: the answer was taken. */
async function taken(page: Page): Promise<void> {
  await page.locator(".question .actions button:disabled").first().waitFor();
}

const WISHES = [{ const: "w", title: "Window" }, { const: "q", title: "Quiet" }];
const SCHEMA = {
  type: "object",
  properties: {
    name: { type: "string", title: "Your name", description: "As on the ticket.\u202e", minLength: 2 },
    id: { type: "integer", title: "Number of the card" },
    size: { type: "string", title: "Class", enum: ["1", "2"], enumNames: ["First", "Second"], default: "2" },
    day: { type: "string", title: "Day", format: "date" },
    meal: { type: "boolean", title: "With a meal", default: true },
    tags: { type: "array", title: "Wishes", items: { anyOf: WISHES }, minItems: 1 },
    more: { type: "object", title: "Anything else" },
  },
  required: ["name", "id"],
};

test("a form is filled in, its mistakes are named, and every digit is sent", async () => {
  const refusals = ["The answer does not fit the schema: `name` is not on the list."];
  const { page, answers, tab } = await opened("form", { message: "Who travels?\n<b>Now</b>\u202e", schema: SCHEMA }, { refusals });
  await see(page, ".question .asked", /works__ask.* asks you/);
  await see(page, ".question [role=timer]", /left to answer/);
  assert.equal(await page.locator(".question .said").innerText(), "Who travels?\n<b>Now</b>⟨202E⟩");
  await see(page, ".question .hint", "As on the ticket.⟨202E⟩");
  await see(page, ".activity", "Waits for your answer");
  await see(page, ".tool .gist", "Waits for your answer");
  await assertAccessible(page);
  const answer = page.getByRole("button", { name: "Answer" });
  await page.getByLabel("Number of the card").fill("4.5");
  await answer.click();
  await see(page, ".question .problem", "The tool requires this field.");
  await see(page, ".question .problem", "Write a whole number, like 42.");
  const name = page.getByLabel("Your name");
  assert.ok(await name.evaluate((field) => field === document.activeElement), "the first mistake has the focus");
  await assertAccessible(page);
  assert.deepEqual(answers, []);
  await name.fill("Ada");
  await page.getByLabel("Number of the card").fill("12345678901234567890");
  await page.getByLabel("Class").selectOption("First");
  await page.getByLabel("With a meal").uncheck();
  await page.getByRole("group", { name: "Wishes" }).getByLabel("Quiet").check();
  await page.getByLabel("Anything else").fill('{"pi":3.14159265358979323846}');
  await page.getByLabel("Number of the card").press("Enter");
  await see(page, ".question [role=alert]", "`name` is not on the list. invalid_body");
  assert.equal(await name.inputValue(), "Ada", "nothing that was written is lost");
  await answer.click();
  await taken(page);
  const whole = '{"name":"Ada","id":12345678901234567890,"size":"1","meal":false,"tags":["q"],"more":{"pi":3.14159265358979323846}}';
  const body = `{"answer":${whole},"input_hash":"second","decision":"approve"}`;
  assert.deepEqual(answers, [body, body]);
  tab.complaints.splice(0, Infinity, ...tab.complaints.filter((complaint) => !complaint.includes("status of 400")));
});

test("half a date is no date, and a question is declined", async () => {
  const schema = { type: "object", properties: { day: { type: "string", format: "date", title: "Travel day" } } };
  const { page, answers } = await opened("half", { message: "When?", schema });
  const day = page.getByLabel("Travel day");
  await day.focus();
  await page.keyboard.type("12");
  await page.getByRole("button", { name: "Answer" }).click();
  await see(page, ".question .problem", "Write a whole date.");
  await day.fill("2026-12-24");
  assert.equal(await page.locator(".question .problem").count(), 0);
  await page.getByRole("button", { name: "Decline" }).click();
  await taken(page);
  assert.deepEqual(answers, ['{"input_hash":"second","decision":"deny"}']);
});

test("an address is shown whole with its host apart, and only the person opens it", async () => {
  const { page, answers } = await opened("address", { message: "Please pay.", url: "https://pay.ex\u0430mple/7?to=\u202eada" });
  await see(page, ".question .host", "pay.xn--exmple-4nf");
  assert.equal(await page.locator(".question pre").textContent(), "https://pay.xn--exmple-4nf/7?to=%E2%80%AEada");
  const link = page.getByRole("link", { name: "Open pay.xn--exmple-4nf in a new tab" });
  assert.deepEqual(
    await link.evaluate((found) => [found.getAttribute("target"), found.getAttribute("rel"), (found as HTMLAnchorElement).href]),
    ["_blank", "noopener noreferrer", "https://pay.xn--exmple-4nf/7?to=%E2%80%AEada"],
  );
  await assertAccessible(page);
  await page.getByRole("button", { name: "I have done this" }).click();
  await taken(page);
  assert.deepEqual(answers, ['{"input_hash":"second","decision":"approve"}']);
});

test("an address without https is a text, and in Chinese, too", async () => {
  const { page } = await opened("script", { message: "打开", url: "javascript:alert(1)" }, { locale: "zh-CN" });
  await see(page, ".question .hint", "页面只打开使用 https");
  assert.equal(await page.locator(".question a").count(), 0);
  await see(page, ".question pre", "javascript:alert(1)");
  await assertAccessible(page);
});

test("a form of a thousand fields is answered as JSON", async () => {
  const properties = Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`p${at}`, { type: "integer" }]));
  const { page, answers } = await opened("thousand", { message: "All of it.", schema: { type: "object", properties } });
  await see(page, ".question .hint", "The form has 1,000 fields, and the page draws at most 50.");
  await assertAccessible(page);
  const field = page.getByLabel("Answer as JSON");
  await field.fill("[1]");
  await page.getByRole("button", { name: "Answer" }).click();
  await see(page, ".question [role=alert]", "The answer is an object");
  await field.fill('{"p7":9007199254740993}');
  await page.getByRole("button", { name: "Answer" }).click();
  await taken(page);
  assert.deepEqual(answers, ['{"answer":{"p7":9007199254740993},"input_hash":"second","decision":"approve"}']);
});

test("the inbox has questions, and the next question of a call has a card of its own", async () => {
  const tab = await bench.open("/about");
  const { page } = tab;
  const { execution_id, tool_name, call_id } = CALL;
  const call = { execution_id, tool_name, call_id, tool_input: {}, input_text: "{}", conversation_id: "elsewhere", agent: "default" };
  const asked = (number: number) => ({ message: `Question ${number}?`, schema: { properties: { a: { type: "string", title: "Say" } } } });
  const answers: string[] = [];
  await page.route("**/agent/approvals?*", (route) => {
    const number = answers.length + 1;
    const approvals = number > 2 ? [] : [{ ...call, input_hash: `hash ${number}`, question: asked(number) }];
    return route.fulfill({ json: { approvals, next_after: null } });
  });
  await page.route("**/approvals/exec-1", (route) => {
    answers.push(route.request().postData() ?? "");
    return route.fulfill({ json: { execution_id, tool_name, decision: "approved" } });
  });
  await page.goto(`${bench.gateway.url}/#/approvals`);
  await see(page, ".inbox .question .said", "Question 1?");
  await assertAccessible(page);
  await page.getByLabel("Say").fill("one");
  await page.getByRole("button", { name: "Answer" }).click();
  await see(page, ".inbox .question .said", "Question 2?");
  assert.equal(await page.getByLabel("Say").inputValue(), "", "the entry was another question's");
  await page.getByRole("button", { name: "Answer" }).click();
  await see(page, ".inbox", "No call waits for you.");
  assert.deepEqual(answers, [
    '{"answer":{"a":"one"},"input_hash":"hash 1","decision":"approve"}',
    '{"answer":{},"input_hash":"hash 2","decision":"approve"}',
  ]);
});

test("what was answered is shown, and what was declined", async () => {
  const resolved = (decision: string, more: object = {}): Seed => ({
    type: "approval_resolved",
    data: { ...CALL, tool_input: {}, decision, ...more, ...AGENT },
  });
  const observe = { type: "observe", data: { ...CALL, result: "booked", is_error: false, duration_ms: 5, ...AGENT } };
  const end = { type: "complete", data: { steps: 1, finish: "stop", ...AGENT } };
  const answer = { name: "Ada", id: 7 };
  await bench.seed("answered", [...asks({ message: "Who?", schema: SCHEMA }), resolved("approved", { answer }), observe, end]);
  await bench.seed("declined", [...asks({ message: "Who?", schema: SCHEMA }), resolved("declined"), observe, end]);
  const { page } = await bench.open("/#/c/answered");
  await see(page, ".tool.done .decision", "answered");
  await page.locator(".tool.done summary").click();
  await see(page, ".tool [data-part=question]", "Who?");
  await see(page, ".tool [data-part=question]", '"id": 7');
  await assertAccessible(page);
  await page.goto(`${bench.gateway.url}/#/c/declined`);
  await see(page, ".tool.done .decision", "declined");
});
