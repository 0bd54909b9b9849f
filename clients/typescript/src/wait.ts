/** Waiting that can be given up. */

/** Waits. Rejects with the signal's reason as soon as it is aborted. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}

/** A signal that is aborted when one of these is. Call `release` when it is no longer needed. */
export function anySignal(...signals: (AbortSignal | undefined)[]): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const given = signals.filter((signal) => signal !== undefined);
  const abort = (event: { target: unknown }) => controller.abort((event.target as AbortSignal).reason);
  for (const signal of given) {
    if (signal.aborted) controller.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
  }
  const release = () => given.forEach((signal) => signal.removeEventListener("abort", abort));
  return { signal: controller.signal, release };
}
