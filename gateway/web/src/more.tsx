/** A button that reads more, again and again. */

import type { ComponentChildren } from "preact";

interface MoreProps {
  /** It reads now, and does nothing else. It keeps the focus, which a button that is disabled would lose. */
  isBusy: boolean;
  onMore: () => void;
  class?: string;
  /** Whoever presses it wants to read on from there, and not at the end of the timeline. */
  opens?: boolean;
  children: ComponentChildren;
}

export function More({ isBusy, onMore, class: name = "", opens = false, children }: MoreProps) {
  const press = () => {
    if (!isBusy) onMore();
  };
  return (
    <button type="button" class={name === "" ? "quiet" : `quiet ${name}`} data-opens={opens || undefined} aria-disabled={isBusy} onClick={press}>
      {children}
    </button>
  );
}
