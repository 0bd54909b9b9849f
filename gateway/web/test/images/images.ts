/**
 * Makes the pictures of docs/page.md from the page itself, on `everturn dev` with a model that does as it is told.
 * `make page-images` runs it, `make page-images SCENES="turns reading"` a part; look at what it made before you commit it.
 */

import { type Bench, startBench } from "../support/bench";
import { CONFIG, scripts } from "../support/scenes";
import { seedList, seedScenes } from "../support/shop";
import { scene } from "./camera";
import { begin, list, many, one } from "./beginning";
import { lookBehind, readingEvents } from "./behind";
import { read, said } from "./reading";
import { approve, cancel, compare, lose, refuse, research, stream, write } from "./turns";

/** A bench for its scenes, which all have tabs of their own. */
async function on(config: string, take: (bench: Bench) => Promise<void>): Promise<void> {
  const bench = await startBench(config);
  try {
    scripts(bench.model);
    await take(bench);
  } finally {
    for (const context of bench.browser.contexts()) await context.close();
    await bench.stop();
  }
}

await on(CONFIG, async (bench) => {
  await seedList(bench);
  await seedScenes(bench);
  await scene("begin", () => begin(bench));
  for (const take of [refuse, research, stream, compare, approve, cancel, write, lose]) await scene("turns", () => take(bench));
  for (const take of [read, said]) await scene("reading", () => take(bench));
  for (const take of [lookBehind, readingEvents]) await scene("behind", () => take(bench));
  await scene("list", () => list(bench));
});
await scene("one", one);
await scene("many", many);
