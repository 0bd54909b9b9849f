// Bundles the page into the folder that is named: `node build.mjs dist`. The same sources give the same bytes.

import { cpSync, rmSync } from "node:fs";
import { build } from "esbuild";

const folder = process.argv[2];
rmSync(folder, { recursive: true, force: true });
await build({
  entryPoints: { app: "src/main.tsx", style: "src/style.css" },
  outdir: folder,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: {
    js:
      "/* With Preact (c) Jason Miller, marked (c) Christopher Jeffrey and MarkedJS, and Sugar High (c) Jiachi Liu, " +
      "under the MIT License. */",
  },
  logLevel: "warning",
});
cpSync("src/index.html", `${folder}/index.html`);
