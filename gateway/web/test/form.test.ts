/** Forms of questions: what a foreign server's schema becomes, and the answer, to the last digit. No gateway and no browser. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, type Entry, type Field, firstEntry, formOf, isAnswer, MOST_FIELDS, MOST_OPTIONS } from "../src/form";
import { safeLink } from "../src/link";

/** The fields of properties, as JSON text writes them: `__proto__` is a property like any other. */
function fields(properties: string, required: string[] = []): readonly Field[] {
  const form = formOf(JSON.parse(`{"type":"object","properties":${properties},"required":${JSON.stringify(required)}}`));
  assert.ok("fields" in form, JSON.stringify(form).slice(0, 200));
  return form.fields;
}

/** The answer with these entries instead of the first entries; or the problems, by the name of the field. */
function answer(of: readonly Field[], entries: Record<string, Entry> = {}): unknown {
  const answered = answerOf(of, of.map((field) => (Object.hasOwn(entries, field.name) ? entries[field.name]! : firstEntry(field))));
  if ("text" in answered) return answered.text;
  const shown = [...answered.problems].map(([at, problem]) => [of[at]!.name, "bound" in problem ? [problem.is, problem.bound] : problem.is]);
  return Object.fromEntries(shown);
}

const options = (count: number) => JSON.stringify(Array.from({ length: count }, (_, at) => `value ${at}`));

test("properties of each kind are fields with labels, hints and defaults", () => {
  const found = fields(
    `{
      "name": {"type":"string","title":"Your name","description":"As on the ticket.","minLength":2,"maxLength":5},
      "mail": {"type":"string","format":"email","default":"ada@example.com"},
      "poem": {"type":"string","default":"one\\ntwo"},
      "count": {"type":"integer","minimum":1,"maximum":8,"default":2},
      "rate": {"type":"number","default":0.5},
      "open": {"type":"boolean"},
      "sure": {"type":"boolean","default":true},
      "size": {"type":"string","enum":["s","m"],"enumNames":["Small","Medium"],"default":"m"},
      "seat": {"type":"string","oneOf":[{"const":"w","title":"Window"},{"const":"a"}]},
      "tags": {"type":"array","items":{"anyOf":[{"const":"x","title":"An x"},{"const":"y","title":"A y"}]},"minItems":1,"default":["y","z"]},
      "days": {"type":"array","items":{"type":"string","enum":["mo","tu"]},"maxItems":1},
      "more": {"type":"object","default":{"a":[1]}}
    }`,
    ["name", "nobody"],
  );
  const kinds = found.map(({ kind, label, isRequired }) => [kind, label, isRequired]);
  assert.deepEqual(kinds.slice(0, 4), [["text", "Your name", true], ["text", "mail", false], ["text", "poem", false], ["number", "count", false]]);
  assert.deepEqual(kinds.slice(4).map(([kind]) => kind), ["number", "flag", "flag", "choice", "choice", "several", "several", "json"]);
  assert.equal(found[0]?.hint, "As on the ticket.");
  assert.ok(found[2]?.kind === "text" && found[2].isLong, "a line would lose the break");
  assert.ok(found[7]?.kind === "choice" && found[7].options[1]?.label === "Medium");
  assert.ok(found[8]?.kind === "choice" && found[8].options[1]?.label === "a");
  assert.deepEqual(found.map(firstEntry), ["", "ada@example.com", "one\ntwo", "2", "0.5", "", "true", "1", "", [1], [], '{"a":[1]}']);
});

test("an answer has the fields that are filled in, in the order of the schema", () => {
  const found = fields(
    `{"name":{"type":"string"},"count":{"type":"integer"},"open":{"type":"boolean"},"sure":{"type":"boolean"},
      "size":{"type":"string","enum":["s",""]},"tags":{"type":"array","items":{"enum":["x","y","z"]}},"more":{}}`,
    ["sure"],
  );
  assert.equal(answer(found), '{"sure":false}');
  const entries = { name: 'Ada "A"', count: " 42 ", open: "false", sure: "true", size: "1", tags: [0, 2], more: " [1, null] " };
  const whole = '{"name":"Ada \\"A\\"","count":42,"open":false,"sure":true,"size":"","tags":["x","z"],"more":[1, null]}';
  assert.equal(answer(found, entries), whole);
  assert.deepEqual(answer(found, { more: "{" }), { more: "json" });
  assert.equal(answer(fields('{"tags":{"type":"array","items":{"enum":["x"]}}}', ["tags"])), '{"tags":[]}', "an empty list is a list");
  assert.equal(answer([]), "{}");
});

