/** The developer's view. */

import type { Bench } from "../support/bench";
import { openedId, see, send, turnEnds } from "../support/page";
import { after } from "../support/scenes";
import { dark, PHONE, picture, WIDEST } from "./camera";

/** A turn with a second try, a sub-agent, client tools and an approval, which was watched. */
export async function lookBehind({ open, client }: Bench): Promise<void> {
  const slowly = (result: string) => async ({ q }: { q?: string }) => (await after(q === "price list" ? 900 : 500), result);
  const tools = { look_up: slowly("3 pieces of 19.90 EUR"), refund: slowly("accepted") };
  const chat = client.conversation("refund", { tools });
  await client.create({ id: chat.id, title: "Refund of order 1208" });
  const unsubscribe = chat.subscribe(() => undefined);
  await chat.ask("Hello there");
  const { page } = await open("/#/c/refund", WIDEST);
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
  const { page: phone } = await open(`/#/c/${(await openedId(page)).split("/")[0]}/turns`, dark(PHONE));
  await phone.locator(".waterfall tr.done", { hasText: "refund" }).first().waitFor();
  await picture(phone, "page-waterfall-phone");
  unsubscribe();
}

/** Events, word by word. */
export async function readingEvents({ open }: Bench): Promise<void> {
  const { page } = await open("/#/c/refund/events", dark(WIDEST));
  await page.locator(".events li").nth(8).waitFor();
  await page.locator(".events summary", { hasText: "approval_requested" }).first().click();
  await picture(page, "page-events", "idle");
}
