/** What the pictures of docs/page.md show: an agent of a shop, what its model says, and a conversation that it had. */

import type { api } from "everturn-client";
import type { Browser } from "playwright-core";
import type { Bench } from "./bench";
import type { Seed } from "./seed";

export const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
description = "Answers questions about orders, and refunds them."
samples = ["What did the last order of Ada cost, and what time is it there?", "Please refund order 1207.", "Which of the two offers for tea is better?"]
tools = ["calculate", "current_time", "work_plan", "ask_warehouse", { name = "refund", approval = { when = { properties = {} }, timeout = "15m" } }]
delegates = ["researcher"]

[agents.bookkeeper]
provider = "scripted"
model = "scripted"
description = "Sums up the sales of a day, a week or a month, and explains a number that surprises."
samples = ["Sum up last week."]
tools = ["calculate"]

[agents.writer]
provider = "scripted"
model = "scripted"
description = "Writes product texts in the voice of the shop."

[agents.researcher]
provider = "scripted"
model = "scripted"
description = "Finds out what is known of an order."
tools = ["calculate", "look_up"]

[client_tools.look_up]
description = "Looks something up in the shop."

[client_tools.ask_warehouse]
description = "Asks the warehouse."

[client_tools.refund]
description = "Refunds an order."

[gateway]
temporal_ui = "https://temporal.example.com/namespaces/default/workflows/{workflow_id}"

[models."scripted/scripted"]
input = 2
output = 10
`;

/** Resolves after so many milliseconds: a model and tools that take their time make a waterfall that can be read. */
export const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Tells the model what to say. */
export function scripts(model: Bench["model"]): void {
  model.on("Translate", () => ({ status: 401 }));
  const denied = "I have not refunded the order: somebody denied the refund, because the order has left the house already.";
  model.on("refund order 1207", (step, _, results) => {
    const calls = [{ name: "refund", input: { order: 1207, amount: "59.70 EUR" } }];
    if (step === 0) return { texts: ["A refund has to be approved."], calls };
    return { texts: [JSON.stringify(results).includes("denied") ? denied : "The refund is on its way."] };
  });
  const tea = `Tea is picked in spring, when the first leaves come.

- **Green tea** is steamed, so that the leaves stay green.
- **Black tea** has rested in the air, and is strong.

The water matters as much as the leaves: at 80 °C the second pot`;
  for (const start of ["green tea", "black tea"]) model.on(`text about ${start}`, () => ({ texts: [tea, new Promise(() => undefined)] }));
  model.on("tea in stock", (step) =>
    step === 0 ? { texts: ["I ask the warehouse."], calls: [{ name: "ask_warehouse", input: { item: "green tea" } }] } : { texts: ["Yes."] },
  );
  research(model);
  compare(model);
  refundAll(model);
}

const sum = (expression: string) => ({ name: "calculate", input: { expression } });
const task = (text: string) => ({ name: "delegate", input: { agent: "researcher", task: text } });

function research(model: Bench["model"]): void {
  model.on("last order of Ada", (step) =>
    step === 0
      ? {
          texts: ["The researcher knows the orders. The time there I look up myself."],
          calls: [task("Sum up the order 1207."), { name: "current_time", input: { time_zone: "Europe/Berlin" } }],
        }
      : { texts: ["Order 1207 cost **59.70 EUR** and left the house today:\n\n| item | pieces | price |\n|---|--:|--:|\n| tea | 3 | 19.90 |"] },
  );
  model.on("Sum up the order", (step) =>
    step === 0 ? { texts: ["Three pieces of 19.90 each."], calls: [sum("3 * 19.90")] } : { texts: ["It cost 59.70 EUR."] },
  );
}

function compare(model: Bench["model"]): void {
  const steps = ["Read both offers", "Compare them", "Recommend one"];
  const never = new Promise(() => undefined);
  model.on("two offers", (step, _, results) => {
    if (step === 0) return { calls: [{ name: "work_plan", input: { action: "create", title: "The better offer", steps } }] };
    const { plan_id } = JSON.parse(results[0] ?? "{}") as { plan_id?: string };
    if (step === 1) return { calls: [{ name: "work_plan", input: { action: "start_step", plan_id, step_number: 1 } }] };
    return { texts: ["Two researchers read the offers."], calls: [task("Read the offer of north."), task("Read the offer of south.")] };
  });
  model.on("offer of north", (step) =>
    step === 0 ? { texts: ["Ten boxes of 18.40 each."], calls: [sum("10 * 18.40")] } : { texts: ["North asks **184 EUR**, with delivery."] },
  );
  model.on("offer of south", (step) =>
    step === 0
      ? { texts: ["Ten boxes of 16.90 each."], calls: [sum("10 * 16.90")] }
      : { texts: ["South asks **169 EUR**, but the delivery costs", never] },
  );
}

/** Every promise begins when the model is asked. */
function refundAll(model: Bench["model"]): void {
  model.on("all of order 1208", (step, attempt) => {
    if (step === 0 && attempt === 0) return { status: 503 };
    if (step > 0) return { texts: [after(320), "The refund of 59.70 EUR", after(720), " for order 1208 is on its way."] };
    const calls = [{ name: "current_time", input: { time_zone: "Europe/Berlin" } }, task("Find what was paid.")];
    return { texts: [after(300), "First I find what was paid.", after(600)], calls: [...calls, { name: "refund", input: { number: 1208 } }] };
  });
  model.on("what was paid", (step) => {
    const calls = [["order 1208", "price list"].map((q) => ({ name: "look_up", input: { q } })), [sum("3 * 19.90")]][step];
    if (calls) return { texts: [after(400), "I look.", after(700)], calls };
    return { texts: [after(300), "It cost ", after(550), "59.70 EUR."] };
  });
}

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const ORDERS = [38, 52, 47, 71, 64, 90, 83];

/** A chart, as a tool might draw one. */
export async function drawChart(browser: Browser): Promise<Buffer> {
  const page = await browser.newPage({ viewport: { width: 700, height: 320 } });
  const bar = (count: number, at: number) =>
    `<rect x="${55 + 90 * at}" y="${270 - 2.4 * count}" width="60" height="${2.4 * count}" rx="4" fill="${count === 90 ? "#e4632d" : "#4a7fd4"}"/>` +
    `<text x="${85 + 90 * at}" y="300" text-anchor="middle" font-size="18" font-family="sans-serif">${DAYS[at]}</text>`;
  const line = '<path d="M40 271H680" stroke="#999"/>';
  await page.setContent(`<style>body{margin:0}</style><svg width="700" height="320">${line}${ORDERS.map(bar).join("")}</svg>`);
  const drawn = await page.screenshot();
  await page.close();
  return drawn;
}

