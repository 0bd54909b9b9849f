/** What a timeline shows in Chromium: code, files, long results, notes, events of earlier releases. None of it does harm. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { type Bench, startBench } from "./support/bench";
import { tabTo } from "./support/keyboard";
import { gate } from "./support/model";
import { assertAccessible, openedId, painted, see, send, turnEnds } from "./support/page";
import { gif } from "./support/pictures";
import { type Seed, turn } from "./support/seed";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
tools = ["look", "work_plan"]

[client_tools.look]
description = "Looks at something."
`;

/** A picture of two pixels. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGP4z8DAwPAfAAkDAf+Yzp4FAAAAAElFTkSuQmCC",
  "base64",
);

/** A name that would be markup, and that would look like one with another ending. */
const EVIL_NAME = `"><img src=x onerror=alert(1)>\u202Egnp.exe`;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

/** Waits until a call of the tool waits for a client, and answers it. */
async function answerLook(page: Page, result: unknown): Promise<void> {
  await see(page, ".tool", "Waits for a program of yours to run it.");
  const chat = bench.client.conversation(await openedId(page));
  const call = (await chat.timeline()).timeline.find((item) => item.type === "tool_call");
  await chat.answerTool(String(call?.executionId), result);
}

test("an answer has its sources, and only addresses of the web are links", async () => {
  const source = (url: string, title: string) => ({ type: "url_citation", url_citation: { url, title, content: "It \u202erains." } });
  bench.model.on("name your sources", () => ({
    texts: ["It rains [1]."],
    citations: [source("https://a.example/forecast", "The forecast"), source("javascript:alert(1)", "A note")],
  }));
  const { page } = await bench.open();
  await send(page, "Please name your sources");
  await turnEnds(page);
  await page.getByText("2 sources").click();
  const sources = page.locator(".sources li");
  assert.deepEqual(await sources.locator("a").evaluateAll((links) => links.map((link) => link.getAttribute("href"))), ["https://a.example/forecast"]);
  assert.match(await sources.first().innerText(), /The forecast/);
  assert.match(await sources.nth(1).innerText(), /A note/);
  assert.ok(!(await sources.first().innerText()).includes("\u202e"), "hidden characters can be seen");
  await assertAccessible(page);
  await page.reload();
  await see(page, ".sources", "2 sources");
});

test("a call is seen while the model writes it", async () => {
  const rest = gate();
  const input = { text: "a long file ".repeat(20) };
  bench.model.on("write a long call", (step) => (step === 0 ? { calls: [{ name: "look", input, pause: rest.opened }] } : { texts: ["Done."] }));
  const { page } = await bench.open();
  await send(page, "Now write a long call");
  await see(page, "[data-writing-call] summary", /look is being written: \d+ characters/);
  await see(page, "[data-writing-call]", "a long file");
  rest.open();
  await answerLook(page, "seen");
  await turnEnds(page);
  assert.equal(await page.locator("[data-writing-call]").count(), 0);
});

test("code has colours once it is written, and is the same text", async () => {
  const rest = gate();
  const python = 'def double(x):  # twice\n    return "2" * x';
  const rust = "fn main() { let x: u32 = 5; }";
  bench.model.on("write code", () => ({
    texts: [`First:\n\n\`\`\`python\n${python}\n\`\`\`\n\nThen:\n\n\`\`\`rust\n${rust}`, rest.opened, "\n```\n\nDone."],
  }));
  const { page } = await bench.open();
  await send(page, "Now write code");
  const blocks = page.locator(".assistant_message pre code");
  await blocks.first().locator(".code-keyword").first().waitFor();
  assert.equal(await blocks.nth(1).innerText(), rust);
  assert.equal(await blocks.nth(1).locator("span").count(), 0, "what is being written has none yet");
  // On a slow machine, the answer is drawn anew while the last block is still looked at.
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: 15 });
  rest.open();
  await turnEnds(page);
  await blocks.nth(1).locator(".code-keyword").first().waitFor();
  assert.deepEqual(await blocks.allTextContents(), [python, rust]);
  assert.deepEqual(await blocks.first().locator(".code-comment").allTextContents(), ["# twice"]);
});

