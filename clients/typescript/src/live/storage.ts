/** What must survive a reload of the page: messages that were not confirmed, and client tools that had begun. */

/** A store of texts. `localStorage` and `sessionStorage` are such stores. */
export interface TextStorage {
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
  removeItem(key: string): void;
  /** The key at a place, in any order that stays while nothing is set or removed. */
  key(index: number): string | null;
  readonly length: number;
}

/** Makes a store that is gone with the process. */
export function memoryStorage(): TextStorage {
  const texts = new Map<string, string>();
  return {
    getItem: (key) => texts.get(key) ?? null,
    setItem: (key, text) => void texts.set(key, text),
    removeItem: (key) => void texts.delete(key),
    key: (index) => [...texts.keys()][index] ?? null,
    get length() {
      return texts.size;
    },
  };
}

/** The keys that begin so. */
export function keysOf(storage: TextStorage, prefix: string): string[] {
  const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index));
  return keys.filter((key): key is string => key !== null && key.startsWith(prefix));
}

/** Stores a text. A store that is full or forbidden only means that the text does not survive a reload. */
export function keep(storage: TextStorage, key: string, text: string): void {
  try {
    storage.setItem(key, text);
  } catch {
    // Quota, or a browser in private mode.
  }
}

/** Reads JSON that was stored; undefined for what is not there or was written by somebody else. */
export function stored(storage: TextStorage, key: string): unknown {
  try {
    return JSON.parse(storage.getItem(key) ?? "") as unknown;
  } catch {
    return undefined;
  }
}