const ANSWER = `Saturday is the peak, with **90 orders**. This is how I counted them:

\`\`\`python
from collections import Counter

def orders_per_day(rows):
    """Counts the orders of each day."""
    days = Counter(row["day"] for row in rows)  # one row, one order
    return days.most_common()
\`\`\`

| day | orders | of all |
|---|--:|--:|
| Sat | 90 | 20 % |
| Sun | 83 | 19 % |
| Thu | 71 | 16 % |

- [x] count the orders
- [x] draw them
- [ ] compare with the week before`;

/** A turn with files, notes, a picture, a long result and code. */
export function ordersOfLastWeek(chart: api.Blob, table: api.Blob): Seed[] {
  const agent = { agent_execution_id: "run-1", step: 0 };
  const file = { blob_id: table.blob_id, media_type: "text/csv", file_name: "orders.csv", bytes: table.bytes };
  const image = { type: "image/png", blob_id: chart.blob_id, file_name: "orders.png", bytes: chart.bytes };
  const call = (name: string) => ({ execution_id: `exec-${name}`, call_id: `call-${name}`, tool_name: name, ...agent });
  const last = { ...agent, step: 1, finish: "stop" };
  const usage = { input_tokens: 8120, output_tokens: 415, cached_tokens: 0, cache_write_tokens: 0 };
  const long = { truncated: true, text: "day,order\nMon,1101\nMon,1102", total_bytes: 184_000 };
  return [
    { type: "user_message", data: { content: "Which day had the most orders? Draw it, too.", message_id: "m-1", attachments: [file] } },
    { type: "context_compacted", data: { summary: "Orders of the weeks before.", messages: 120, ...agent } },
    { type: "model_fallback", data: { from: "anthropic/large", to: "openai/large", code: "llm_overloaded", message: "…", ...agent } },
    { type: "thought", data: { thought: "I count the orders of each day, and draw them.", ...agent } },
    { type: "act", data: { tool_input: { file: "orders.csv" }, ...call("read_orders") } },
    { type: "act", data: { tool_input: { kind: "bars", of: "orders per day" }, ...call("draw_chart") } },
    { type: "observe", data: { result: long, duration_ms: 230, is_error: false, ...call("read_orders") } },
    { type: "observe", data: { result: { content: [image] }, duration_ms: 1400, is_error: false, ...call("draw_chart") } },
    { type: "assistant_message", data: { content: ANSWER, message_id: "a-1", ...last } },
    { type: "complete", data: { steps: 2, usage, cost_usd: "0.0312", ...last } },
  ];
}