test("words in tables stay whole, and a wide table is scrolled sideways, also by the keyboard", async () => {
  const names = ["Manufacturer", "Registration", "Classification", "Specification", "Responsibility"];
  const row = names.map((name) => `${name} of \`${name.toLowerCase()}_id\``);
  const lines = [names, names.map(() => "---"), row, row].map((cells) => `| ${cells.join(" | ")} |`);
  bench.model.on("wide table", () => ({ texts: [`Here:\n\n${lines.join("\n")}`] }));
  const { page } = await bench.open("/", { viewport: { width: 390, height: 844 } });
  await send(page, "Now a wide table");
  await turnEnds(page);
  // A word that was broken has a box for each of its lines.
  const broken = await page.locator(".markdown th").evaluateAll((cells) =>
    cells.filter((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return new Set([...range.getClientRects()].map((box) => box.top)).size > 1;
    }).map((cell) => cell.textContent),
  );
  assert.deepEqual(broken, []);
  const heights = await page.locator(".markdown td code").evaluateAll((found) => found.map((code) => code.getClientRects().length));
  assert.deepEqual([...new Set(heights)], [1], "names in code stay whole, too");
  const table = page.getByRole("region", { name: "Table" });
  assert.ok(await table.evaluate((box) => box.scrollWidth > box.clientWidth));
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false);
  await tabTo(page, "region", "Table");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector(".markdown .wide")!.scrollLeft > 0);
  await assertAccessible(page);
});

test("a text that grows is read as one that came at once", async () => {
  const lists = "# One\n\n- a\n- b\n\n  more of b\n\n1. c\n\n> quote\nlazy\n\n";
  const table = "| x | y |\n|---|---|\n| 1 | 2 |\n\nEnd *of* it.\n\n";
  const whole = `${lists}${table}~~~sql\nselect 1\n\n-- \`twice\`\n~~~\n\n- [x] done\n- [ ] open`;
  const held = gate();
  bench.model.on("grow", () => ({ texts: [...whole.match(/[^]{1,3}/g)!, held.opened] }));
  const { page } = await bench.open();
  await send(page, "Now grow");
  const written = page.locator("[data-writing] .markdown");
  await written.locator("input").nth(1).waitFor();
  const growing = await written.innerHTML();
  held.open();
  await turnEnds(page);
  const colourless = (html: string) => html.replace(/<\/?span[^>]*>/g, "");
  assert.equal(colourless(await page.locator(".assistant_message .markdown").innerHTML()), colourless(growing));
  const boxes = await page.locator(".markdown input").all();
  assert.deepEqual(await Promise.all(boxes.map((box) => box.isChecked())), [true, false]);
});

test("a text that is read in parts is read as a short one", async () => {
  const short = "# One\n\n- a\n- b\n\n  more of *b*\n\n  - [deep](https://example.com/)\n\n| `x` | y |\n|---|---|\n| **1** | 2 |\n\n> quote\nlazy\n\n[named]\n\n";
  const rest = "A [word][named] of it, and **more**.\n\n".repeat(1000);
  const named = "[named]: https://example.com/named";
  const say = (content: string): Seed[] => [
    { type: "user_message", data: { content: "Go", message_id: "m" } },
    { type: "assistant_message", data: { content, message_id: "a", agent_execution_id: "run" } },
  ];
  await bench.seed("short", say(`${short}${named}`));
  await bench.seed("parts", say(`${short}${rest}${named}`));
  const { page } = await bench.open("/#/c/short");
  const answer = page.locator(".assistant_message .markdown");
  await see(page, ".assistant_message", "quote");
  const read = await answer.innerHTML();
  await page.goto(`${bench.gateway.url}/#/c/parts`);
  await page.waitForFunction(() => document.querySelectorAll(".markdown strong").length === 1001);
  assert.ok((await answer.innerHTML()).startsWith(read));
  assert.equal(await answer.locator("a[href='https://example.com/named']").count(), 1001);
});

test("a long text that is there twice is read to its end in both places", async () => {
  const paragraph = `${"Words of it, and ".repeat(50)} **more**.\n\n`;
  const long = `${paragraph.repeat(22)}The **end**.`;
  const said = (turn: number): Seed[] => [
    { type: "user_message", data: { content: "Go", message_id: `m${turn}` } },
    { type: "assistant_message", data: { content: long, message_id: `a${turn}`, agent_execution_id: `run${turn}` } },
  ];
  await bench.seed("twice", [...said(1), ...said(2)]);
  const { page } = await bench.open("/#/c/twice", { viewport: { width: 1600, height: 10_000 } });
  await page.waitForFunction(() => document.querySelectorAll(".markdown strong").length === 46);
});

