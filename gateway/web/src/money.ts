/** Costs as a person reads them. */

import type { Item } from "everturn-client";

/** A cost in US dollars, like `$1.20`, `$0.031` and `< $0.001`. */
export function money(usd: number): string {
  if (!Number.isFinite(usd)) return "";
  if (usd === 0) return "$0";
  if (usd < 0.001) return "< $0.001";
  return `$${usd.toFixed(usd < 0.1 ? 3 : 2)}`;
}

/** What the turns of these items cost; undefined when no turn has a price. A turn's cost has the costs of sub-agents in it. */
export function costOf(items: readonly Item[]): number | undefined {
  let sum: number | undefined;
  for (const item of items) {
    if (item.type !== "end" || !Number.isFinite(Number(item.costUsd ?? NaN)) || item.agentExecutionId !== undefined) continue;
    sum = (sum ?? 0) + Number(item.costUsd);
  }
  return sum;
}
