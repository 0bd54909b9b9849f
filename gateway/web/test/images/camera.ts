/** Takes the pictures of docs/page.md. */

import type { BrowserContextOptions, Page } from "playwright-core";
import { assertAccessible } from "../support/page";

const FOLDER = "../../docs/images";

/** The only scenes to be taken, by the beginnings of their names; all by default. */
const ONLY = process.argv.slice(2);

export const DESK = { viewport: { width: 1180, height: 760 } };
export const TALL = { viewport: { width: 1180, height: 980 } };
export const WIDEST = { viewport: { width: 1440, height: 900 } };
export const PHONE = { viewport: { width: 390, height: 780 }, deviceScaleFactor: 1.5, isMobile: true, hasTouch: true };

/** The same in the dark. */
export function dark(options: BrowserContextOptions): BrowserContextOptions {
  return { ...options, colorScheme: "dark" };
}

/**
 * Takes a picture once the list has this state of the conversation that is open, which may come after the timeline. Axe finds no
 * serious fault in what is shown.
 */
export async function picture(page: Page, name: string, state?: string): Promise<void> {
  if (state !== undefined) await page.locator(`.list a[aria-current] .dot.${state}`).waitFor({ state: "attached" });
  await page.mouse.move(0, 0);
  await assertAccessible(page);
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: `${FOLDER}/${name}.png`, animations: "disabled" });
  console.log(`docs/images/${name}.png`);
}

/** Runs a part of the scenes, unless others are asked for. */
export async function scene(name: string, take: () => Promise<void>): Promise<void> {
  if (ONLY.length === 0 || ONLY.includes(name)) await take();
}