test("a long answer that was watched stays whole when it has ended", async () => {
  const held = gate();
  const texts = Array.from({ length: 500 }, (_, number) => `Paragraph ${number} of *it*.\n\n`);
  bench.model.on("say much", () => ({ texts: [...texts, held.opened, "The **end**."] }));
  const { page } = await bench.open();
  await send(page, "Now say much");
  await page.locator("[data-writing] p").nth(499).waitFor();
  await page.evaluate(() => {
    const look = () => {
      const count = document.querySelectorAll(".assistant_message p").length;
      document.body.dataset["fewest"] = String(Math.min(count, Number(document.body.dataset["fewest"] ?? count)));
      requestAnimationFrame(look);
    };
    look();
  });
  held.open();
  await turnEnds(page);
  await see(page, ".assistant_message p", /^The end\.$/);
  assert.ok(Number(await page.locator("body").getAttribute("data-fewest")) >= 500);
});

test("who comes while a long answer is written reads it as those who watch it", async () => {
  const held = gate();
  const list = Array.from({ length: 300 }, (_, number) => `- line **${number}** of a list\n`).join("");
  const paragraphs = Array.from({ length: 500 }, (_, number) => `Paragraph ${number} of *it*.\n\n`).join("");
  bench.model.on("say all at once", () => ({ texts: [`${list}\n${paragraphs}`, held.opened, "The **end**."] }));
  const { page } = await bench.open();
  await send(page, "Now say all at once");
  for (const isLater of [false, true]) {
    if (isLater) await page.reload();
    await page.locator("[data-writing] p").nth(499).waitFor();
    assert.equal(await page.locator("[data-writing] li strong").count(), 300);
    assert.equal(await page.locator("[data-writing] p em").count(), 500);
  }
  held.open();
  await turnEnds(page);
  await see(page, ".assistant_message p", /^The end\.$/);
});

test("an attempt that failed is written anew, which is told", async () => {
  const [half, rest] = [gate(), gate()];
  bench.model.on("try again", (_, attempt) =>
    attempt === 0 ? { texts: ["The first half", half.opened], isCut: true } : { texts: ["The second ", rest.opened, "try."] },
  );
  const { page } = await bench.open();
  await send(page, "Now try again");
  await see(page, "[data-writing]", "The first half");
  half.open();
  await see(page, "[data-writing]", /^The second *$/);
  await see(page, ".hint", "That attempt failed. It is written anew.");
  rest.open();
  await turnEnds(page);
  assert.equal(await page.locator(".assistant_message").innerText(), "The second try.");
});

test("hostile code, names and files do nothing but show", async () => {
  const code = "</code></pre><script>alert(1)</script> \u202Eevil \u0007 \u200F const a = `${alert(2)}`";
  const languages = ['html"onload="alert(3)', "html", "typescript"];
  const answer = languages.map((language) => `~~~${language}\n${code}\n~~~`).join("\n\n");
  bench.model.on("hostile code", () => ({ texts: [answer] }));
  const { page } = await bench.open();
  await send(page, "Show hostile code");
  await turnEnds(page);
  const blocks = page.locator(".assistant_message pre code");
  await blocks.nth(2).locator("span").first().waitFor();
  const seen = code.replace("\u202E", "⟨202E⟩").replace("\u0007", "⟨0007⟩").replace("\u200F", "⟨200F⟩");
  assert.deepEqual(await blocks.allTextContents(), [seen, seen, seen]);
  const file = (blob_id: string, media_type: string, file_name = "") => ({ blob_id, media_type, file_name, bytes: 12 });
  const attachments = [
    file("blob_svg", "image/svg+xml", "a.svg"),
    file("blob_html", "text/html", EVIL_NAME),
    file("../../../about", "image/png"),
    file("javascript:alert(4)", "image/png"),
    file("blob_many", "IMAGE/PNG onerror=alert(5)"),
  ];
  await bench.seed("hostile", [{ type: "user_message", data: { content: "Files", message_id: "m", attachments } }]);
  await page.goto(`${bench.gateway.url}/#/c/hostile`);
  await see(page, ".files", "a.svg");
  const links = await page
    .locator(".files a")
    .evaluateAll((found) => found.map((link) => [link.getAttribute("href"), link.textContent]));
  const address = (id: string) => `${bench.gateway.url}/api/v1/agent/blobs/${id}`;
  assert.deepEqual(links, [
    [address("blob_svg"), "a.svg · 12 B"],
    [address("blob_html"), `${EVIL_NAME.replace("\u202E", "⟨202E⟩")} · 12 B`],
    [address("blob_many"), "IMAGE/PNG onerror=alert(5) · 12 B"],
  ]);
  assert.equal(await page.locator(".timeline :is(script, img, iframe, svg, object, embed)").count(), 0);
});

