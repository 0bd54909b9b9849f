/** Until when a person can answer. */

import { clock, useNow } from "./clock";
import { texts } from "./texts";

/** The time that is left, as it runs. */
export function Deadline({ at }: { at: number }) {
  const now = useNow(true);
  return <p class="deadline" role="timer">{texts.leftTime(clock(at - now))}</p>;
}
