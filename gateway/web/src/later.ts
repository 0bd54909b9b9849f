/** Work that nobody has to wait for. */

const waiting: (() => void)[] = [];

/**
 * Runs one action after the other, each in a task of its own, so that none of them makes the page wait. Returns what takes it
 * back.
 */
export function later(action: () => void): () => void {
  if (waiting.push(action) === 1) setTimeout(runNext);
  return () => {
    const at = waiting.indexOf(action);
    // The first one is waited for: its place stays, and it does nothing.
    if (at >= 0) waiting[at] = () => undefined;
  };
}

function runNext(): void {
  waiting[0]?.();
  waiting.shift();
  if (waiting.length > 0) setTimeout(runNext);
}
