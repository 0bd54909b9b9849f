/** What a reader expects of any chat, in Chromium: to copy, to find by day, to know the cost, to be asked first. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";
import { type Bench, startBench } from "./support/bench";
import { getsFocus, tabTo } from "./support/keyboard";
import { assertAccessible, openedId, see, send, turnEnds } from "./support/page";
import { type Seed, turn } from "./support/seed";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"

[models."scripted/scripted"]
input = 1000
output = 2000
`;

const CODE = "let x = 1;\nlet y = 2;";
const ANSWER = `Use **this**:\n\n\`\`\`rust\n${CODE}\n\`\`\``;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
  bench.model.on("to be copied", () => ({ texts: [ANSWER] }));
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

test("an answer and a block of code are copied, also on a page without a clipboard", async () => {
  for (const hasClipboard of [true, false]) {
    const { page } = await bench.open("/about");
    if (hasClipboard) await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    else await page.addInitScript(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await page.goto(bench.gateway.url);
    await send(page, "Something to be copied");
    await turnEnds(page);
    const message = page.getByRole("textbox", { name: "Message" });
    for (const [name, text] of [["Copy the code", CODE], ["Copy the answer", ANSWER]] as const) {
      await page.getByRole("button", { name }).click();
      await page.getByRole("status").filter({ hasText: "Copied" }).first().waitFor();
      await assertAccessible(page);
      await message.fill("");
      await message.press("Control+V");
      assert.equal(await message.inputValue(), text);
    }
  }
});

test("the list has groups by day", async () => {
  await bench.client.conversation("days", { title: "By day" }).ask("Hello");
  const { page } = await bench.open("/about");
  const now = Date.now();
  for (const [days, name] of [[0, "Today"], [1, "Yesterday"], [2, "Previous 7 days"], [8, "Previous 30 days"], [40, "Older"]] as const) {
    await page.clock.setFixedTime(now + days * 86_400_000);
    await page.goto(`${bench.gateway.url}/?${days}`);
    await page.getByRole("list", { name }).getByRole("link", { name: /By day/ }).waitFor();
    assert.equal(await page.getByRole("heading", { name, exact: true }).count(), 1);
  }
  assert.match((await page.getByRole("link", { name: /By day/ }).getAttribute("title")) ?? "", /20\d\d/);
});

test("costs are amounts that a person reads, and a conversation has a total", async () => {
  const turnOf = (number: number, cost_usd: string): Seed[] =>
    turn(number).map((event) => (event.type === "complete" ? { ...event, data: { ...event.data, cost_usd } } : event));
  await bench.seed("costs", [...turnOf(1, "0.00004"), ...turnOf(2, "0.0312345"), ...turnOf(3, "1.1")]);
  const { page } = await bench.open("/#/c/costs", { viewport: { width: 1200, height: 2400 } });
  await turnEnds(page, 3);
  const ends = await page.locator(".end").allTextContents();
  assert.deepEqual(ends.map((end) => end.split(" · ").at(-1)), ["< $0.001", "$0.031", "$1.10"]);
  // The gateway has the sum. What events say of the past is what each turn said then.
  assert.equal(await page.locator(".heading .cost").textContent(), "");
  await send(page, "This one costs");
  await see(page, ".heading .cost", /^\$0\.020 in total$/);
  await send(page, "This one, too");
  await see(page, ".heading .cost", /^\$0\.040 in total$/);
});

test("whoever deletes is told what is lost, and Cancel is nearer than Delete", async () => {
  const { page } = await bench.open();
  await send(page, "Not to be deleted");
  await turnEnds(page);
  const id = await openedId(page);
  await page.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog");
  await see(page, "dialog", "Nothing can bring them back.");
  await getsFocus(dialog.getByRole("button", { name: "Cancel" }), "Cancel has the focus");
  const colours = await dialog.getByRole("button").evaluateAll((found) => found.map((button) => getComputedStyle(button).backgroundColor));
  assert.notEqual(colours[0], colours[1], "Delete looks like something that is not taken back");
  await assertAccessible(page);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  assert.equal((await bench.client.conversation(id).show()).id, id);
});

test("one skips the list, and keys are told and work", async () => {
  await bench.client.create({ id: "keys", title: "Keys" });
  const { page } = await bench.open("/#/c/keys");
  const message = page.getByRole("textbox", { name: "Message" });
  await getsFocus(message, "the field waits");
  await page.keyboard.type("What?");
  assert.equal(await message.inputValue(), "What?", "a question mark in a field is a question mark");
  await tabTo(page, "button", "Skip to the message");
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await help.waitFor();
  await assertAccessible(page);
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });
  await page.keyboard.press("Enter");
  await getsFocus(message, "the list is skipped");
  await page.keyboard.press("Control+/");
  await help.getByRole("button", { name: "Close" }).click();
  for (const [key, place] of [["K", page.getByRole("searchbox")], ["L", page.locator(".timeline")], ["M", message]] as const) {
    await page.keyboard.press(`Alt+${key}`);
    await getsFocus(place, `Alt+${key} goes to its place`);
  }
  await page.keyboard.press("Alt+N");
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "");
  assert.equal(new URL(page.url()).hash, "#/");
});

test("a conversation is saved whole, to read and for programs", async () => {
  await bench.seed("saved", Array.from({ length: 60 }, (_, at) => turn(at + 1)).flat(), "To be saved");
  const { page } = await bench.open("/#/c/saved");
  await turnEnds(page);
  const saved = async (choice: RegExp) => {
    await page.getByRole("button", { name: "Export" }).click();
    const dialog = page.getByRole("dialog", { name: "Export" });
    await dialog.getByRole("radio", { name: choice }).check();
    await assertAccessible(page);
    const [file] = await Promise.all([page.waitForEvent("download"), dialog.getByRole("button", { name: "Save the file" }).click()]);
    await dialog.waitFor({ state: "detached" });
    return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
  };
  const markdown = await saved(/Markdown/);
  assert.equal(markdown.name, "saved.md");
  assert.match(markdown.text, /^# To be saved\n\n## You\n\nQuestion 1\./);
  assert.equal(markdown.text.match(/^## Answer$/gm)?.length, 60, "also what the page has not read");
  assert.match(markdown.text, /### search · done\n\n```\n\{\n  "query": "question 60"/);
  const json = await saved(/JSON/);
  const { conversation, events } = JSON.parse(json.text) as { conversation: { title: string }; events: unknown[] };
  assert.deepEqual([json.name, conversation.title, events.length], ["saved.json", "To be saved", 480]);
});
