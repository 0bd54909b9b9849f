/** An answer of a person that is sent once: the buttons rest while it is on its way, and come back when it fails. */

import { useState } from "preact/hooks";

export function useSending() {
  const [error, setError] = useState<unknown>();
  const [isSent, setSent] = useState(false);
  /** Sends the answer. `taken` may allow another one by returning true. */
  const send = <T>(action: () => Promise<T>, taken: (answer: T) => boolean = () => false): void => {
    setSent(true);
    setError(undefined);
    action().then((answer) => taken(answer) && setSent(false), (caught: unknown) => {
      setError(caught);
      setSent(false);
    });
  };
  /** Forgets a failure. */
  const forget = (): void => setError(undefined);
  return { error, isSent, send, forget };
}
