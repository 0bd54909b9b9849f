/** Which conversation the address names: `#/c/ID`. Reload, back and forward work by it. */

import { useEffect, useState } from "preact/hooks";

/** The address of a conversation, within the page. */
export function addressOf(id: string): string {
  return `#/c/${encodeURIComponent(id)}`;
}

/** The id in the address; undefined where a new conversation begins. */
export function useRoute(): string | undefined {
  const [id, setId] = useState(idOf);
  useEffect(() => {
    const follow = () => setId(idOf());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return id;
}

function idOf(): string | undefined {
  const found = /^#\/c\/(.+)$/.exec(location.hash)?.[1];
  try {
    return found === undefined ? undefined : decodeURIComponent(found);
  } catch {
    return undefined;
  }
}
