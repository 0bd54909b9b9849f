/**
 * Makes the pictures of docs/page.md from the page itself, on `everturn dev` with a model that does as it is told.
 * `make page-images` runs it; look at what it made before you commit it.
 */

import type { Page } from "playwright-core";
import { startBench } from "./support/bench";
import { openedId, see, send, turnEnds } from "./support/page";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
tools = ["calculate", "current_time", { name = "refund", approval = "always" }]
delegates = ["researcher"]

[agents.researcher]
provider = "scripted"
model = "scripted"
description = "Finds out what is known of an order."
tools = ["calculate", "look_up"]

[client_tools.look_up]
description = "Looks something up in the shop."

[client_tools.refund]
description = "Refunds an order."

[models."scripted/scripted"]
input = 2
output = 10
`;

const FOLDER = "../../docs/images";
const WIDE = { viewport: { width: 1180, height: 760 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

const bench = await startBench(CONFIG);
try {
  script();
  await refuse();
  await research();
  await approve();
} finally {
  await bench.closeTabs();
  await bench.stop();
}

function script(): void {
  const times = (expression: string) => ({ name: "calculate", input: { expression } });
  bench.model.on("last order of Ada", (step) =>
    step === 0
      ? {
          texts: ["The researcher knows the orders. The time there I look up myself."],
          calls: [
            { name: "delegate", input: { agent: "researcher", task: "Sum up the order 1207." } },
            { name: "current_time", input: { time_zone: "Europe/Berlin" } },
          ],
        }
      : { texts: ["Order 1207 cost **59.70 EUR** and left the house today:\n\n| item | pieces | price |\n|---|--:|--:|\n| tea | 3 | 19.90 |"] },
  );
  bench.model.on("Sum up the order", (step) =>
    step === 0 ? { texts: ["Three pieces of 19.90 each."], calls: [times("3 * 19.90")] } : { texts: ["It cost 59.70 EUR."] },
  );
  bench.model.on("refund order 1207", (step) =>
    step === 0
      ? { texts: ["A refund has to be approved."], calls: [{ name: "refund", input: { order: 1207, amount: "59.70 EUR" } }] }
      : { texts: ["The refund is on its way."] },
  );
  bench.model.on("Translate", () => ({ status: 401 }));
}

/** A turn that ends with an error. */
async function refuse(): Promise<void> {
  const { page } = await bench.open("/", WIDE);
  await send(page, "Translate the delivery note of order 1207 into Chinese.");
  await see(page, ".end", /llm_/);
  await picture(page, "page-error");
}

/** Tools side by side, one of which is a sub-agent. */
async function research(): Promise<void> {
  const { page } = await bench.open("/", WIDE);
  await send(page, "What did the last order of Ada cost, and what time is it there?");
  await turnEnds(page);
  await picture(page, "page");
  const phone = await bench.open(`/#/c/${await openedId(page)}`, PHONE);
  await turnEnds(phone.page);
  await picture(phone.page, "page-phone");
}

/** A call that waits for a person, who has opened what it is given. */
async function approve(): Promise<void> {
  const { page } = await bench.open("/", WIDE);
  await send(page, "Please refund order 1207.");
  await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
  await picture(page, "page-approval");
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await turnEnds(page);
}

async function picture(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: `${FOLDER}/${name}.png` });
  console.log(`docs/images/${name}.png`);
}
