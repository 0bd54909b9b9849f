/**
 * What users, models and tools write does nothing in Chromium but show, wherever it stands: in calls and their results, in
 * titles, in texts of a megabyte, in letters that go from right to left. `make page` runs it.
 */

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { type Bench, startBench } from "./support/bench";
import { openedId, see, send, turnEnds } from "./support/page";
import { type Seed, turn } from "./support/seed";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
tools = [{ name = "refund", approval = "always" }, "look"]

[client_tools.refund]
description = "Refunds an order."

[client_tools.look]
description = "Looks at something."
`;

/** Would run, if it became a document. */
const MARKUP = `<script>alert(1)</script><img src=x onerror=alert(2)>"><svg onload=alert(3)> [x](javascript:alert(4)) javascript:alert(5)`;
/** Would turn what comes after it, or is not seen. */
const TURNING = "\u202Eesrever\u202C \u2067a\u2069 \u200Fb\u200Ec\u061C \u0007";
/** How a value shows that. */
const EXACT = "⟨202E⟩esrever⟨202C⟩ ⟨2067⟩a⟨2069⟩ ⟨200F⟩b⟨200E⟩c⟨061C⟩ ⟨0007⟩";
/** How a text of people shows it: the marks stay, which Arabic and Hebrew need. */
const TEXT = "⟨202E⟩esrever⟨202C⟩ ⟨2067⟩a⟨2069⟩ \u200Fb\u200Ec\u061C ⟨0007⟩";

const MEGABYTE = 1_000_000;
/** The most elements of the page with a text of a megabyte in it. */
const ELEMENTS = 400;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

/** Fails when something of a text became more than text. */
async function assertOnlyText(page: Page): Promise<void> {
  assert.equal(await page.locator("#page :is(script, img, svg:not(.icon, .brand *), iframe, object, embed, style, b)").count(), 0);
  const links = await page.locator("#page a").evaluateAll((found) => found.map((link) => (link as HTMLAnchorElement).protocol));
  assert.deepEqual(links.filter((protocol) => !["http:", "https:"].includes(protocol)), []);
}

/** Answers the call that waits for a client. */
async function answer(page: Page, result: unknown): Promise<void> {
  await see(page, ".tool", "Waits for a program of yours to run it.");
  const chat = bench.client.conversation(await openedId(page));
  const { timeline } = await chat.timeline();
  await chat.answerTool(String(timeline.findLast((item) => item.type === "tool_call")?.executionId), result);
}

/** The pixels from the left of each character of a text. */
function lefts(text: Locator): Promise<{ letter: string; left: number }[]> {
  return text.evaluate((element) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const found: { letter: string; left: number }[] = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (const [at, letter] of [...(node.textContent ?? "")].entries()) {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        found.push({ letter, left: range.getBoundingClientRect().left });
      }
    }
    return found;
  });
}

test("the input and the output of a call show as exactly what they are", async () => {
  const input = { [MARKUP]: TURNING, note: `${MARKUP} ${TURNING}` };
  // The store's text has sorted keys, and JSON has a sign of its own for a control character.
  const sorted = Object.fromEntries(Object.entries(input).sort(([one], [other]) => (one < other ? -1 : 1)));
  const asShown = (value: unknown) => JSON.stringify(value).replaceAll("\\u0007", "\u0007").replaceAll(TURNING, EXACT);
  const shownInput = asShown(sorted).replaceAll("⟨0007⟩", "\\u0007");
  bench.model.on("hostile call", (step) => (step === 0 ? { calls: [{ name: "refund", input }] } : { texts: ["Seen."] }));
  const { page } = await bench.open();
  await send(page, "Make a hostile call");
  await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
  assert.equal(await page.locator(".approval pre").textContent(), shownInput, "a person sees what they allow");
  await assertOnlyText(page);
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await see(page, ".tool", "Waits for a program of yours");
  assert.equal(await page.locator(".approval pre").textContent(), shownInput, "and what they are to answer");
  await answer(page, `${MARKUP}\n${TURNING}`);
  await turnEnds(page);
  assert.equal(await page.locator(".tool .brief").textContent(), `${JSON.stringify(input).slice(0, 120)}…`);
  assert.equal(await page.locator(".tool .gist").textContent(), MARKUP);
  await page.locator(".tool summary.line").click();
  const values = page.locator(".tool pre");
  await values.nth(1).waitFor();
  assert.deepEqual(await values.allTextContents(), [shownInput, `${MARKUP}\n${EXACT}`]);
  await assertOnlyText(page);
});

test("a title shows in the list, in the window's name and in questions", async () => {
  const title = `${MARKUP.slice(0, 150)} ${TURNING}`;
  const shown = `${MARKUP.slice(0, 150)} ${TEXT}`;
  await bench.client.create({ id: "titled", title });
  const { page } = await bench.open("/#/c/titled");
  const entry = page.locator(".list a[aria-current]");
  await entry.waitFor();
  assert.equal(await entry.locator("bdi").textContent(), shown);
  await page.waitForFunction(() => document.title !== "Everturn");
  assert.equal(await page.evaluate(() => document.title), `\u2068${shown}\u2069 · Everturn`);
  await page.getByRole("button", { name: "Rename" }).click();
  assert.equal(await page.getByRole("textbox", { name: "Title" }).inputValue(), title);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Delete" }).click();
  assert.equal(await page.locator("dialog h2").textContent(), `Delete “\u2068${shown}\u2069”?`);
  await assertOnlyText(page);
});

