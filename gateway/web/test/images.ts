/**
 * Makes the pictures of docs/page.md from the page itself, on `everturn dev` with a model that does as it is told.
 * `make page-images` runs it; look at what it made before you commit it.
 */

import type { Page } from "playwright-core";
import { type Bench, startBench } from "./support/bench";
import { openedId, see, send, turnEnds } from "./support/page";
import { after, CONFIG, drawChart, ordersOfLastWeek, scripts } from "./support/scenes";

const FOLDER = "../../docs/images";
const WIDE = { viewport: { width: 1180, height: 760 } };
const TALL = { viewport: { width: 1180, height: 980 } };
const WIDEST = { viewport: { width: 1440, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

const bench = await startBench(CONFIG);
try {
  scripts(bench.model);
  await refuse();
  await research();
  await compare();
  await approve();
  await read(bench);
  await lookBehind();
} finally {
  await bench.closeTabs();
  await bench.stop();
}

/** A turn that ends with an error. */
async function refuse(): Promise<void> {
  const { page } = await bench.open("/", WIDE);
  await send(page, "Translate the delivery note of order 1207 into Chinese.");
  await see(page, ".end", /llm_/);
  await picture(page, "page-error", "idle");
}

/** Tools side by side, one of which is a sub-agent; in the light, and on a phone. */
async function research(): Promise<void> {
  const { page } = await bench.open("/", WIDE);
  await send(page, "What did the last order of Ada cost, and what time is it there?");
  await turnEnds(page);
  await picture(page, "page", "idle");
  const phone = await bench.open(`/#/c/${await openedId(page)}`, PHONE);
  await turnEnds(phone.page);
  await picture(phone.page, "page-phone", "idle");
}

/** Two sub-agents side by side, of which one has ended and the other one writes, below a plan. */
async function compare(): Promise<void> {
  const { page } = await bench.open("/", TALL);
  await send(page, "Which of the two offers for tea is better? Make a plan first.");
  await see(page, ".nested [data-writing]", "the delivery costs");
  await see(page, ".tool.done", "north");
  await see(page, ".plan li[data-status=running]", "Read both offers");
  await picture(page, "page-sub-agents", "running");
  const phone = await bench.open(`/#/c/${await openedId(page)}`, { ...PHONE, colorScheme: "dark" });
  await see(phone.page, ".nested [data-writing]", "the delivery costs");
  await phone.page.getByRole("textbox", { name: "Message" }).fill("Leave the delivery out.");
  await picture(phone.page, "page-busy-phone", "running");
  await page.getByRole("button", { name: "Stop" }).click();
  await turnEnds(page);
}

/** A call that waits for a person, who sees what it is given. */
async function approve(): Promise<void> {
  const { page } = await bench.open("/", WIDE);
  await send(page, "Please refund order 1207.");
  await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
  await picture(page, "page-approval", "waiting_for_approval");
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await turnEnds(page);
}

/** Code, a picture, files, notes and a long result: in the dark, and on a phone. */
async function read({ browser, client, seed }: Bench): Promise<void> {
  const chart = await client.upload(await drawChart(browser), { mediaType: "image/png", fileName: "orders.png" });
  const table = await client.upload("day,order\n".repeat(440), { mediaType: "text/csv", fileName: "orders.csv" });
  await seed("orders", ordersOfLastWeek(chart, table), "Orders of last week");
  for (const [name, size] of [["page-dark", TALL], ["page-code-phone", PHONE]] as const) {
    const { page } = await bench.open("/#/c/orders", { ...size, colorScheme: "dark" });
    await see(page, ".end", "2 steps");
    await page.locator(".code-keyword").first().waitFor();
    await page.waitForFunction(() => [...document.querySelectorAll("img")].every((shown) => shown.naturalWidth > 0));
    await picture(page, name, "idle");
  }
  const { page } = await bench.open("/#/c/orders", WIDE);
  await see(page, ".end", "2 steps");
  for (const [name, dialog] of [["page-delete", "Delete"], ["page-export", "Export"], ["page-shortcuts", "Keyboard shortcuts"]] as const) {
    await page.getByRole("button", { name: dialog }).click();
    await page.getByRole("dialog").waitFor();
    await picture(page, name, "idle");
    await page.keyboard.press("Escape");
  }
}

/** The developer's view of a turn with a second try, a sub-agent, client tools and an approval, which was watched. */
async function lookBehind(): Promise<void> {
  const slowly = (result: string) => async ({ q }: { q?: string }) => (await after(q === "price list" ? 900 : 500), result);
  const tools = { look_up: slowly("3 pieces of 19.90 EUR"), refund: slowly("accepted") };
  const chat = bench.client.conversation("refund", { tools });
  await bench.client.create({ id: chat.id, title: "Refund of order 1208" });
  const unsubscribe = chat.subscribe(() => undefined);
  await chat.ask("Hello there");
  const { page } = await bench.open("/#/c/refund", WIDEST);
  await turnEnds(page);
  await page.getByRole("link", { name: "Developer's view" }).click();
  await send(page, "Please refund all of order 1208.");
  const approval = page.getByRole("button", { name: "Approve", exact: true });
  await approval.waitFor();
  await after(1500);
  await approval.click();
  await turnEnds(page, 2);
  await see(page, ".waterfall tr.done", /refund.*waited .* for an approval/);
  await page.locator(".waterfall tr.done", { hasText: "LLM call 1" }).filter({ hasText: "scripted" }).nth(1).waitFor();
  await see(page, ".executions li li summary", /researcher.*done/);
  await picture(page, "page-waterfall", "idle");
  unsubscribe();
}

/** Takes a picture once the list has this state of the conversation that is open, which may come after the timeline. */
async function picture(page: Page, name: string, state: string): Promise<void> {
  await page.locator(`.list a[aria-current] .dot.${state}`).waitFor({ state: "attached" });
  await page.mouse.move(0, 0);
  await page.screenshot({ path: `${FOLDER}/${name}.png` });
  console.log(`docs/images/${name}.png`);
}
