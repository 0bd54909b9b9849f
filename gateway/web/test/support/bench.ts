/** One gateway with its model and a browser, for the tests of one file. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { Everturn } from "everturn-client";
import { type RealGateway, startGateway } from "../../../../clients/typescript/test/support/everturn.js";
import { startModel } from "./model";
import { openTab, startChromium, type Tab } from "./page";
import { type Seed, seed } from "./seed";

export interface Bench {
  readonly model: Awaited<ReturnType<typeof startModel>>;
  readonly gateway: RealGateway;
  readonly browser: Browser;
  readonly client: Everturn;
  /** Where the gateway has its data. */
  readonly folder: string;
  open(path?: string, options?: BrowserContextOptions): Promise<Tab>;
  /** Makes a conversation of these events. Its title is its id, unless there is another one. */
  seed(id: string, events: readonly Seed[], title?: string, daysAgo?: number): Promise<void>;
  /** Closes the tabs of a test; fails when the browser complained in one. */
  closeTabs(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts `everturn dev` with a scripted model, the provider `scripted`, and what `config` adds. */
export async function startBench(config: string): Promise<Bench> {
  const folder = mkdtempSync(`${tmpdir()}/everturn-page-`);
  const model = await startModel();
  const provider = `[providers.scripted]\nkind = "openai"\nbase_url = "${model.url}"\n`;
  const [gateway, browser] = await Promise.all([startGateway(folder, provider + config), startChromium()]);
  const tabs: Tab[] = [];
  const client = new Everturn({ url: gateway.url });
  return {
    model,
    gateway,
    browser,
    client,
    folder,
    open: async (path = "/", options = {}) => {
      const tab = await openTab(browser, new URL(path, gateway.url).href, options);
      tabs.push(tab);
      return tab;
    },
    seed: async (id, events, title = id, daysAgo = 0) => {
      await client.create({ id, title });
      seed(folder, id, events, daysAgo);
    },
    closeTabs: async () => {
      const opened = tabs.splice(0);
      for (const { page } of opened) await page.context().close();
      assert.deepEqual(opened.flatMap((tab) => tab.complaints), [], "the browser complained");
    },
    stop: async () => {
      await browser.close();
      gateway.stop();
      model.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
