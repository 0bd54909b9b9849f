/** What follows from other files of the repository still does. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ROOT } from "./support/transcripts.js";

test("the types are those of docs/openapi.json", () => {
  const cwd = `${ROOT}clients/typescript`;
  try {
    execFileSync("npm", ["run", "--silent", "generate", "--", "--check"], { cwd, stdio: "pipe" });
  } catch (cause) {
    throw new Error("src/generated/openapi.ts is not what docs/openapi.json gives: run `make openapi`.", { cause });
  }
});

test("the package has the version of Everturn", () => {
  const [, version] = /^version = "(.+)"$/m.exec(readFileSync(`${ROOT}Cargo.toml`, "utf8")) ?? [];
  const read = (name: string) => JSON.parse(readFileSync(`${ROOT}clients/typescript/${name}`, "utf8"));
  assert.equal(read("package.json").version, version);
  assert.equal(read("package-lock.json").version, version);
});
