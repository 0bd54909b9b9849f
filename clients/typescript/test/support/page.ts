/** A page on a server of its own, in a real Chromium, as an app that uses the client is while it is developed. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright-core";

/** Milliseconds until something that does not happen is a failure. */
const PATIENCE_MS = 20_000;

/** A page that is open, and everything that the browser complained about. */
export interface OpenPage {
  readonly page: Page;
  readonly complaints: string[];
  stop(): Promise<void>;
}

/** Opens a page of these files, by their paths, at `http://localhost:…`. */
export async function openPage(files: ReadonlyMap<string, string>): Promise<OpenPage> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const file = files.get(path);
    const type = path.endsWith(".js") ? "text/javascript" : "text/html";
    response.writeHead(file === undefined ? 204 : 200, { "content-type": `${type}; charset=utf-8` }).end(file);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await startChromium();
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => (complaints.push(`dialog: ${dialog.message()}`), void dialog.dismiss()));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`${message.text()} ${message.location().url}`);
  });
  await page.goto(`http://localhost:${(server.address() as AddressInfo).port}/`);
  const stop = async () => {
    await browser.close();
    server.closeAllConnections();
    server.close();
  };
  return { page, complaints, stop };
}

function startChromium(): Promise<Browser> {
  const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];
  return chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args });
}
