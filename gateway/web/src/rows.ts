/** The rows of a timeline: items in their order, calls together that ran in parallel, sub-agents under their calls. */

import type { Item, OpenText, ToolCall } from "everturn-client";

/** What is shown as one: an item, or the calls of one step. */
export interface Row {
  /** The id of its first item, made unique. */
  readonly key: string;
  /** One item that is no call, or one call or more. */
  readonly items: readonly Item[];
}

/** All rows of a conversation. */
export interface Rows {
  /** Those of the turns' own agents. */
  readonly own: readonly Row[];
  /** Those of each sub-agent whose call is known, by its agent execution. They are shown in that call. */
  readonly nested: ReadonlyMap<string, readonly Row[]>;
}

const NONE: readonly Row[] = [];

/** Makes the rows of items. What a sub-agent did is shown by itself when its call is not known, as it came before all items. */
export function rowsOf(items: readonly Item[]): Rows {
  const nested = new Map<string, Item[]>();
  for (const item of items) {
    if (item.type === "tool_call" && item.subAgent) nested.set(item.subAgent.agentExecutionId, []);
  }
  const own: Item[] = [];
  for (const item of items) (nested.get(item.agentExecutionId ?? "") ?? own).push(item);
  return { own: grouped(own), nested: new Map(Array.from(nested, ([agent, found]) => [agent, grouped(found)])) };
}

/** The rows of a sub-agent. */
export function rowsWithin(rows: Rows, agent: string): readonly Row[] {
  return rows.nested.get(agent) ?? NONE;
}

/** The texts that are being written below the rows of a sub-agent, or below those of the turns' own agents. */
export function textsBelow(rows: Rows, texts: readonly OpenText[], agent?: string): OpenText[] {
  const placeOf = ({ agentExecutionId }: OpenText) => (rows.nested.has(agentExecutionId) ? agentExecutionId : undefined);
  return texts.filter((text) => placeOf(text) === agent);
}

/** True when two rows show the same. Items that have not changed are the same objects. */
export function isSameRow(one: Row, other: Row): boolean {
  const { items } = other;
  return one.items.length === items.length && one.items.every((item, at) => item === items[at]);
}

/** The calls of a row; undefined when it is something else. */
export function callsOf(row: Row): readonly ToolCall[] | undefined {
  return row.items[0]?.type === "tool_call" ? (row.items as readonly ToolCall[]) : undefined;
}

function grouped(items: readonly Item[]): Row[] {
  const found: { key: string; items: Item[] }[] = [];
  const keys = new Set<string>();
  for (const item of items) {
    const last = found.at(-1);
    const first = last?.items[0];
    const areCalls = item.type === "tool_call" && first?.type === "tool_call";
    if (last && areCalls && first.turn === item.turn && first.step === item.step) {
      last.items.push(item);
      continue;
    }
    const key = keys.has(item.id) ? `${item.id}/${found.length}` : item.id;
    keys.add(key);
    found.push({ key, items: [item] });
  }
  return found;
}
