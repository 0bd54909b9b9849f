/** A person who has a keyboard and nothing else: what is not reached by Tab is not there. */

import assert from "node:assert/strict";
import type { Locator, Page } from "playwright-core";

/** More than the page has that can be focused, with more than a hundred conversations in its list. */
const MOST_TABS = 320;

/** Effects run after the next drawing; a machine under load may take seconds for the drawing. */
const FOCUS_LIMIT_MS = 10_000;

type Role = Parameters<Page["getByRole"]>[0];

/** Presses Tab until this is focused. */
export async function tabTo(page: Page, role: Role, name: string | RegExp): Promise<void> {
  await tabToOne(page, page.getByRole(role, { name, exact: true }), `the ${role} ${name}`);
}

/** Presses Tab until one of these is focused. */
export async function tabToOne(page: Page, targets: Locator, what: string): Promise<void> {
  await targets.first().waitFor();
  for (let tabs = 0; tabs < MOST_TABS; tabs++) {
    if (await isFocused(targets)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`Tab never comes to ${what}`);
}

/** Goes to this, and presses Enter. */
export async function enter(page: Page, role: Role, name: string | RegExp): Promise<void> {
  await tabTo(page, role, name);
  await page.keyboard.press("Enter");
}

/** Goes to the folded part of this that is called so, and opens it. */
export async function unfold(page: Page, within: Locator, name: string | RegExp): Promise<void> {
  await tabToOne(page, within.locator("summary").filter({ hasText: name }), `the folded ${name}`);
  await page.keyboard.press("Enter");
}

/** Goes to the field, and writes this in the place of what is in it. */
export async function write(page: Page, name: string, text: string, role: Role = "textbox"): Promise<void> {
  await tabTo(page, role, name);
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
}

/** Writes a message, and sends it with Enter. */
export async function send(page: Page, text: string): Promise<void> {
  await write(page, "Message", text);
  await page.keyboard.press("Enter");
}

/** True when one of these has the focus. */
export function isFocused(targets: Locator): Promise<boolean> {
  return targets.evaluateAll((found) => found.includes(document.activeElement as HTMLElement));
}

/** Waits until one of these has the focus. A part that is drawn anew gets the focus in an effect after the drawing. */
export async function getsFocus(targets: Locator, failure: string): Promise<void> {
  const limit = Date.now() + FOCUS_LIMIT_MS;
  while (!(await isFocused(targets))) {
    assert.ok(Date.now() < limit, failure);
    await targets.page().evaluate(() => new Promise(requestAnimationFrame));
  }
}