test("pictures of messages and results are shown, and other files are saved", async () => {
  const picture = await bench.client.upload(PNG, { mediaType: "image/png", fileName: EVIL_NAME });
  const text = await bench.client.upload("a,b\n1,2\n", { mediaType: "text/csv", fileName: "table.csv" });
  bench.model.on("at these files", (step) => (step === 0 ? { calls: [{ name: "look", input: {} }] } : { texts: ["Seen."] }));
  const attachments = [{ blob_id: picture.blob_id }, { blob_id: text.blob_id }];
  const chat = bench.client.conversation();
  await chat.create();
  void chat.post("Look at these files", { attachments });
  const tab = await bench.open(`/#/c/${chat.id}`);
  const { page } = tab;
  const image = (blob_id: string) => ({ type: "image/png", blob_id, bytes: PNG.length });
  await answerLook(page, { content: [image(picture.blob_id), image("blob_gone")] });
  await turnEnds(page);
  const pictures = page.locator(".picture img");
  await page.waitForFunction(() => [...document.querySelectorAll("img")].every((shown) => shown.naturalWidth === 2));
  assert.equal(await pictures.count(), 2, "one of the message, one of the result");
  assert.equal(await pictures.first().getAttribute("alt"), EVIL_NAME.replace("\u202E", "⟨202E⟩"));
  await see(page, ".files", "The picture cannot be shown.");
  const saved = page.waitForEvent("download");
  await page.getByRole("link", { name: "table.csv · 8 B" }).click();
  assert.equal(readFileSync(await (await saved).path(), "utf8"), "a,b\n1,2\n");
  await assertAccessible(page);
  // That the picture is not there is what the browser says itself.
  tab.complaints.splice(0, Infinity, ...tab.complaints.filter((complaint) => !complaint.includes("status of 404")));
});

test("a picture that comes late moves nothing", async () => {
  const events = Array.from({ length: 6 }, (_, number) => turn(number + 1)).flat();
  const attachments = [{ blob_id: "blob_late", media_type: "image/gif", file_name: "late.gif" }];
  events[16] = { type: "user_message", data: { content: "With a picture", message_id: "m", attachments } };
  await bench.seed("late", events);
  const { page } = await bench.open();
  const arrival = gate();
  await page.route("**/blobs/blob_late", async (route) => {
    await arrival.opened;
    await route.fulfill({ contentType: "image/gif", body: gif(300, 300) });
  });
  await page.goto(`${bench.gateway.url}/#/c/late`);
  await see(page, ".end", "1,056 tokens");
  const answer = page.locator("[data-item=answer-3]");
  // The answer after the picture is at the top of the view, and the picture above it.
  await page.locator(".timeline").hover();
  const top = () => page.evaluate(() => document.querySelector("[data-item=answer-3]")?.getBoundingClientRect().top ?? -1);
  while ((await top()) < 0) await page.mouse.wheel(0, -50);
  await painted(page);
  const before = (await answer.boundingBox())?.y ?? 0;
  arrival.open();
  await page.waitForFunction(() => document.querySelector("img")?.naturalHeight === 300);
  await painted(page);
  const after = (await answer.boundingBox())?.y ?? 0;
  assert.ok(Math.abs(after - before) <= 2, `from ${before} to ${after}`);
});

test("a long result is read slice by slice, and saved whole", async () => {
  const lines = Array.from({ length: 5000 }, (_, number) => `line ${number} é <b>`).join("\n");
  bench.model.on("long result", (step) => (step === 0 ? { calls: [{ name: "look", input: {} }] } : { texts: ["Seen."] }));
  const { page } = await bench.open();
  await send(page, "Give a long result");
  await answerLook(page, lines);
  await turnEnds(page);
  const card = page.locator(".tool");
  await card.locator("summary.line").click();
  await see(page, ".tool h3", /Output · [\d.]+ KB/);
  const shownText = () => card.locator("pre").last().textContent();
  const beginning = (await shownText()) ?? "";
  assert.ok(beginning.length < 20_000 && lines.startsWith(beginning), "the event has the beginning");
  const more = card.getByRole("button", { name: "Show more" });
  for (const kilobytes of ["32.8 KB", "65.5 KB"]) {
    await more.click();
    await see(page, ".tool .hint", `${kilobytes} of`);
    assert.ok(lines.startsWith((await shownText()) ?? ""), "slices follow one another");
  }
  await more.click();
  await more.waitFor({ state: "detached" });
  assert.equal(await shownText(), lines);
  const saved = page.waitForEvent("download");
  await card.getByRole("button", { name: "Save all of it" }).click();
  assert.equal(readFileSync(await (await saved).path(), "utf8"), lines);
});

