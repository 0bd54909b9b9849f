/** What somebody opened, for as long as the conversation is shown: rows out of sight leave the document, and come back. */

import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";

/** Opened things that are remembered; past it, the one that was touched first is as it was at first. */
const MOST = 1000;

/** What is remembered for one conversation, by name. */
export const Kept = createContext(new Map<string, unknown>());

/** A state like that of `useState`, under a name that is its own in the conversation. */
export function useKept<T>(name: string, initial: T): [T, (value: T) => void] {
  const kept = useContext(Kept);
  const [value, setValue] = useState(() => (kept.has(name) ? (kept.get(name) as T) : initial));
  const set = (now: T) => {
    kept.set(name, now);
    const oldest = kept.keys().next().value;
    if (kept.size > MOST && oldest !== undefined) kept.delete(oldest);
    setValue(now);
  };
  return [value, set];
}
