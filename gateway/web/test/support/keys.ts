/** Keys of callers, for gateways that ask who is there. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";

/** Makes a key in the data of the gateway in this folder. */
export function createKey(folder: string): string {
  const made = spawnSync(process.env["EVERTURN_BIN"] ?? "", ["keys", "create", "--tenant", "acme", "--data-dir", "data"], {
    cwd: folder,
    encoding: "utf8",
  });
  assert.equal(made.status, 0, made.stderr);
  return made.stdout.trim();
}
