/** The tab's end of the hub: the list of conversations, and whether this tab may hold the stream of its conversation. */

import { type api, EverturnError } from "everturn-client";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Hub } from "./shared/hub";
import { ASLEEP_AFTER_MS, REPORT_MS, type Report, type Told } from "./shared/protocol";

/** The hash of the worker's file, which `build.mjs` puts here: tabs of two releases have two workers. */
declare const WORKER_HASH: string;

/** What a tab knows from the hub. */
export interface Shared {
  /** The newest conversations; undefined until they are known. */
  readonly rows: readonly api.ListedConversation[] | undefined;
  readonly error: unknown;
  readonly isLive: boolean;
  /** Tells the hub about the conversation of this tab. */
  readonly report: (about: Pick<Report, "hasConversation" | "isBehind">) => void;
}

/** Follows the list with all other tabs of the same caller. */
export function useHub(session: api.Session, onRefused: () => void): Shared {
  const [rows, setRows] = useState<readonly api.ListedConversation[]>();
  const [error, setError] = useState<unknown>();
  const [isLive, setLive] = useState(false);
  const wire = useRef<Wire | undefined>(undefined);
  const hear = (told: Told) => {
    if (told.type === "rows") setRows(told.rows);
    if (told.type === "rows") setError(undefined);
    if (told.type === "failed") setError(failure(told));
    if (told.type === "live") setLive(told.isLive);
    if (told.type === "refused") onRefused();
  };
  wire.current ??= new Wire(nameOf(session));
  wire.current.onTold = hear;
  useEffect(() => wire.current!.open(), []);
  const report = useMemo(() => (about: Pick<Report, "hasConversation" | "isBehind">) => wire.current!.report(about), []);
  return { rows, error, isLive, report };
}

/** Callers with other conversations have other workers. */
function nameOf({ tenant, owner, credential }: api.Session): string {
  return JSON.stringify([WORKER_HASH, tenant, owner, credential]);
}

function failure({ failure: { code, message, docs } }: Told & { type: "failed" }): EverturnError {
  return new EverturnError(code, message, { docs });
}

class Wire {
  onTold: (told: Told) => void = () => undefined;
  readonly #name: string;
  #port: MessagePort | undefined;
  #about: Pick<Report, "hasConversation" | "isBehind"> = { hasConversation: false, isBehind: false };
  #isAsleep = document.visibilityState === "hidden";
  #falling: ReturnType<typeof setTimeout> | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  /** Connects. Returns what closes the wire. */
  open(): () => void {
    this.#connect(worker(this.#name, () => this.#connect(ownHub())) ?? ownHub());
    const reports = setInterval(() => !this.#isAsleep && this.#send(false), REPORT_MS);
    const stop = new AbortController();
    const on = (target: EventTarget, names: string[], action: () => void) =>
      names.forEach((name) => target.addEventListener(name, action, { signal: stop.signal, capture: true, passive: true }));
    on(document, ["visibilitychange"], () => this.#look());
    on(window, ["focus", "pointerdown", "keydown"], () => this.#comeToFront());
    on(window, ["pagehide"], () => this.#port?.postMessage(this.#now("closed")));
    on(window, ["pageshow"], () => this.#look());
    return () => {
      stop.abort();
      clearInterval(reports);
      clearTimeout(this.#falling);
      this.#port?.postMessage(this.#now("closed"));
      this.#port?.close();
    };
  }

  report(about: Pick<Report, "hasConversation" | "isBehind">): void {
    const { hasConversation, isBehind } = this.#about;
    if (hasConversation === about.hasConversation && isBehind === about.isBehind) return;
    this.#about = about;
    this.#send(false);
  }

  #connect(port: MessagePort): void {
    this.#port = port;
    port.onmessage = ({ data }: MessageEvent<Told>) => this.onTold(data);
    this.#send(true);
  }

  /** A tab that is hidden falls asleep after a while. */
  #look(): void {
    clearTimeout(this.#falling);
    const isShown = document.visibilityState === "visible";
    if (isShown) {
      this.#isAsleep = false;
    } else if (!this.#isAsleep) {
      this.#falling = setTimeout(() => {
        this.#isAsleep = true;
        this.#send(false);
      }, ASLEEP_AFTER_MS);
    }
    this.#send(isShown);
  }

  /** Somebody uses this tab. */
  #comeToFront(): void {
    if (!this.#isAsleep) this.#send(true);
  }

  #send(comesToFront: boolean): void {
    const sight = this.#isAsleep ? "asleep" : document.visibilityState === "visible" ? "shown" : "hidden";
    this.#port?.postMessage({ ...this.#now(sight), comesToFront });
  }

  #now(sight: Report["sight"]): Report {
    return { ...this.#about, sight, comesToFront: false };
  }
}

/** The hub of all tabs; undefined in a browser that cannot share. `onError`: its file did not load. */
function worker(name: string, onError: () => void): MessagePort | undefined {
  try {
    const shared = new SharedWorker("page/worker.js", { name, type: "module" });
    shared.onerror = onError;
    return shared.port;
  } catch {
    return undefined;
  }
}

function ownHub(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  new Hub(new URL(".", location.href).href).add(port1);
  return port2;
}
