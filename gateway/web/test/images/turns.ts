/** Turns: they run, wait, end, fail, and lose their connection. */

import type { Bench } from "../support/bench";
import { openedId, see, send, turnEnds } from "../support/page";
import { dark, DESK, PHONE, picture, TALL } from "./camera";

/** A turn that ends with an error. */
export async function refuse({ open }: Bench): Promise<void> {
  const { page } = await open("/", DESK);
  await send(page, "Translate the delivery note of order 1207 into Chinese.");
  await see(page, ".end", /llm_/);
  await picture(page, "page-error", "idle");
}

/** Two tools, one of which is a sub-agent; in the light, and on a phone. */
export async function research({ open }: Bench): Promise<void> {
  const { page } = await open("/", DESK);
  await page.getByRole("button", { name: "What did the last order of Ada cost" }).click();
  await turnEnds(page);
  await picture(page, "page", "idle");
  const { page: phone } = await open(`/#/c/${await openedId(page)}`, PHONE);
  await turnEnds(phone);
  await picture(phone, "page-phone", "idle");
}

/** An answer that is being written. */
export async function stream({ open }: Bench): Promise<void> {
  const { page } = await open("/", dark(DESK));
  await send(page, "Write a short text about green tea.");
  await see(page, "[data-writing]", "the second pot");
  await picture(page, "page-streaming", "running");
}

/** Two sub-agents, of which one has ended and the other one writes, below a plan. */
export async function compare({ open }: Bench): Promise<void> {
  const { page } = await open("/", TALL);
  await send(page, "Which of the two offers for tea is better? Make a plan first.");
  await see(page, ".nested [data-writing]", "the delivery costs");
  await see(page, ".tool.done", "north");
  await see(page, ".plan li[data-status=running]", "Read both offers");
  await picture(page, "page-sub-agents", "running");
  const { page: phone } = await open(`/#/c/${await openedId(page)}`, dark(PHONE));
  await see(phone, ".nested [data-writing]", "the delivery costs");
  await send(phone, "And what does a box of twenty cost?");
  await see(phone, "[data-pending=queued]", "box of twenty");
  await phone.getByRole("textbox", { name: "Message" }).fill("Leave the delivery out.");
  await picture(phone, "page-busy-phone", "running");
  await page.getByRole("button", { name: "Stop" }).click();
  await turnEnds(page);
}

/** A call that waits for a person: asked, with another input, with a reason, denied; and one that a program would run. */
export async function approve({ open }: Bench): Promise<void> {
  const { page } = await open("/", DESK);
  await send(page, "Please refund order 1207.");
  await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
  await picture(page, "page-approval", "waiting_for_approval");
  const path = `/#/c/${await openedId(page)}`;
  const { page: edits } = await open(path, dark(DESK));
  await edits.getByRole("button", { name: "Edit the input" }).click();
  await edits.getByRole("textbox", { name: "Input" }).fill('{\n  "amount": "19.90 EUR",\n  "order": 1207,\n}');
  await edits.getByRole("button", { name: "Approve with this input" }).click();
  await picture(edits, "page-approval-edit", "waiting_for_approval");
  const { page: phone } = await open(path, PHONE);
  await phone.getByRole("button", { name: "Give a reason" }).click();
  await phone.getByRole("textbox", { name: /Reason/ }).fill("The order has left the house already.");
  await picture(phone, "page-approval-phone", "waiting_for_approval");
  await phone.getByRole("button", { name: "Deny", exact: true }).click();
  await turnEnds(page);
  await picture(page, "page-denied", "idle");
  const { page: client } = await open("/", dark(PHONE));
  await send(client, "Is green tea in stock?");
  await client.getByRole("textbox", { name: /Result/ }).fill('{ "boxes": 12 }');
  await picture(client, "page-client-tool-phone", "waiting_for_client_tool");
}

/** A turn that somebody stopped. */
export async function cancel({ open }: Bench): Promise<void> {
  const { page } = await open("/", dark(DESK));
  await send(page, "Write a short text about black tea.");
  await see(page, "[data-writing]", "the second pot");
  await page.getByRole("button", { name: "Stop" }).click();
  await turnEnds(page);
  await picture(page, "page-cancelled", "idle");
}

/** A message with files, of which one is refused. */
export async function write({ open }: Bench): Promise<void> {
  const { page } = await open("/", PHONE);
  await page.locator("input[type=file]").setInputFiles([
    { name: "orders.csv", mimeType: "text/csv", buffer: Buffer.from("day,order\n".repeat(440)) },
    { name: "program.exe", mimeType: "application/x-msdownload", buffer: Buffer.from("MZ") },
  ]);
  await page.locator("[data-attachment=failed]").waitFor();
  await page.locator("[data-attachment=ready]").waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("Which day had the most orders?\nDraw it, too.");
  await picture(page, "page-files-phone");
}

/** A connection that is lost, a message that was refused, and a conversation that is not there. */
export async function lose({ open }: Bench): Promise<void> {
  const { page } = await open("/#/c/failure", PHONE);
  await see(page, ".end", "tokens");
  await page.context().setOffline(true);
  await see(page, ".status", /offline|connection is lost/);
  await picture(page, "page-offline-phone", "idle");
  const { page: refused } = await open("/#/c/table", dark(DESK));
  await see(refused, ".end", "tokens");
  const problem = { type: "docs/errors/rate_limited", title: "Too many", status: 400, code: "rate_limited", detail: "Too many messages in a minute." };
  await refused.route("**/messages", (route) => route.fulfill({ status: 400, json: problem, contentType: "application/problem+json" }));
  await send(refused, "And which of them is organic?");
  await see(refused, "[data-pending=failed]", "rate_limited");
  await picture(refused, "page-not-sent", "idle");
  const { page: missing } = await open("/#/c/nowhere", DESK);
  await see(missing, "[role=alert]", "There is no conversation");
  await picture(missing, "page-missing");
}
