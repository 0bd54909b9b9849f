/** A conversation as a file: for people as Markdown, for programs as JSON. */

import { type api, type Citation, type Conversation, eventData, type Item, reduce } from "everturn-client";
import { saveAs } from "./save";
import { pretty } from "./shown";
import { texts } from "./texts";

/** Events of one page. */
const PAGE = 1000;

/** The most events of a file: a browser holds all of them in memory. */
const MOST = 100_000;

export type Format = "markdown" | "json";

/** Reads a whole conversation and saves it. */
export async function exportConversation(chat: Conversation, format: Format): Promise<void> {
  const conversation = await chat.show();
  const events = await allEvents(chat);
  if (format === "json") return saveAs(`${chat.id}.json`, JSON.stringify({ conversation, events }, null, 2), "application/json");
  const { items } = reduce(events.map((event) => ({ data: eventData(event) })), { maxEvents: Infinity, maxChars: Infinity });
  saveAs(`${chat.id}.md`, markdownOf(conversation.title || texts.untitled, items), "text/markdown");
}

async function allEvents(chat: Conversation): Promise<api.Event[]> {
  const events: api.Event[] = [];
  for (;;) {
    const fromSequence = (events.at(-1)?.sequence_number ?? 0) + 1;
    const page = await chat.events({ fromSequence, limit: PAGE });
    events.push(...page.events);
    if (page.events.length < PAGE) return events;
    if (events.length >= MOST) throw new Error(texts.exportTooLong(MOST));
  }
}

function markdownOf(title: string, items: readonly Item[]): string {
  return [`# ${title.replace(/\s+/g, " ")}`, ...items.flatMap(partOf)].join("\n\n") + "\n";
}

/** What a person reads of an item. Notes and plans are in the JSON. */
function partOf(item: Item): string[] {
  switch (item.type) {
    case "user_message":
      return item.retryOf === undefined ? [`## ${texts.you}`, item.content] : [`*${texts.retried}*`];
    case "assistant_message":
      return [`## ${texts.answers}`, item.content, ...sources(item.citations)];
    case "thought":
      return [item.reasoning === undefined ? "" : quoted(item.reasoning), item.content, ...sources(item.citations)].filter((part) => part.trim() !== "");
    case "tool_call":
      return [`### ${item.title === undefined ? "" : `${item.title} · `}${item.toolName} · ${texts[item.state]}`, fenced(pretty(item.toolInput)), ...(item.toolOutput === undefined ? [] : [fenced(pretty(item.toolOutput))])];
    case "end":
      return item.outcome === "complete" ? [] : [`*${item.outcome === "error" ? `${texts.error}: ${item.message ?? item.code ?? ""}` : texts.cancelled}*`];
    default:
      return [];
  }
}

/** The sources of a text, as a numbered list. */
function sources(citations: readonly Citation[] = []): string[] {
  const line = ({ url, title }: Citation, at: number) => `${at + 1}. ${[title, url && `<${url}>`].filter(Boolean).join(" ")}`;
  return citations.length === 0 ? [] : [citations.map(line).join("\n")];
}

function quoted(text: string): string {
  return text.split("\n").map((line) => `> ${line}`).join("\n");
}

/** A block of code that nothing in the text ends. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}
