/** Random numbers that a seed repeats. */

/** The seed of this run: EVERTURN_SEED, else a new one. Tests print it when they fail. */
export const SEED = Number(process.env["EVERTURN_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

/** Makes a function that returns whole numbers from 0 to below its argument (mulberry32). */
export function randomNumbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}