test("numbers keep their digits, or are refused with a reason", () => {
  const found = fields('{"whole":{"type":"integer","minimum":-5,"maximum":9e15},"any":{"type":"number","minimum":0.5}}');
  assert.equal(answer(fields('{"id":{"type":"integer"}}'), { id: "-9007199254740993123" }), '{"id":-9007199254740993123}');
  assert.equal(answer(found, { whole: "-0005", any: "1.50e0" }), '{"whole":-5,"any":1.50e0}');
  assert.equal(answer(found, { any: "1.12345678901234567890123" }), '{"any":1.12345678901234567890123}');
  for (const whole of ["1.0", "1e3", "0x10", "one", "1,000", "+1"]) assert.deepEqual(answer(found, { whole }), { whole: "whole" }, whole);
  for (const any of [".5", "1.", "NaN", "Infinity", "1_0", '1,"b":2']) assert.deepEqual(answer(found, { any }), { any: "number" }, any);
  assert.deepEqual(answer(found, { whole: "-6", any: "0.4" }), { whole: ["small", -5], any: ["small", 0.5] });
  assert.deepEqual(answer(found, { whole: "9007199254740993", any: "1e999" }), { whole: ["large", 9e15], any: "huge" });
  const rounded = fields('{"a":{"type":"integer","default":9007199254740993,"minimum":9007199254740993},"b":{"type":"integer","default":1.5}}');
  assert.equal(answer(rounded), "{}", "a default that JavaScript has rounded is none");
  assert.equal(answer(rounded, { a: "1" }), '{"a":1}', "the gateway knows the bound");
});

test("texts are checked for their length and their format", () => {
  const found = fields(
    `{"name":{"type":"string","minLength":2,"maxLength":3},"mail":{"type":"string","format":"email"},"site":{"type":"string","format":"uri"},
      "day":{"type":"string","format":"date","default":"soon"},"ipv4":{"type":"string","format":"ipv4"}}`,
    ["mail"],
  );
  assert.deepEqual(answer(found, { name: "a", site: "example.com", ipv4: "no" }), { name: ["short", 2], mail: "missing", site: "uri" });
  assert.deepEqual(answer(found, { name: "abcd", mail: "a b@c", day: "24.12." }), { name: ["long", 3], mail: "email", day: "date" });
  assert.equal(answer(found, { name: "🙂🙂🙂", mail: "a@b", day: "2026-12-24" }), '{"name":"🙂🙂🙂","mail":"a@b","day":"2026-12-24"}');
});

test("a time is shown in the zone of the device, and sent as an instant", () => {
  const time = '"type":"string","format":"date-time"';
  const found = fields(`{"at":{${time},"default":"2026-12-24T10:00:00.123456+05:30"},"to":{${time}}}`);
  assert.match(String(firstEntry(found[0]!)), /^2026-12-2\dT\d\d:\d\d:00$/);
  assert.equal(answer(found), '{"at":"2026-12-24T10:00:00.123456+05:30"}', "an unchanged default keeps its zone and its parts of a second");
  const noon = new Date("2026-06-01T12:00").toISOString().replace(".000Z", "Z");
  assert.equal(answer(found, { at: "", to: "2026-06-01T12:00" }), `{"to":"${noon}"}`);
  assert.deepEqual(answer(found, { to: "noon" }), { to: "date-time" });
});

test("lists have their bounds", () => {
  const found = fields('{"tags":{"type":"array","items":{"enum":["x","y","z"]},"minItems":2,"maxItems":2}}');
  assert.equal(answer(found), "{}");
  assert.deepEqual(answer(found, { tags: [0] }), { tags: ["few", 2] });
  assert.deepEqual(answer(found, { tags: [0, 1, 2] }), { tags: ["many", 2] });
  const required = fields('{"tags":{"type":"array","items":{"enum":["x"]},"minItems":1}}', ["tags"]);
  assert.deepEqual(answer(required), { tags: ["few", 1] });
});

