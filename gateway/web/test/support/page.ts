/** The page in a real Chromium, and what it shows. */

import assert from "node:assert/strict";
import axe from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/**
 * Milliseconds until something that does not happen is a failure. A machine that writes the output of a build to its disk may
 * stand still for 20 seconds.
 */
const PATIENCE_MS = 60_000;

/** Starts Chromium. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
}

/** A tab that notes everything that the browser complains about. */
export interface Tab {
  readonly page: Page;
  readonly complaints: string[];
}

/** Opens a tab of a new user, or a further one of the same. */
export async function openTab(browser: Browser, url: string, options: BrowserContextOptions = {}, beside?: Tab): Promise<Tab> {
  const context = beside?.page.context() ?? (await browser.newContext({ locale: "en-US", reducedMotion: "reduce", ...options }));
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => (complaints.push(`dialog: ${dialog.message()}`), void dialog.dismiss()));
  await page.addInitScript(() =>
    document.addEventListener("securitypolicyviolation", (event) => console.error(`CSP: ${event.violatedDirective}`)),
  );
  await page.goto(url);
  return { page, complaints };
}

/** Goes from a conversation to a new one. What is written before the page is there is written in the old one. */
export async function beginAnew(page: Page): Promise<void> {
  await page.getByRole("link", { name: "New conversation" }).click();
  await page.locator(".user_message").first().waitFor({ state: "detached" });
}

/** Writes a message and sends it with Enter. */
export async function send(page: Page, text: string): Promise<void> {
  const box = page.getByRole("textbox", { name: "Message" });
  await box.fill(text);
  await box.press("Enter");
}

/** Waits until an element with this text is there. */
export async function see(page: Page, selector: string, text: string | RegExp): Promise<void> {
  await page.locator(selector).filter({ hasText: text }).first().waitFor();
}

/** Waits until the next frame is painted. */
export async function painted(page: Page): Promise<void> {
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));
}

/** Waits until the turn has ended, and no text is being written. */
export async function turnEnds(page: Page, count = 1): Promise<void> {
  await page.locator(".end").nth(count - 1).waitFor();
  await page.locator("[data-writing], [data-pending]").first().waitFor({ state: "detached" });
}

/** The id of the conversation that the tab shows. */
export async function openedId(page: Page): Promise<string> {
  await page.waitForURL(/#\/c\//);
  return decodeURIComponent(new URL(page.url()).hash.slice("#/c/".length));
}

/** Fails when axe finds a fault of impact serious or critical. */
export async function assertAccessible(page: Page): Promise<void> {
  const faults = await page.evaluate(`${axe.source}; axe.run().then((found) => found.violations)`);
  const serious = (faults as axe.Result[]).filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])]), []);
}
