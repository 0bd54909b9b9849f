/** Where people begin: the agents, the list, and signing in. */

import { type Bench, startBench } from "../support/bench";
import { createKey } from "../support/keys";
import { see, send } from "../support/page";
import { fiftyAgents } from "../support/shop";
import { dark, DESK, PHONE, picture } from "./camera";

/** Some agents, in the light and in the dark. */
export async function begin({ open }: Bench): Promise<void> {
  const { page } = await open("/", DESK);
  await see(page, ".samples", "refund order 1207");
  await picture(page, "page-start");
  const phone = await open("/", dark(PHONE));
  await phone.page.getByRole("radio", { name: /bookkeeper/ }).check();
  await see(phone.page, ".samples", "Sum up last week.");
  await picture(phone.page, "page-start-phone");
}

/** A list with many days, in which conversations wait. */
export async function list({ open, client }: Bench): Promise<void> {
  for (const [id, title] of [["waits-1", "Refund of order 1207"], ["waits-2", "Refund of order 1209"]] as const) {
    await client.create({ id, title });
    await client.conversation(id).post("Please refund order 1207.");
  }
  const { page } = await open("/#/c/old-3", DESK);
  await see(page, ".waiting .count", /^[2-9]$/);
  await see(page, ".end", "tokens");
  await picture(page, "page-list", "idle");
  const phone = await open("/#/c/old-3", PHONE);
  await see(phone.page, ".end", "tokens");
  await phone.page.getByRole("button", { name: "Show the conversations" }).click();
  await see(phone.page, ".waiting .count", /^[2-9]$/);
  await picture(phone.page, "page-list-phone", "idle");
}

/** One agent: nothing to choose. */
export async function one(): Promise<void> {
  const samples = 'samples = ["What can you do?", "Tell me about my last order."]';
  const config = `[agents.default]\nprovider = "scripted"\nmodel = "scripted"\ndescription = "Answers questions about orders."\n${samples}\n`;
  const bench = await startBench(config);
  try {
    const { page } = await bench.open("/", PHONE);
    await see(page, ".samples", "What can you do?");
    await picture(page, "page-one-agent-phone");
  } finally {
    await bench.closeTabs();
    await bench.stop();
  }
}

/** Many agents, behind a door. */
export async function many(): Promise<void> {
  const bench = await startBench(`[agents.default]\nprovider = "scripted"\nmodel = "scripted"\n\n${fiftyAgents()}\n[auth]\nrequired = true\n`);
  try {
    const { page } = await bench.open("/", DESK);
    const key = page.getByLabel("Key or token");
    await key.waitFor();
    await picture(page, "page-signin");
    const { page: phone } = await bench.open("/", dark(PHONE));
    await phone.getByLabel("Key or token").fill("no-such-key");
    await phone.getByRole("button", { name: "Sign in" }).click();
    await see(phone, "[role=alert]", "unauthenticated");
    await picture(phone, "page-signin-phone");
    await key.fill(createKey(bench.folder));
    await key.press("Enter");
    await page.getByRole("searchbox", { name: "Search agents" }).fill("weekly report");
    await page.getByRole("radio", { name: /legal-reports/ }).check();
    await see(page, ".samples", "What is new today?");
    await page.emulateMedia({ colorScheme: "dark" });
    await picture(page, "page-agents");
    await page.setViewportSize(PHONE.viewport);
    await page.getByRole("searchbox", { name: "Search agents" }).fill("");
    await page.emulateMedia({ colorScheme: "light" });
    await picture(page, "page-agents-phone");
    await send(page, "What is new today?");
  } finally {
    for (const context of bench.browser.contexts()) await context.close();
    await bench.stop();
  }
}
