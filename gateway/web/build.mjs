// Bundles the page into the folder that is named: `node build.mjs dist`. The same sources give the same bytes.

import { createHash } from "node:crypto";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { build } from "esbuild";

const folder = process.argv[2];
rmSync(folder, { recursive: true, force: true });
const options = {
  outdir: folder,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
};
await build({ ...options, entryPoints: { worker: "src/shared/worker.ts" } });
await build({ ...options, entryPoints: { math: "src/math.ts" }, banner: { js: "/* With Temml (c) Ron Kok, under the MIT License. */" } });
const worker = createHash("sha256").update(readFileSync(`${folder}/worker.js`)).digest("hex").slice(0, 16);
await build({
  ...options,
  entryPoints: { app: "src/main.tsx", style: "src/style.css" },
  // The page loads the file when there is a formula.
  external: ["./math.js"],
  // Tabs of two releases must not share a worker.
  define: { WORKER_HASH: JSON.stringify(worker) },
  banner: {
    js:
      "/* With Preact (c) Jason Miller, marked (c) Christopher Jeffrey and MarkedJS, and Sugar High (c) Jiachi Liu, " +
      "under the MIT License. */",
  },
});
cpSync("src/index.html", `${folder}/index.html`);