test("what happened beside the conversation is told in sentences", async () => {
  const notes: Seed[] = [
    { type: "user_message", data: { content: "Go", message_id: "m" } },
    { type: "context_compacted", data: { summary: "A summary.", messages: 1200, agent_execution_id: "run" } },
    { type: "context_compacted", data: { summary: "", messages: 3, agent_execution_id: "run" } },
    { type: "model_fallback", data: { from: "a/one", to: "b/two", code: "llm_overloaded", message: "…" } },
    { type: "skill_matched", data: { skill_name: "<b>pdf</b>", execution_id: "e" } },
    { type: "pattern_match", data: { anything: 1 } },
    { type: "outcome_probed", data: { tool_name: "pay", outcome: "unknown", probe: "find", execution_id: "e" } },
    { type: "outcome_settled", data: { tool_name: "pay", outcome: "happened", settled_by: "ann", execution_id: "e" } },
    { type: "assistant_message", data: { content: "Half", finish: "length", message_id: "a", agent_execution_id: "run" } },
    { type: "error", data: { code: "llm_bad_request", message: "No.", usage: { input_tokens: 3, output_tokens: 4 }, cost_usd: "0.5" } },
  ];
  await bench.seed("notes", notes);
  const { page } = await bench.open("/#/c/notes");
  await see(page, ".end", "7 tokens · $0.5");
  assert.deepEqual(await page.locator(".note summary").allTextContents(), [
    "A summary takes the place of 1,200 older messages for the model.",
    "The model is no longer sent 3 older messages.",
    "The model a/one failed (llm_overloaded). b/two goes on.",
    "The model chose the skill “<b>pdf</b>”.",
    "A tool recognised a pattern.",
    "A probe could not tell whether the call of pay happened.",
    "ann settled that the call of pay happened.",
  ]);
  await see(page, ".hint", "The answer was cut at the limit of tokens.");
  await page.locator(".note summary").first().click();
  await see(page, ".note pre", "A summary.");
  const chinese = await bench.open("/#/c/notes", { locale: "zh-CN" });
  await see(chinese.page, ".note", "模型 a/one 失败（llm_overloaded），由 b/two 继续。");
});

test("events of earlier and later releases are shown as far as they are known", async () => {
  await bench.seed("old", [
    { type: "user_message", data: { content: "An old question" } },
    { type: "thought", data: { reasoning: "An old thought" } },
    { type: "act", data: { tool_name: "search", tool_input: { query: "x" } } },
    { type: "act", data: { tool_name: "search", tool_input: "no object" } },
    { type: "observe", data: { tool_name: "search", observation: "The first result" } },
    { type: "observe", data: { tool_name: "search", result: null, is_error: true } },
    { type: "observe", data: { tool_name: "unheard", observation: { of: "a call" } } },
    { type: "something_newer", data: { with: ["fields", 1], message_id: "later" } },
    { type: "work_plan", data: { title: "A plan", steps: [{ step_number: 1, description: "A step", status: "dreaming" }, 7] } },
    { type: "sub_agent_start", data: { agent: "helper", task: "t", agent_execution_id: "run-of-nobody" } },
    { type: "thought", data: { reasoning: "Of a sub-agent without a call", agent_execution_id: "run-of-nobody" } },
    { type: "assistant_message", data: { content: "An old answer", finish: "a_newer_word" } },
    { type: "complete", data: { steps: "two", usage: "much", cost_usd: 7 } },
    { type: "user_message", data: { content: "A second question", attachments: "none" } },
    { type: "error", data: {} },
  ]);
  const { page } = await bench.open("/#/c/old");
  await see(page, ".end.error", "Error");
  assert.deepEqual(await page.locator(".row").evaluateAll((rows) => rows.map((row) => row.getAttribute("aria-label"))), [
    "You",
    "Thought",
    "search, search",
    "unheard",
    "Plan",
    "Thought",
    "Answer",
    "End of the turn",
    "You",
    "End of the turn",
  ]);
  const cards = page.locator(".parallel .tool");
  assert.deepEqual(await cards.evaluateAll((tools) => tools.map((tool) => tool.getAttribute("data-state"))), ["done", "failed"]);
  await cards.first().locator("summary.line").click();
  await see(page, ".tool pre", "The first result");
  assert.deepEqual(await page.locator(".user_message").allTextContents(), ["An old question", "A second question"]);
  await assertAccessible(page);
});

