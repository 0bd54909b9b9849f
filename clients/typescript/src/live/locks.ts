/** Locks, so that a client tool runs in one tab although several show the conversation. */

/** What of the browser's `navigator.locks` is needed. */
export interface Locks {
  /** Runs something while nobody else holds the name. With `ifAvailable` it never waits: it then gets `null` instead. */
  request<T>(
    name: string,
    options: { ifAvailable?: boolean; signal?: AbortSignal },
    run: (lock: unknown) => Promise<T>,
  ): Promise<T>;
}

/** Locks between the conversations of one process. Pages without TLS have no others. */
class ProcessLocks implements Locks {
  readonly #held = new Map<string, Promise<unknown>>();

  async request<T>(
    name: string,
    options: { ifAvailable?: boolean; signal?: AbortSignal },
    run: (lock: unknown) => Promise<T>,
  ): Promise<T> {
    if (this.#held.has(name) && options.ifAvailable) return run(null);
    for (let held = this.#held.get(name); held; held = this.#held.get(name)) await held.catch(() => undefined);
    options.signal?.throwIfAborted();
    const running = run(name);
    this.#held.set(name, running);
    return running.finally(() => this.#held.delete(name));
  }
}

const OF_PROCESS = new ProcessLocks();

/** The locks of the browser, else those of the process. */
export function defaultLocks(): Locks {
  return (globalThis.navigator as Navigator | undefined)?.locks ?? OF_PROCESS;
}

/** Runs something while nobody else does. `isLate`: somebody did. */
export async function alone(
  locks: Locks,
  name: string,
  signal: AbortSignal,
  run: (isLate: boolean) => Promise<void>,
): Promise<void> {
  const isFree = await locks.request(name, { ifAvailable: true }, async (lock) => {
    if (lock !== null) await run(false);
    return lock !== null;
  });
  if (!isFree) await locks.request(name, { signal }, () => run(true));
}
