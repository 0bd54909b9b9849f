/** Groups of the list, by the day of the last event. */

import { language, texts } from "./texts";

const DAY_MS = 86_400_000;

/** Something that changed at a time. */
interface Dated {
  readonly updated_at: string;
}

/** What changed in the same span of time. */
export interface Group<T> {
  readonly name: string;
  readonly rows: readonly T[];
}

/** Divides rows into groups. The rows stay in their order, the newest first. */
export function groupsOf<T extends Dated>(rows: readonly T[], now = new Date()): Group<T>[] {
  const groups: { name: string; rows: T[] }[] = [];
  for (const row of rows) {
    const name = spanOf(new Date(row.updated_at), now);
    const last = groups.at(-1);
    if (last?.name === name) last.rows.push(row);
    else groups.push({ name, rows: [row] });
  }
  return groups;
}

/** The day and the minute. */
export function dateOf({ updated_at: time }: Dated): string {
  return new Date(time).toLocaleString(language, { dateStyle: "medium", timeStyle: "short" });
}

function spanOf(time: Date, now: Date): string {
  // Rounding takes away the hour by which a day may be longer or shorter.
  const days = Math.round((midnight(now) - midnight(time)) / DAY_MS);
  if (days <= 0) return texts.days.today;
  if (days === 1) return texts.days.yesterday;
  if (days <= 7) return texts.days.week;
  return days <= 30 ? texts.days.month : texts.days.older;
}

function midnight(time: Date): number {
  return new Date(time.getFullYear(), time.getMonth(), time.getDate()).getTime();
}