test("a plan ticks while it is watched", async () => {
  const actions = [
    { action: "start_step", step_number: 1 },
    { action: "end_step", step_number: 1 },
    { action: "start_step", step_number: 2 },
    { action: "end_step", step_number: 2, status: "failed" },
  ];
  const gates = [...actions, "the end"].map(gate);
  bench.model.on("plan a picnic", (step, _, results) => {
    const call = (input: object) => ({ calls: [{ name: "work_plan", input }] });
    if (step === 0) return call({ action: "create", title: "A <b>picnic</b>", steps: ["Buy bread", "Find a meadow"] });
    const { plan_id } = JSON.parse(results[0] ?? "") as { plan_id: string };
    const action = actions[step - 1];
    const held = { texts: [gates[step - 1]!.opened, "Next."] };
    return action ? { ...held, ...call({ ...action, plan_id }) } : held;
  });
  const { page } = await bench.open();
  await send(page, "Please plan a picnic");
  const plan = page.locator(".plan");
  const become = (...labels: string[]) =>
    page.waitForFunction((wanted) => {
      const marks = document.querySelectorAll(".plan li [role=img]");
      return [...marks].map((mark) => mark.getAttribute("aria-label")).join() === wanted;
    }, labels.join());
  await become("to do", "to do");
  assert.equal(await plan.locator("strong").textContent(), "A <b>picnic</b>");
  gates[0]!.open();
  await become("running", "to do");
  await assertAccessible(page);
  gates[1]!.open();
  await become("done", "to do");
  await page.reload();
  await become("done", "to do");
  gates[2]!.open();
  await become("done", "running");
  gates[3]!.open();
  await become("done", "failed");
  gates[4]!.open();
  await turnEnds(page);
  assert.equal(await plan.count(), 1, "it ticks in its place");
  assert.deepEqual(await plan.locator("li").allInnerTexts(), ["☑ Buy bread", "☒ Find a meadow"]);
});

test("a long part of a sub-agent is shown from its end", async () => {
  const of = { agent_execution_id: "run-sub" };
  const thought = (step: number): Seed => ({ type: "thought", data: { reasoning: `Thought ${step}`, step, ...of } });
  const call = { execution_id: "exec-1-search", call_id: "call-1-search" };
  await bench.seed("sub", [
    ...turn(1).slice(0, 3),
    { type: "sub_agent_start", data: { agent: "helper", task: "think", ...call, ...of } },
    ...Array.from({ length: 100 }, (_, step) => thought(step)),
  ]);
  const { page } = await bench.open("/#/c/sub");
  const thoughts = page.locator(".nested .thought");
  await see(page, ".nested", "Thought 99");
  assert.equal(await thoughts.count(), 30);
  await page.getByRole("button", { name: "Show what came before (70)" }).click();
  await page.getByRole("button", { name: "Show what came before (40)" }).waitFor();
  assert.equal(await thoughts.count(), 60);
});

test("axe finds no serious fault in code, files and notes, light or dark", async () => {
  const events = Array.from({ length: 10 }, (_, number) => turn(number + 1)).flat();
  events.push({ type: "model_fallback", data: { from: "a/one", to: "b/two", code: "llm_overloaded" } });
  await bench.seed("all", events);
  for (const colorScheme of ["light", "dark"] as const) {
    const { page } = await bench.open("/#/c/all", { colorScheme, viewport: { width: 900, height: 2500 } });
    await see(page, ".note", "goes on");
    await page.locator(".code-keyword").first().waitFor();
    await page.locator(".timeline details").evaluateAll((found) => found.forEach((details) => details.setAttribute("open", "")));
    await see(page, ".tool pre", "A page.");
    await assertAccessible(page);
  }
});
