/** Notes: what happened beside the conversation, as a quiet sentence with the event's own fields behind it. */

import type { JsonObject, Note } from "everturn-client";
import { useKept } from "./kept";
import { Value, visible } from "./shown";
import { texts } from "./texts";

export function NoteLine({ note }: { note: Note }) {
  const [isOpen, setOpen] = useKept(`note ${note.id}`, false);
  return (
    <details class="item note" data-item={note.id} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{visible(sentence(note))}</summary>
      {isOpen && <Value of={note.data} />}
    </details>
  );
}

function sentence({ event, data }: Note): string {
  const of = texts.notes;
  switch (event) {
    case "context_compacted":
      return text(data, "summary") === "" ? of.leftOut(count(data, "messages")) : of.compacted(count(data, "messages"));
    case "model_fallback":
      return of.fallback(text(data, "from"), text(data, "to"), text(data, "code"));
    case "outcome_probed":
      return of.probed(text(data, "tool_name"), text(data, "outcome"));
    case "outcome_settled":
      return of.settled(text(data, "tool_name"), text(data, "outcome"), text(data, "settled_by"));
    case "skill_matched":
      return of.skillMatched(text(data, "skill_name"));
    case "skill_execution_start":
      return of.skillStarts(text(data, "skill_name"));
    case "skill_execution_complete":
      return data["is_cut"] === true ? of.skillInPart(text(data, "skill_name")) : of.skillIsRead(text(data, "skill_name"));
    case "pattern_match":
      return of.pattern;
    default:
      return event.replaceAll("_", " ");
  }
}

function text(data: JsonObject, name: string): string {
  const value = data[name];
  return typeof value === "string" ? value : "";
}

function count(data: JsonObject, name: string): number {
  const value = data[name];
  return typeof value === "number" ? value : 0;
}
