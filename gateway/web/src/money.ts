/** Costs as a person reads them. */

/** A cost in US dollars, like `$1.20`, `$0.031` and `< $0.001`. */
export function money(usd: number): string {
  if (!Number.isFinite(usd)) return "";
  if (usd === 0) return "$0";
  if (usd < 0.001) return "< $0.001";
  return `$${usd.toFixed(usd < 0.1 ? 3 : 2)}`;
}

/** The mark before numbers that Everturn has estimated, because a provider counted no tokens. */
export function aboutMark(usage: unknown): string {
  const isEstimated = typeof usage === "object" && usage !== null && (usage as { estimated?: unknown }).estimated === true;
  return isEstimated ? "≈ " : "";
}
