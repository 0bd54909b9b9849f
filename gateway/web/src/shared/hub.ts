/**
 * What the tabs of a browser share: the stream of the list, and the number of connections. The hub is in a `SharedWorker`; in a
 * browser without one, each tab has a hub of its own.
 */

import { type api, ApiError, Everturn, EverturnError } from "everturn-client";
import { type Report, REPORT_MS, type Told } from "./protocol";
import { liveTabs, type Tab, VISIT_MS } from "./slots";

/** A tab that was silent for so long has crashed: a tab that is awake reports more often. */
const LOST_MS = 5 * REPORT_MS;

/** A tab at its end of the wire. */
interface Wired extends Tab {
  readonly port: MessagePort;
  heardAt: number;
  /** What the tab was told; undefined before that. */
  isLive: boolean | undefined;
}

export class Hub {
  readonly #everturn: Everturn;
  readonly #tabs = new Map<MessagePort, Wired>();
  #visitor: Wired | undefined;
  #order = 0;
  #rows: readonly api.ListedConversation[] | undefined;
  /** Ends the stream of the list; undefined while there is none. */
  #stop: AbortController | undefined;
  /** Why the list cannot be followed. A tab that comes tries again. */
  #hasFailed = false;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** `url` is where the gateway is. */
  constructor(url: string) {
    this.#everturn = new Everturn({ url, limits: { connections: Number.MAX_SAFE_INTEGER } });
  }

  /** Serves a tab. */
  add(port: MessagePort): void {
    port.onmessage = ({ data }: MessageEvent<Report>) => this.#hear(port, data);
  }

  #hear(port: MessagePort, report: Report): void {
    const known = this.#tabs.get(port);
    const wasAwake = known !== undefined && isAwake(known);
    if (report.sight === "closed") {
      this.#tabs.delete(port);
    } else {
      const order = report.comesToFront || !known ? ++this.#order : known.order;
      const tab = Object.assign(known ?? { port, isLive: undefined, visitedAt: 0 }, report, { order, heardAt: Date.now() });
      this.#tabs.set(port, tab);
      if (!wasAwake && isAwake(tab)) this.#welcome(tab);
    }
    this.#settle();
  }

  #welcome(tab: Wired): void {
    if (this.#hasFailed) this.#end();
    if (this.#rows) tell(tab, { type: "rows", rows: this.#rows });
    this.#timer ??= setInterval(() => this.#settle(), VISIT_MS);
  }

  #settle(): void {
    const now = Date.now();
    for (const tab of this.#tabs.values()) {
      if (isAwake(tab) && now - tab.heardAt > LOST_MS) this.#tabs.delete(tab.port);
    }
    const tabs = [...this.#tabs.values()];
    const { live, visitor } = liveTabs(tabs, this.#visitor, now);
    this.#visitor = visitor;
    // Streams are given back before others are opened.
    for (const isLive of [false, true]) {
      for (const tab of tabs) {
        if (live.has(tab) !== isLive || tab.isLive === isLive) continue;
        tab.isLive = isLive;
        tell(tab, { type: "live", isLive });
      }
    }
    const isNeeded = tabs.some(isAwake);
    if (isNeeded && !this.#stop) void this.#follow();
    if (!isNeeded) this.#end();
  }

  #end(): void {
    this.#stop?.abort();
    this.#stop = undefined;
    this.#hasFailed = false;
    if (this.#tabs.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #follow(): Promise<void> {
    const stop = new AbortController();
    this.#stop = stop;
    try {
      for await (const rows of this.#everturn.followConversations({ signal: stop.signal, waitingFor: "approval" })) {
        this.#rows = rows;
        this.#tellAll({ type: "rows", rows });
      }
      this.#refused(); // the session has ended
    } catch (error) {
      if (stop.signal.aborted) return;
      if (error instanceof ApiError && error.status === 401) this.#refused();
      else this.#failed(error);
    }
  }

  /** The list is followed again when a tab comes: after a new sign-in, or when it is loaded again. */
  #refused(): void {
    this.#rows = undefined;
    this.#tellAll({ type: "refused" });
    this.#tabs.clear();
    this.#end();
  }

  #failed(error: unknown): void {
    this.#hasFailed = true;
    const { code = "unreachable", docs } = error instanceof EverturnError ? error : {};
    this.#tellAll({ type: "failed", failure: { code, docs, message: error instanceof Error ? error.message : String(error) } });
  }

  #tellAll(told: Told): void {
    for (const tab of this.#tabs.values()) if (isAwake(tab)) tell(tab, told);
  }
}

function isAwake({ sight }: Report): boolean {
  return sight === "shown" || sight === "hidden";
}

function tell({ port }: Wired, told: Told): void {
  port.postMessage(told);
}
