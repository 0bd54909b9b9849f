/**
 * The examples of README.md, and the example of docs/api/clients.md, as they are printed there: the package is packed, installed in
 * an empty project, and run against a real gateway (EVERTURN_BIN, EVERTURN_TEMPORAL_BIN; `make clients` sets both).
 */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { Everturn } from "../src/index.js";
import { type RealGateway, startGateway } from "./support/everturn.js";
import { ROOT } from "./support/transcripts.js";

const PACKAGE = `${ROOT}clients/typescript`;
const README = readFileSync(`${PACKAGE}/README.md`, "utf8");
const PAGE = readFileSync(`${ROOT}docs/api/clients.md`, "utf8");
const EXAMPLES = new Map([...examplesOf(README), ...examplesOf(PAGE)]);
/** The address that the examples name. */
const ADDRESS = "http://127.0.0.1:8080";
const skip = process.env["EVERTURN_BIN"] ? false : "EVERTURN_BIN names no everturn: use `make clients`";

let gateway: RealGateway;
let project: string;

before(async () => {
  if (skip) return;
  const config = /```toml\n([^]*?)```/.exec(README)?.[1] ?? "";
  project = mkdtempSync(`${tmpdir()}/everturn-client-`);
  installPackage(project);
  gateway = await startGateway(`${project}/gateway`, config);
  compileExamples(project, gateway.url);
});

after(() => {
  gateway?.stop();
  if (project) rmSync(project, { recursive: true, force: true });
});

/** The examples of a text, by their names. */
function examplesOf(text: string): [string, string][] {
  return [...text.matchAll(/<!-- example: (\S+) -->\n```ts\n([^]*?)```/g)].map(([, name, code]) => [name!, code!]);
}

/** Packs the package and installs it, as `npm install` of the published one would. */
function installPackage(into: string): void {
  const run = (command: string, args: string[], cwd: string) =>
    execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  const archive = run("npm", ["pack", "--silent", "--pack-destination", into], PACKAGE).trim().split("\n").at(-1);
  writeFileSync(`${into}/package.json`, JSON.stringify({ private: true, type: "module" }));
  run("npm", ["install", "--silent", "--offline", "--no-audit", "--no-fund", `./${archive}`], into);
}

