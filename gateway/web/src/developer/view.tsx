/** The developer's view of a conversation: where the time of its turns went, what is recorded of them, and the raw events. */

import type { Conversation, Update } from "everturn-client";
import { memo } from "preact/compat";
import { useEffect, useRef } from "preact/hooks";
import { addressOf, type DeveloperPlace } from "../route";
import { texts } from "../texts";
import { Events } from "./events";
import { Turns } from "./turns";

/** The id of the link that opens the view. It has the focus again when the view is closed. */
const LINK = "developer-link";

/** Opens the view, and closes it. */
export function DeveloperLink({ id, isOpen }: { id: string; isOpen: boolean }) {
  const target = isOpen ? addressOf(id) : addressOf(id, { part: "turns" });
  return <a id={LINK} class="new" href={target} aria-expanded={isOpen}>{texts.developer.open}</a>;
}

interface ViewProps {
  chat: Conversation;
  update: Update;
  place: DeveloperPlace;
}

/** It is drawn again when the conversation changes, and not with each change of the list. */
export const DeveloperView = memo(function DeveloperView({ chat, update, place }: ViewProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus();
    // The link is there again when this is gone.
    return () => void setTimeout(() => document.getElementById(LINK)?.focus());
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    // In a field, Escape belongs to the field.
    const isInField = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "Escape" && !isInField) location.hash = addressOf(chat.id);
  };
  const tab = (part: DeveloperPlace["part"]) => (
    <a class="tab" href={addressOf(chat.id, { part })} aria-current={place.part === part ? "page" : undefined}>
      {texts.developer[part]}
    </a>
  );
  return (
    <section class="developer" aria-labelledby="developer-heading" onKeyDown={onKeyDown}>
      <header class="bar">
        <h2 id="developer-heading" ref={heading} tabIndex={-1}>{texts.developer.open}</h2>
        <nav aria-label={texts.developer.open}>{tab("turns")}{tab("events")}</nav>
        <a class="new" href={addressOf(chat.id)}>{texts.developer.close}</a>
      </header>
      {place.part === "turns" ? (
        <Turns chat={chat} update={update} chosen={place.turn} />
      ) : (
        <Events chat={chat} cursor={update.state.cursor} />
      )}
    </section>
  );
});
