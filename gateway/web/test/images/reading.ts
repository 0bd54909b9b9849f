/** What is read in a conversation: code, files, formulas, tables, failures; and the dialogs. */

import type { Bench } from "../support/bench";
import { see } from "../support/page";
import { drawChart, ordersOfLastWeek } from "../support/scenes";
import { dark, DESK, PHONE, picture, TALL } from "./camera";

/** Code, a picture, files, notes and a long result: in the dark, and on a phone. */
export async function read({ browser, client, seed, open }: Bench): Promise<void> {
  const chart = await client.upload(await drawChart(browser), { mediaType: "image/png", fileName: "orders.png" });
  const table = await client.upload("day,order\n".repeat(440), { mediaType: "text/csv", fileName: "orders.csv" });
  await seed("orders", ordersOfLastWeek(chart, table), "Orders of last week");
  for (const [name, size] of [["page-dark", TALL], ["page-code-phone", PHONE]] as const) {
    const { page } = await open("/#/c/orders", dark(size));
    await see(page, ".end", "2 steps");
    await page.locator(".code-keyword").first().waitFor();
    await page.waitForFunction(() => [...document.querySelectorAll("img")].every((shown) => shown.naturalWidth > 0));
    await picture(page, name, "idle");
  }
  const dialogs = [["page-rename", "Rename"], ["page-delete", "Delete"], ["page-export", "Export"], ["page-shortcuts", "Keyboard shortcuts"]] as const;
  const { page } = await open("/#/c/orders", DESK);
  await see(page, ".end", "2 steps");
  for (const [name, dialog] of dialogs) {
    await page.emulateMedia({ colorScheme: name === "page-export" ? "dark" : "light" });
    await page.getByRole("button", { name: dialog }).click();
    await page.getByRole("dialog").waitFor();
    await picture(page, name, "idle");
    await page.keyboard.press("Escape");
  }
}

/** Answers that were given: formulas, a table that is scrolled, a tool that failed, and the middle of a long conversation. */
export async function said({ open }: Bench): Promise<void> {
  for (const [name, size] of [["page-math", DESK], ["page-math-phone", dark(PHONE)]] as const) {
    const { page } = await open("/#/c/math", size);
    await page.locator(".formula math").nth(1).waitFor();
    await page.locator("code", { hasText: "$" }).first().waitFor({ state: "detached" });
    await picture(page, name, "idle");
  }
  const { page: table } = await open("/#/c/table", PHONE);
  await see(table, ".end", "tokens");
  await picture(table, "page-table-phone", "idle");
  const { page: failure } = await open("/#/c/failure", DESK);
  await see(failure, ".end", "tokens");
  await failure.locator(".tool.failed summary").last().click();
  await picture(failure, "page-tool-failed", "idle");
  const { page: many } = await open("/#/c/many", dark(DESK));
  await see(many, ".end", "tokens");
  await many.locator(".timeline").evaluate((box) => (box.scrollTop -= 2600));
  await see(many, ".user_message", /Question 19\d/);
  await picture(many, "page-long", "idle");
}