test("names of objects are names of properties like any other", () => {
  const properties = '{"__proto__":{"type":"string","title":"__proto__"},"constructor":{"type":"integer"},"toString":true,"valueOf":null}';
  const found = fields(properties, ["__proto__"]);
  const kinds = found.map(({ name, kind }) => [name, kind]);
  assert.deepEqual(kinds, [["__proto__", "text"], ["constructor", "number"], ["toString", "json"], ["valueOf", "json"]]);
  const entries = JSON.parse('{"__proto__":"x","constructor":"7","toString":"{\\"__proto__\\":{\\"a\\":1}}"}');
  const text = '{"__proto__":"x","constructor":7,"toString":{"__proto__":{"a":1}}}';
  assert.equal(answer(found, entries), text);
  assert.equal(({} as Record<string, unknown>)["a"], undefined);
  assert.ok(found[2]?.kind === "json" && found[2].label === "toString" && found[2].default === "");
});

test("a form that is too large, and a schema without a form, are answered as JSON", () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, { type: "string" }]));
  assert.deepEqual(formOf({ type: "object", properties: many(1000) }), { tooMany: 1000 });
  assert.ok("fields" in formOf({ type: "object", properties: many(MOST_FIELDS) }));
  for (const schema of [null, 7, "x", [], { type: "array" }, { type: ["object"] }, { properties: [] }, { type: "object", properties: "x" }]) {
    assert.deepEqual(formOf(schema), { isUnread: true }, JSON.stringify(schema));
  }
  for (const schema of [undefined, {}, { type: "object" }, { properties: {} }, { required: "x" }]) assert.deepEqual(formOf(schema), { fields: [] });
  assert.ok(isAnswer(' {"a":9007199254740993}'));
  for (const text of ["", "[]", "null", "{", "7", '{"a":1}}']) assert.ok(!isAnswer(text), text);
});

test("too many options are not listed, and a wrong value is none of them", () => {
  const texts = `{"type":"string","enum":${options(100_000)},"default":"value 7"}`;
  const [one, some] = fields(`{"one":${texts},"some":{"type":"array","items":{"enum":${options(1000)}}}}`);
  assert.ok(one?.kind === "text" && one.values?.size === 100_000 && one.default === "value 7");
  assert.ok(some?.kind === "json" && some.options === 1000);
  assert.deepEqual(answer([one!], { one: "value 100000" }), { one: "value" });
  assert.equal(answer([one!, some!], { some: '["value 3"]' }), '{"one":"value 7","some":["value 3"]}');
  assert.equal(fields(`{"one":{"type":"string","enum":${options(MOST_OPTIONS)}}}`)[0]?.kind, "choice");
});

test("options that are no texts, and odd properties, are JSON", () => {
  const odd = `{"a":{"type":"string","enum":[1,"b"]},"b":{"type":"string","enum":[]},"c":{"type":"string","oneOf":[{"title":"x"}]},
    "d":{"type":"string","oneOf":"x"},"e":{"type":"array"},"f":{"type":"array","items":{"type":"string"}},"g":{"type":"null"},
    "h":{"anyOf":[{"type":"integer"},{"type":"null"}]},"i":[],"j":"x","k":{"type":"array","items":{"enum":["x",{"y":1}]}}}`;
  assert.deepEqual([...new Set(fields(odd).map(({ kind }) => kind))], ["json"]);
  const names = fields('{"a":{"type":"string","enum":["x","y"],"enumNames":["only one"],"title":7,"description":["x"],"minLength":-1}}');
  const base = { name: "a", label: "a", hint: undefined, isRequired: false, default: undefined };
  assert.deepEqual(names, [{ ...base, kind: "choice", options: ["x", "y"].map((value) => ({ value, label: value })) }]);
});

test("an address is a link when it is safe, and its host is in ASCII", () => {
  assert.deepEqual(safeLink("https://pay.example:8443/a?b#c"), { href: "https://pay.example:8443/a?b#c", host: "pay.example:8443" });
  assert.equal(safeLink("https://p\u0430y.example/")?.host, "xn--py-7kc.example", "a Cyrillic letter");
  assert.equal(safeLink("https://a.example\\@b.example/")?.host, "a.example");
  assert.equal(safeLink("https://a.example/\u202ea")?.href, "https://a.example/%E2%80%AEa");
  for (const local of ["http://localhost:8080/", "http://127.0.0.1/x", "http://127.1/", "http://[::1]:3/"]) assert.ok(safeLink(local), local);
  const refused = [
    ...["http://pay.example/", "http://localhost.evil.example/", "http://127.0.0.1.evil.example/", "javascript:alert(1)", "data:text/html,x"],
    ...["file:///etc/passwd", "https://bank.example@evil.example/", "https://a:b@evil.example/", "ftp://a.example", "/x", ""],
    ...["https://", "blob:https://a.example/1"],
  ];
  for (const address of refused) assert.equal(safeLink(address), undefined, address);
});
