/** Further scenes of the shop for the pictures of docs/page.md: formulas, tables, failures, and a list of many days. */

import type { Bench } from "./bench";
import { type Seed, turn } from "./seed";

/** What an agent answers about interest. */
const MATH = `Interest that is added $n$ times a year grows the amount $P$ to

$$A = P\\left(1 + \\frac{r}{n}\\right)^{nt}$$

For $P = 1000$, $r = 0.05$ and $t = 10$ years:

| times a year | amount |
|---|--:|
| $n = 1$ | 1628.89 |
| $n = 12$ | 1647.01 |
| $n \\to \\infty$ | 1648.72 |

The last row is the limit:

\\[\\lim_{n \\to \\infty} P\\left(1 + \\frac{r}{n}\\right)^{nt} = P e^{rt} = 1000 \\cdot \\sqrt{e} \\approx 1648.72\\]`;

const TABLE = `Here are the offers:

| Manufacturer | Delivery time | Price of a box | Minimum order | Certificate | Note |
|---|---|--:|--:|---|---|
| North Tea Company | 3 days | 18.40 EUR | 10 | organic | delivery is free of charge |
| South Leaves | 9 days | 16.90 EUR | 25 | none | delivery costs 15 EUR |
| \`east_import_2026\` | 21 days | 12.10 EUR | 200 | organic, fair | only by ship |`;

const agent = { agent_execution_id: "run-1", step: 0 };
const last = { ...agent, step: 1, finish: "stop" };
const usage = { input_tokens: 1210, output_tokens: 215, cached_tokens: 0, cache_write_tokens: 0 };

function asked(question: string, more: readonly Seed[], answer: string): Seed[] {
  return [
    { type: "user_message", data: { content: question, message_id: "m-1" } },
    ...more,
    { type: "assistant_message", data: { content: answer, message_id: "a-1", ...last } },
    { type: "complete", data: { steps: 2, usage, cost_usd: "0.0042", ...last } },
  ];
}

/** A tool that failed, and one that did not. */
function failure(): Seed[] {
  const call = (name: string) => ({ execution_id: `exec-${name}`, call_id: `call-${name}`, tool_name: name, ...agent });
  const reason = "The warehouse did not answer within 30 s. Ask again in a few minutes.";
  return [
    { type: "thought", data: { thought: "I ask the warehouse, and look at the calendar.", ...agent } },
    { type: "act", data: { tool_input: { order: 1207 }, ...call("ask_warehouse") } },
    { type: "act", data: { tool_input: { time_zone: "Europe/Berlin" }, ...call("current_time") } },
    { type: "observe", data: { result: reason, duration_ms: 30_000, is_error: true, ...call("ask_warehouse") } },
    { type: "observe", data: { result: { time: "2026-03-02T14:20:00+01:00" }, duration_ms: 1, is_error: false, ...call("current_time") } },
  ];
}

/** Conversations of many days. */
export async function seedList({ client, seed }: Bench): Promise<void> {
  const titles = ["Delivery note of order 1201", "Prices for next year", "Return of a broken cup", "Which tea sells best?", "Letter to a customer"];
  for (const [at, title] of titles.entries()) {
    await client.create({ id: `old-${at}`, title, agent: ["researcher", "bookkeeper", "default", "bookkeeper", "writer"][at]! });
    await seed(`old-${at}`, turn(at + 1), title, [1, 3, 5, 20, 60][at]);
  }
}

/** What is read: formulas, a wide table, a failure, and a conversation of many turns. */
export async function seedScenes({ seed }: Bench): Promise<void> {
  await seed("math", asked("How much is 1000 EUR worth after ten years at 5 %?", [], MATH), "Interest of ten years", 1);
  await seed("table", asked("Compare the offers for tea.", [], TABLE), "Offers for tea", 2);
  const sorry = "The warehouse does not answer at the moment. I try again when you write **again**.";
  await seed("failure", asked("Where is order 1207?", failure(), sorry), "Where is order 1207?", 2);
  await seed("many", Array.from({ length: 200 }, (_, number) => turn(number + 1)).flat(), "Two hundred questions", 4);
}

/** Fifty agents of one company. */
export function fiftyAgents(): string {
  const teams = ["billing", "returns", "travel", "payroll", "legal", "security", "hiring", "warehouse", "press", "pricing"];
  const tasks = [
    ["answers", "Answers questions about"],
    ["reports", "Writes the weekly report of"],
    ["triage", "Sorts by urgency what is new in"],
    ["search", "Finds documents, and quotes paragraphs, about"],
    ["drafts", "Drafts letters about"],
  ];
  const agents = teams.flatMap((team) => tasks.map(([task, what]) => ({ name: `${team}-${task}`, what: `${what} ${team}.` })));
  return agents
    .map(({ name, what }) => `[agents.${name}]\nprovider = "scripted"\nmodel = "scripted"\ndescription = "${what}"\nsamples = ["What is new today?"]\n`)
    .join("\n");
}