test("a megabyte of a result and of a message is shown in part, and whole when somebody asks", async () => {
  const much = MARKUP.repeat(Math.ceil(MEGABYTE / MARKUP.length)).slice(0, MEGABYTE);
  bench.model.on("much of it", (step) => (step === 0 ? { calls: [{ name: "look", input: {} }] } : { texts: ["Seen."] }));
  const tab = await bench.open();
  const { page } = tab;
  await send(page, "Give me much of it");
  await answer(page, much);
  await turnEnds(page);
  await page.locator(".tool summary.line").click();
  await see(page, ".tool h3", "Output · 1 MB");
  const shown = async () => (await page.locator(".tool pre").last().textContent()) ?? "";
  for (let slices = 0; (await shown()).length < MEGABYTE; slices++) {
    assert.ok(much.startsWith(await shown()), "slices follow one another");
    const before = (await shown()).length;
    await page.getByRole("button", { name: "Show more" }).click();
    await page.waitForFunction((length) => [...document.querySelectorAll(".tool pre")].at(-1)!.textContent!.length > length, before);
    assert.ok(slices < 40);
  }
  assert.equal(await shown(), much);
  await assertOnlyText(page);
  await send(page, much);
  await see(page, "[data-pending=failed]", /Not sent: .*bytes/);
  assert.ok((await page.locator("[data-pending] .plain").textContent())?.startsWith(much.slice(0, 20_000)));
  await page.getByRole("button", { name: "Show all 1,000,000 characters" }).click();
  assert.equal(await page.locator("[data-pending] .plain").textContent(), much);
  await page.getByRole("button", { name: "Discard" }).click();
  assert.ok((await page.locator("#page *").count()) < ELEMENTS);
  await assertOnlyText(page);
  tab.complaints.splice(0, Infinity, ...tab.complaints.filter((text) => !text.includes("status of 413")));
});

test("a megabyte of each in the events of an earlier release is folded, too", async () => {
  const much = MARKUP.repeat(Math.ceil(MEGABYTE / MARKUP.length)).slice(0, MEGABYTE);
  const [question, thought, act, ...rest] = turn(1) as [Seed, Seed, Seed, ...Seed[]];
  const call = { execution_id: "exec-1-search", call_id: "call-1-search", tool_name: "search" };
  await bench.seed("megabytes", [
    { ...question, data: { content: much, message_id: "m" } },
    { ...thought, data: { ...thought.data, reasoning: much } },
    { ...act, data: { ...act.data, tool_input: { much } } },
    { type: "observe", data: { ...call, result: much, is_error: false } },
    ...rest.slice(-2),
  ]);
  const { page } = await bench.open("/#/c/megabytes");
  await see(page, ".end", "1,051 tokens");
  await page.locator(".tool summary.line").click();
  await page.getByRole("button", { name: "Show all 1,000,000 characters" }).first().waitFor();
  await assertOnlyText(page);
  assert.ok((await page.locator("#page *").count()) < ELEMENTS);
});

test("texts go in the direction of their letters, and turn nothing beside them", async () => {
  const hebrew = "שלום עולם!";
  const attachments = [{ blob_id: "blob_name", media_type: "text/csv", file_name: "שלום", bytes: 12 }];
  await bench.seed("directions", [
    { type: "user_message", data: { content: `${hebrew}\n\u200Fabc!`, message_id: "m", attachments } },
    { type: "assistant_message", data: { content: `${hebrew}\n\nAnd English.\n\n- ${hebrew}`, message_id: "a", agent_execution_id: "run" } },
  ]);
  const { page } = await bench.open("/#/c/directions");
  await see(page, ".assistant_message", "And English.");
  const message = page.locator(".user_message .plain");
  assert.equal(await message.textContent(), `${hebrew}\n\u200Fabc!`, "the mark is still there");
  const isLeftOf = (letters: { letter: string; left: number }[], one: string, other: string) => {
    const left = (wanted: string) => letters.find(({ letter }) => letter === wanted)?.left ?? NaN;
    return left(one) < left(other);
  };
  assert.ok(isLeftOf(await lefts(message), "!", "ש"), "it goes from right to left");
  for (const part of ["p", "li"]) {
    assert.ok(isLeftOf(await lefts(page.locator(`.assistant_message ${part}`).first()), "!", "ש"), `so does a ${part}`);
  }
  assert.ok(isLeftOf(await lefts(page.locator(".assistant_message p").nth(1)), "A", "."), "the next one does not");
  const file = await lefts(page.locator(".files a"));
  assert.ok(isLeftOf(file, "ש", "1") && isLeftOf(file, "1", "B"), "the size is behind the name");
});
