/** Whether the page shows what the API says. */

import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { Everturn, type Json } from "everturn-client";
import { openedId } from "./page";

/** What an item shows, as far as the API's timeline has it, too. */
interface Shown {
  readonly id: string;
  readonly text: string;
  /** Of a call: what it was given, and what came of it. */
  readonly input?: string;
  readonly output?: string;
}

/** Characters of a value that are shown at first. */
const FIRST = 20_000;

/**
 * What the page shows: messages, answers, thoughts and calls with their inputs and outputs, in their order. A timeline that is
 * not all there is scrolled, and what is folded is opened, read and folded again.
 */
function shown(page: Page): Promise<Shown[]> {
  return page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    const box = document.querySelector(".timeline")!;
    const rows = new Map<number, Shown[]>();
    const valueOf = (pre: Element) => [...pre.querySelectorAll(".plain")].map((part) => part.textContent).join("");
    /** What a call shows of its input and its result when its line is opened; a call that waits shows its input unfolded. */
    const parts = async (call: Element): Promise<Pick<Shown, "input" | "output">> => {
      const waiting = call.querySelector(":scope > .approval pre");
      if (waiting) return { input: valueOf(waiting) };
      const details = call.querySelector<HTMLDetailsElement>(":scope > details.call")!;
      const wasOpen = details.open;
      details.open = true;
      while (!details.querySelector("pre") && details.isConnected) await frame();
      const [input, output] = ["input", "output"].map((name) => details.querySelector(`[data-part=${name}]`));
      const found = { ...(input && { input: valueOf(input) }), ...(output && { output: valueOf(output) }) };
      details.open = wasOpen;
      while (!wasOpen && details.querySelector("pre") && details.isConnected) await frame();
      return found;
    };
    const read = async (item: Element): Promise<Shown> => {
      const id = item.getAttribute("data-item") ?? "";
      const summary = item.matches(".thought") ? (item.querySelector("summary")?.textContent ?? "") : "";
      if (!item.matches(".tool")) return { id, text: (item.textContent ?? "").slice(summary.length) };
      const text = item.querySelector("strong")?.textContent ?? "";
      return { id, text, ...(await parts(item)) };
    };
    const take = async () => {
      for (const row of box.querySelectorAll("article")) {
        const place = Number(row.getAttribute("aria-posinset") ?? Infinity);
        if (row.parentElement?.closest("article") || rows.has(place)) continue;
        const inner = [...row.querySelectorAll(".user_message, .assistant_message, .thought, .said, .tool")];
        const found: Shown[] = [];
        for (const item of row.matches(".item") ? [row] : inner) found.push(await read(item));
        // One that has left the document meanwhile is read when it is there again.
        if (row.isConnected) rows.set(place, found);
      }
    };
    await take();
    const before = box.scrollTop;
    if (box.querySelector("[role=feed] > div")) {
      for (box.scrollTop = 0; ; box.scrollTop += box.clientHeight / 2) {
        await frame();
        await take();
        if (box.scrollHeight - box.scrollTop - box.clientHeight < 1) break;
      }
      box.scrollTop = before;
    }
    return [...rows].sort(([one], [other]) => one - other).flatMap(([, found]) => found);
  });
}

/** Fails unless the page shows what the API says: nothing doubled, nothing lost, in the same order, with the same values. */
export async function assertSameAsApi(page: Page, url: string): Promise<void> {
  const { timeline } = await new Everturn({ url }).conversation(await openedId(page)).timeline({ limit: 500 });
  const results = new Map(timeline.filter(({ type }) => type === "tool_result").map((item) => [item.executionId, item.toolOutput]));
  const expected = timeline.flatMap((item): Shown[] => {
    if (item.type === "tool_call") {
      const output = results.has(item.executionId) ? { output: asShown(results.get(item.executionId) as Json) } : {};
      return [{ id: item.id, text: item.title ?? item.toolName ?? "", input: asShown(item.toolInput as Json), ...output }];
    }
    if (item.type === "thought") {
      const parts = [item.reasoning ?? "", item.content ?? ""].filter((text) => text.trim() !== "");
      return parts.map((text) => ({ id: item.id, text }));
    }
    if (!["user_message", "assistant_message"].includes(item.type)) return [];
    // A retry has no text, and the page shows a hint.
    if ("retryOf" in item) return [];
    return [{ id: item.id, text: "content" in item ? String(item.content) : "" }];
  });
  assert.deepEqual((await shown(page)).map(plain), expected.map(plain));
}

/** An item whose input has no line breaks: a call that a person was asked about shows its input as the store has it. */
function plain(item: Shown): Shown {
  if (item.input === undefined) return item;
  try {
    return { ...item, input: JSON.stringify(JSON.parse(item.input)) };
  } catch {
    return item;
  }
}

/** A value as the page shows it: of a long one the beginning. */
function asShown(value: Json): string {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return text.length > FIRST ? `${text.slice(0, FIRST)}…` : text;
}
