/**
 * `examples/react-chat` in a real Chromium with real React, on an origin of its own, against a real gateway (EVERTURN_BIN,
 * EVERTURN_TEMPORAL_BIN; `make clients` sets both), from the blocks of docs/start/react-chat.md alone.
 */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { type RealGateway, startGateway } from "./support/everturn.js";
import { type OpenPage, openPage } from "./support/page.js";
import { ROOT } from "./support/transcripts.js";

const PACKAGE = `${ROOT}clients/typescript`;
const EXAMPLE = `${ROOT}examples/react-chat`;
const PAGE = readFileSync(`${ROOT}docs/start/react-chat.md`, "utf8");
const SOURCE = blockOf("tsx");
/** The address that the example names. */
const ADDRESS = "http://127.0.0.1:8080";
const skip = process.env["EVERTURN_BIN"] ? false : "EVERTURN_BIN names no everturn: use `make clients`";

let folder: string;
let gateway: RealGateway;
let open: OpenPage;

before(async () => {
  folder = mkdtempSync(`${tmpdir()}/everturn-react-`);
  if (skip) return;
  gateway = await startGateway(folder, blockOf("toml"));
  open = await openPage(new Map([["/", blockOf("html")], ["/build/chat.js", await bundle(gateway.url)]]));
});

after(async () => {
  await open?.stop();
  gateway?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The only block of the page in a language. */
function blockOf(language: string): string {
  const blocks = [...PAGE.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, "g"))];
  assert.equal(blocks.length, 1, `docs/start/react-chat.md has one block in ${language}`);
  return blocks[0]![1]!;
}

/** The example as a page for users has it: bundled, minified, with React's production build. */
async function bundle(url: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [`${EXAMPLE}/chat.tsx`],
    bundle: true,
    minify: true,
    define: { "process.env.NODE_ENV": '"production"' },
    alias: { "everturn-client": `${PACKAGE}/src/index.ts` },
    nodePaths: [`${PACKAGE}/node_modules`],
    write: false,
  });
  return (outputFiles[0]?.text ?? "").replace(ADDRESS, url);
}

async function send(text: string): Promise<void> {
  await open.page.getByRole("textbox", { name: "Message" }).fill(text);
  await open.page.getByRole("button", { name: "Send" }).click();
}

const click = (name: string) => open.page.getByRole("button", { name, exact: true }).click();

/** Waits for a text; a failure says what the page shows instead. */
async function see(text: RegExp): Promise<void> {
  await open.page.getByText(text).first().waitFor().catch(async (error) => {
    throw new Error(`${await open.page.locator("body").innerText()}\n${open.complaints.join("\n")}`, { cause: error });
  });
}

test("the first message of a fresh page is answered, and its text is seen as it is written", { skip }, async () => {
  const { page } = open;
  await page.evaluate(() => {
    const seen: string[] = ((globalThis as any).seen = []);
    const note = () => document.querySelectorAll(".writing").forEach((text) => seen.push(text.textContent ?? ""));
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await send("Hello");
  await page.locator(".assistant_message").waitFor();
  const seen: string[] = await page.evaluate("seen");
  assert.ok(new Set(seen).size > 3, `the text grows: ${JSON.stringify(seen)}`);
  assert.equal(await page.locator(".user_message").count(), 1);
});

test("a client tool runs in the page", { skip }, async () => {
  await send("call page_title {}");
  await see(/page_title:\s+done "A chat in React"/);
});

test("a page that is loaded again shows the turn that waits, and a person approves there", { skip }, async () => {
  await send("What time is it in Tokyo?");
  await see(/Run current_time with/);
  await open.page.reload();
  await see(/Run current_time with \{"time_zone":"Asia\/Tokyo"\}\?/);
  await click("Approve");
  await see(/Look up the time in Asia\/Tokyo: approved done/);
  await open.page.locator(".assistant_message").nth(2).waitFor();
});

test("a person denies, and another one stops the turn", { skip }, async () => {
  await send("What time is it in Paris?");
  await click("Deny");
  await see(/Look up the time in Europe\/Paris: denied failed/);
  await open.page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  await send("What time is it in Rome?");
  await see(/Run current_time with .*Rome/);
  await click("Stop");
  await see(/cancelled/);
  assert.equal(await open.page.getByRole("button", { name: "Approve" }).count(), 0);
});

test("the browser complained about nothing but the conversation that did not exist at first", { skip }, () => {
  const isFirst = (complaint: string) => /404 .*\/events\?/.test(complaint);
  assert.deepEqual(open.complaints.filter((complaint) => !isFirst(complaint)), []);
});

test("the example has 40 lines, compiles strictly, and the page prints each file as it is", () => {
  assert.ok(SOURCE.trimEnd().split("\n").length <= 40);
  for (const [language, file] of [["tsx", "chat.tsx"], ["toml", "everturn.toml"], ["html", "index.html"]] as const) {
    assert.equal(blockOf(language), readFileSync(`${EXAMPLE}/${file}`, "utf8"), `${file} of examples/react-chat`);
  }
  const types = `${PACKAGE}/node_modules/@types`;
  const paths = {
    "everturn-client": [`${PACKAGE}/src/index.ts`],
    ...{ react: [`${types}/react`], "react/*": [`${types}/react/*`], "react-dom/*": [`${types}/react-dom/*`] },
  };
  const options = { extends: `${EXAMPLE}/tsconfig.json`, files: [`${EXAMPLE}/chat.tsx`], compilerOptions: { paths, types: [] } };
  writeFileSync(`${folder}/tsconfig.json`, JSON.stringify(options));
  const compiler = [`${PACKAGE}/node_modules/typescript/bin/tsc`, "--project", folder];
  execFileSync(process.execPath, compiler, { stdio: ["ignore", "inherit", "inherit"] });
});