/** Compiles the examples against the types of the installed package. */
function compileExamples(into: string, url: string): void {
  for (const [name, code] of EXAMPLES) writeFileSync(`${into}/${name}.ts`, code.replaceAll(ADDRESS, url));
  const options = { module: "NodeNext", target: "ES2022", strict: true, skipLibCheck: false, types: ["node"] };
  const lib = ["ES2023", "DOM", "DOM.AsyncIterable"];
  const compilerOptions = { ...options, lib, typeRoots: [`${PACKAGE}/node_modules/@types`] };
  writeFileSync(`${into}/tsconfig.json`, JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  const compiler = `${PACKAGE}/node_modules/typescript/bin/tsc`;
  try {
    execFileSync(process.execPath, [compiler], { cwd: into, encoding: "utf8" });
  } catch (error) {
    throw new Error(`The examples do not compile:\n${(error as { stdout: string }).stdout}`);
  }
}

/** Runs an example to its end, and returns what it prints. */
async function run(name: string): Promise<string> {
  const process = start(name);
  let printed = "";
  process.stdout.on("data", (data) => (printed += data));
  const code = await new Promise((resolve) => process.on("exit", resolve));
  assert.equal(code, 0, `${name} failed; it printed: ${printed}`);
  return printed;
}

/** Runs an example until it has printed something, and kills it. */
async function runUntil(name: string, wanted: RegExp): Promise<string> {
  const process = start(name);
  let printed = "";
  for await (const data of process.stdout) if (wanted.test((printed += data))) break;
  process.kill("SIGKILL");
  assert.match(printed, wanted);
  return printed;
}

function start(name: string) {
  const { EVERTURN_TOKEN: _, ...env } = process.env;
  return spawn(process.execPath, [`${name}.js`], { cwd: project, env, stdio: ["ignore", "pipe", "inherit"] });
}

test("send", { skip }, async () => {
  assert.match(await run("send"), /^6 \* 7 = 42\./);
});

test("stream", { skip }, async () => {
  const printed = await run("stream");
  for (const shown of [/\(sending\)/, /calculate: done .*"42"/, /current_time: done/, /Tokyo.*…$/m, /^complete$/m]) {
    assert.match(printed, shown);
  }
});

test("resume after a crash, and a cursor that is kept", { skip }, async () => {
  const everturn = new Everturn({ url: gateway.url });
  const chat = everturn.conversation("order-4711");
  const first = start("resume");
  const isStored = () => chat.show().then(({ last_sequence }) => last_sequence > 0, () => false);
  while (!(await isStored())) await new Promise((resolve) => setTimeout(resolve, 10));
  first.kill("SIGKILL");
  assert.match(await run("resume"), /^21 \* 2 = 42\./);
  const { timeline } = await chat.timeline();
  assert.equal(timeline.filter((item) => item.type === "user_message").length, 1);

  assert.match(await runUntil("cursor", /^\d+ end$/m), /^1 user_message$/m);
  await chat.ask("What is 1 + 1?");
  const { last_sequence } = await chat.show();
  const second = await runUntil("cursor", new RegExp(`^${last_sequence} end$`, "m"));
  assert.match(second, /^7 user_message$/m, "it goes on behind what it has shown");
});

test("client tool", { skip }, async () => {
  writeFileSync(`${project}/notes.txt`, "Buy bread.");
  assert.match(await run("client-tool"), /Buy bread\./);
});

test("approval", { skip }, async () => {
  assert.match(await run("approval"), /\{ to: 'ada@example.com' \} complete/);
});

test("the example of the page on clients sends and streams", { skip }, async () => {
  const printed = await run("hello");
  assert.match(printed, /^2 \+ 2 = 4\./);
  for (const shown of [/^calculate: done$/m, /…$/m, /^21 \* 2 = 42\./m]) assert.match(printed, shown);
});

test("no example in TypeScript is without a name, so that none is left out", () => {
  for (const text of [README, PAGE]) assert.equal(text.match(/^```ts$/gm)?.length, examplesOf(text).length);
});

test("the types fit strict projects, of Node without the types of browsers, and of browsers with a bundler", { skip }, () => {
  const types = { types: ["node"], typeRoots: [`${PACKAGE}/node_modules/@types`] };
  const bundled = { module: "ESNext", moduleResolution: "Bundler", types: [] };
  for (const options of [{ module: "NodeNext", lib: ["ES2023"], ...types }, bundled]) {
    const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false };
    const compilerOptions = { target: "ES2022", noEmit: true, ...strict, ...options };
    writeFileSync(`${project}/strict.json`, JSON.stringify({ compilerOptions, files: ["strict.ts"] }));
    const program = `
      import { answerOfTurn, Everturn, memoryStorage, type Update } from "everturn-client";
      const chat = new Everturn({ url: "" }).conversation("a", { storage: memoryStorage(), tools: { open: () => 1 } });
      export const shown = ({ state }: Update): string | undefined => answerOfTurn(state.items, "m");
      export const text: Promise<string> = chat.ask("x").then(({ content }) => content);`;
    writeFileSync(`${project}/strict.ts`, program);
    const compiler = [`${PACKAGE}/node_modules/typescript/bin/tsc`, "--project", "strict.json"];
    execFileSync(process.execPath, compiler, { cwd: project, stdio: ["ignore", "inherit", "inherit"] });
  }
});

test("the package has no dependencies, and is small", { skip }, () => {
  const installed = `${project}/node_modules/everturn-client`;
  const own = JSON.parse(readFileSync(`${installed}/package.json`, "utf8")) as { dependencies?: object };
  assert.equal(own.dependencies, undefined);
  const scripts = readdirSync(`${installed}/dist`, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js"));
  const bytes = scripts.reduce((sum, name) => sum + statSync(`${installed}/dist/${name}`).size, 0);
  assert.ok(bytes < 100_000, `${bytes} bytes of JavaScript`);
});

test("every example is run", () => {
  assert.deepEqual([...EXAMPLES.keys()], ["send", "stream", "resume", "cursor", "client-tool", "approval", "hello"]);
});

test("the timeline of the client is the API's, also of a long conversation in pages", { skip }, async () => {
  const { timeline } = await import("../src/index.js");
  const chat = new Everturn({ url: gateway.url }).conversation("order-4711", { history: 3 });
  await chat.ask("What is 2 + 2?");
  while (await chat.older(2));
  const { common } = await import("./support/timeline.js");
  assert.deepEqual(timeline(chat.current.state.items), common((await chat.timeline()).timeline));
});
