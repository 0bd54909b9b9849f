/** The gateway's time on this device, and clocks that run while somebody looks at the page. */

import { useEffect, useState } from "preact/hooks";

/** Milliseconds between two looks at a clock. */
const TICK_MS = 1000;

/** Milliseconds for which an HTTP date stands: the header has whole seconds. */
const DATE_MS = 1000;

/** By how many milliseconds the gateway's clock is ahead of this device's: at least, and at most. */
let [least, most] = [-Infinity, Infinity];

/** Learns from an answer how far the clocks are apart. `sent` and `received` are times of this device. */
function hear(date: string | null, sent: number, received: number): void {
  const at = Date.parse(date ?? "");
  if (Number.isNaN(at)) return;
  const [low, high] = [at - received, at + DATE_MS - sent];
  // A clock was set while the page was open.
  const isNew = low > most || high < least;
  [least, most] = isNew ? [low, high] : [Math.max(least, low), Math.min(most, high)];
}

/** A `fetch` that learns the gateway's time from each answer. */
export const timedFetch: typeof fetch = async (input, init) => {
  const sent = Date.now();
  const response = await fetch(input, init);
  hear(response.headers.get("date"), sent, Date.now());
  return response;
};

/** The gateway's time: events are dated with it. A device whose clock may be right is believed. */
export function serverNow(): number {
  const ahead = least > 0 ? least : Math.min(most, 0);
  return Date.now() + ahead;
}

/** The gateway's time, again and again while something runs and the tab is in sight. */
export function useNow(isRunning: boolean, everyMs = TICK_MS): number {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    if (!isRunning) return undefined;
    let timer: ReturnType<typeof setInterval> | undefined;
    const look = () => {
      clearInterval(timer);
      if (document.visibilityState !== "visible") return;
      setNow(serverNow());
      timer = setInterval(() => setNow(serverNow()), everyMs);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [isRunning, everyMs]);
  return now;
}

/** How long something has been running: it began at `since`, in the gateway's time. */
export function Clock({ since }: { since: number }) {
  const now = useNow(true);
  return <span class="clock" role="timer">{clock(now - since)}</span>;
}

/** Milliseconds as a clock shows them: days and hours, or `1:05`. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  if (days > 0) return `${days} d ${hours} h`;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}
