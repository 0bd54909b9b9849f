/** The design has one place: colours, sizes of type and motion are in `tokens.css`, and the colours can be read. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const SOURCES = readdirSync("src", { recursive: true }).map(String).filter((name) => name.endsWith(".css"));
const TOKENS = readFileSync("src/tokens.css", "utf8");

/** The colours of a token, in the light and in the dark. */
function colours(name: string): [light: string, dark: string] {
  const [, light, dark] = new RegExp(`--${name}: light-dark\\((#\\w{6}), (#\\w{6})\\)`).exec(TOKENS) ?? [];
  assert.ok(light && dark, `${name} has two colours`);
  return [light, dark];
}

/** WCAG's contrast of two colours. */
function contrast(one: string, other: string): number {
  const [bright, dim] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (bright + 0.05) / (dim + 0.05);
}

function luminance(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

test("colours, sizes of type and times are tokens", () => {
  for (const name of SOURCES.filter((source) => source !== "tokens.css")) {
    const rules = readFileSync(`src/${name}`, "utf8").replace(/^\s*--[\w-]+:.*$/gm, "").replace(/\/\*[^]*?\*\//g, "");
    assert.deepEqual(rules.match(/#[\da-f]{3,8}\b(?=[;, )])|\b(?:rgb|hsl)a?\([^)]*\)/gi) ?? [], [], `${name} has no colours of its own`);
    const sizes = rules.match(/(?<![\w-])font-size:[^;}]+/g) ?? [];
    assert.deepEqual(sizes.filter((size) => !/var\(--type-|em$|inherit|: 0$/.test(size.trim()) || /rem/.test(size)), [], `${name} has no sizes of its own`);
    const motions = rules.match(/(?:transition|animation):[^;}]+/g) ?? [];
    assert.deepEqual(motions.filter((motion) => !/var\(--(?:motion|pulse)|none/.test(motion)), [], `${name} has no times of its own`);
  }
});

test("texts have a contrast of 4.5 to 1 on every surface, and edges of fields have 3 to 1", () => {
  for (const scheme of [0, 1] as const) {
    for (const surface of ["back", "raised", "hover", "mine"]) {
      for (const text of ["text", "faint", "accent", "bad"]) {
        const found = contrast(colours(text)[scheme], colours(surface)[scheme]);
        assert.ok(found >= 4.5, `${text} on ${surface}: ${found.toFixed(2)}`);
      }
    }
    for (const [text, surface] of [["wait", "wait-back"], ["wait", "raised"], ["wait", "mine"], ["bad", "bad-back"], ["good", "back"], ["text", "wait-back"], ["accent", "wait-back"]] as const) {
      const found = contrast(colours(text)[scheme], colours(surface)[scheme]);
      assert.ok(found >= 4.5, `${text} on ${surface}: ${found.toFixed(2)}`);
    }
    for (const weight of ["accent", "accent-hover", "bad", "wait"]) {
      assert.ok(contrast(colours("on-accent")[scheme], colours(weight)[scheme]) >= 4.5, `a button of ${weight}`);
    }
    assert.ok(contrast(colours("edge")[scheme], colours("back")[scheme]) >= 3, "a field has an edge");
  }
});
