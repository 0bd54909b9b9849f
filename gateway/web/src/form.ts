/**
 * The form of a question: the fields of a JSON Schema with flat properties, and the person's answer as JSON text. The module has
 * no words of the page, and draws nothing. The schema comes from a foreign server: every list has a bound, and the name of a
 * property never becomes the name of a field of an object.
 */

/** Fields that the page draws. Nobody fills in more, and each field costs elements. */
export const MOST_FIELDS = 50;

/** Options of a field that the page lists: all countries, and no more than 12 500 elements in the largest form. */
export const MOST_OPTIONS = 250;

/** The longest text for which a line is enough. */
const LINE = 200;

const WHOLE_NUMBER = /^-?\d+$/;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

export type Format = "email" | "uri" | "date" | "date-time";

export interface Option {
  readonly value: string;
  readonly label: string;
}

interface Base {
  /** The name of the property. */
  readonly name: string;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly isRequired: boolean;
}

interface Bounds {
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

/** A text; `values` are the allowed ones, when they are too many for a list. `isLong`: a line is not enough. */
export interface TextField extends Base, Bounds {
  readonly kind: "text";
  readonly format?: Format | undefined;
  readonly isLong: boolean;
  readonly values?: ReadonlySet<string>;
  readonly default: string;
}

/** A number, which is sent digit by digit as the person writes it. */
export interface NumberField extends Base, Bounds {
  readonly kind: "number";
  readonly isWhole: boolean;
  readonly default: string;
}

/** Yes or no. Without a default, an optional one may stay open. */
export interface FlagField extends Base {
  readonly kind: "flag";
  readonly mayBeOpen: boolean;
  readonly default: boolean;
}

/** One of a few values. */
export interface ChoiceField extends Base {
  readonly kind: "choice";
  readonly options: readonly Option[];
  readonly default: string | undefined;
}

/** Some of a few values. */
export interface SeveralField extends Base, Bounds {
  readonly kind: "several";
  readonly options: readonly Option[];
  readonly default: readonly string[];
}

/** A property of any other kind: JSON. `options` is their number when they are too many for a list. */
export interface JsonField extends Base {
  readonly kind: "json";
  readonly options?: number;
  readonly default: string;
}

export type Field = TextField | NumberField | FlagField | ChoiceField | SeveralField | JsonField;

/** The fields; or the reason why the person writes the whole answer as JSON: too many properties, or no schema of an object. */
export type Form = { readonly fields: readonly Field[] } | { readonly tooMany: number } | { readonly isUnread: true };

/**
 * What a person has entered in a field: a text; of a choice, the position of the option, or `""`; of a flag, `"true"`, `"false"`
 * or `""`; of several, the positions of the options.
 */
export type Entry = string | readonly number[];

/** What is wrong with an entry. */
export type Problem =
  | { readonly is: "missing" | "number" | "whole" | "huge" | "json" | "value" | Format }
  | { readonly is: "short" | "long" | "small" | "large" | "few" | "many"; readonly bound: number };

type Schema = Readonly<Record<string, unknown>>;

/** Reads a schema. */
export function formOf(schema: unknown): Form {
  if (schema === undefined) return { fields: [] };
  const type = isObject(schema) ? (schema["type"] ?? "object") : undefined;
  if (!isObject(schema) || type !== "object") return { isUnread: true };
  const properties = schema["properties"] ?? {};
  if (!isObject(properties)) return { isUnread: true };
  const names = Object.keys(properties);
  if (names.length > MOST_FIELDS) return { tooMany: names.length };
  const required = new Set(list(schema["required"]));
  return { fields: names.map((name) => fieldOf(name, properties[name], required.has(name))) };
}

function fieldOf(name: string, property: unknown, isRequired: boolean): Field {
  const schema = isObject(property) ? property : {};
  const base = { name, label: text(schema["title"]) || name, hint: text(schema["description"]) || undefined, isRequired };
  return kindOf(base, schema) ?? jsonField(base, schema);
}

function kindOf(base: Base, schema: Schema): Field | undefined {
  const given = schema["default"];
  switch (schema["type"]) {
    case "string":
      return "enum" in schema || "oneOf" in schema ? choice(base, schema) : textField(base, schema);
    case "integer":
    case "number": {
      const isWhole = schema["type"] === "integer";
      const isKnown = typeof given === "number" && (Number.isSafeInteger(given) || (!isWhole && !Number.isInteger(given)));
      const [min, max] = [bound(schema["minimum"]), bound(schema["maximum"])];
      return { ...base, kind: "number", isWhole, min, max, default: isKnown ? String(given) : "" };
    }
    case "boolean":
      return { ...base, kind: "flag", mayBeOpen: !base.isRequired && typeof given !== "boolean", default: given === true };
    case "array":
      return several(base, schema);
    default:
      return undefined;
  }
}

function textField(base: Base, schema: Schema): TextField {
  const format = (["email", "uri", "date", "date-time"] as const).find((known) => known === schema["format"]);
  const [min, max] = [size(schema["minLength"]), size(schema["maxLength"])];
  const given = text(schema["default"]);
  const isLong = format === undefined && ((max ?? 0) > LINE || given.includes("\n"));
  const isUseless = (format === "date" && !DATE.test(given)) || (format === "date-time" && localTime(given) === undefined);
  return { ...base, kind: "text", format, min, max, isLong, default: isUseless ? "" : given };
}

/** A choice; a text to write when the list would be too long. Undefined when an option is no text. */
function choice(base: Base, schema: Schema): ChoiceField | TextField | undefined {
  const options = optionsOf(schema, "oneOf");
  if (options === undefined) return undefined;
  const values = new Set(options.map(({ value }) => value));
  const given = text(schema["default"]);
  const known = values.has(given) && typeof schema["default"] === "string" ? given : undefined;
  if (options.length <= MOST_OPTIONS) return { ...base, kind: "choice", options, default: known };
  return { ...base, kind: "text", isLong: false, values, default: known ?? "" };
}

function jsonField(base: Base, schema: Schema): JsonField {
  return { ...base, kind: "json", default: schema["default"] === undefined ? "" : JSON.stringify(schema["default"]) };
}

function several(base: Base, schema: Schema): SeveralField | JsonField | undefined {
  const options = isObject(schema["items"]) ? optionsOf(schema["items"], "anyOf") : undefined;
  if (options === undefined) return undefined;
  if (options.length > MOST_OPTIONS) return { ...jsonField(base, schema), options: options.length };
  const given = list(schema["default"]).filter((value) => options.some((option) => option.value === value));
  return { ...base, kind: "several", options, min: size(schema["minItems"]), max: size(schema["maxItems"]), default: given };
}

/** The options of `enum`, with the labels of `enumNames`, or those of a list of constants with titles. */
function optionsOf(schema: Schema, titled: "oneOf" | "anyOf"): Option[] | undefined {
  const [values, constants] = [schema["enum"], schema[titled]];
  if (Array.isArray(values)) {
    const names = list(schema["enumNames"]);
    const options = values.map((value: unknown, at) => ({ value, label: names.length === values.length ? names[at] : value }));
    return checked(options);
  }
  if (!Array.isArray(constants)) return undefined;
  return checked(constants.map((one: unknown) => (isObject(one) ? constant(one) : {})));
}

function constant({ const: value, title }: Schema): { value: unknown; label: unknown } {
  return { value, label: text(title) || value };
}

function checked(options: readonly { value?: unknown; label?: unknown }[]): Option[] | undefined {
  const isText = ({ value, label }: (typeof options)[number]) => typeof value === "string" && typeof label === "string";
  return options.length > 0 && options.every(isText) ? (options as Option[]) : undefined;
}

/** What a field has before the person has done anything. */
export function firstEntry(field: Field): Entry {
  switch (field.kind) {
    case "text":
      return field.format === "date-time" ? (localTime(field.default) ?? "") : field.default;
    case "number":
    case "json":
      return field.default;
    case "flag":
      return field.mayBeOpen ? "" : String(field.default);
    case "choice": {
      const at = field.options.findIndex(({ value }) => value === field.default);
      return at < 0 ? "" : String(at);
    }
    case "several":
      return field.options.flatMap(({ value }, at) => (field.default.includes(value) ? [at] : []));
  }
}

/** The answer as JSON text, or the problems by the positions of their fields. */
export type Answered = { readonly text: string } | { readonly problems: ReadonlyMap<number, Problem> };

/** Makes the answer. Optional fields that are left empty are left out. */
export function answerOf(fields: readonly Field[], entries: readonly Entry[]): Answered {
  const problems = new Map<number, Problem>();
  const parts: string[] = [];
  fields.forEach((field, at) => {
    const entry = entries[at] ?? "";
    const problem = problemOf(field, entry);
    if (problem) problems.set(at, problem);
    else if (!isLeftOut(field, entry)) parts.push(`${JSON.stringify(field.name)}:${valueOf(field, entry)}`);
  });
  return problems.size > 0 ? { problems } : { text: `{${parts.join(",")}}` };
}

/** What is wrong with an entry, as far as the page can tell. The gateway checks the whole answer with the schema. */
export function problemOf(field: Field, entry: Entry): Problem | undefined {
  if (isEmpty(entry)) return field.isRequired && field.kind !== "several" ? { is: "missing" } : fewOrMany(field, entry);
  switch (field.kind) {
    case "text":
      return problemOfText(field, String(entry));
    case "number":
      return problemOfNumber(field, String(entry).trim());
    case "json":
      return isJson(String(entry)) ? undefined : { is: "json" };
    case "several":
      return fewOrMany(field, entry);
    default:
      return undefined;
  }
}

function problemOfText({ format, min, max, values }: TextField, entry: string): Problem | undefined {
  const length = [...entry].length;
  if (min !== undefined && length < min) return { is: "short", bound: min };
  if (max !== undefined && length > max) return { is: "long", bound: max };
  if (values && !values.has(entry)) return { is: "value" };
  const isFine = {
    email: () => /^[^\s@]+@[^\s@]+$/.test(entry),
    uri: () => URL.canParse(entry),
    date: () => DATE.test(entry),
    "date-time": () => !Number.isNaN(Date.parse(entry)),
  };
  return format === undefined || isFine[format]() ? undefined : { is: format };
}

function problemOfNumber({ isWhole, min, max }: NumberField, entry: string): Problem | undefined {
  if (!(isWhole ? WHOLE_NUMBER : NUMBER).test(entry)) return { is: isWhole ? "whole" : "number" };
  const value = Number(entry);
  if (!Number.isFinite(value)) return { is: "huge" };
  if (min !== undefined && value < min) return { is: "small", bound: min };
  return max !== undefined && value > max ? { is: "large", bound: max } : undefined;
}

function fewOrMany(field: Field, entry: Entry): Problem | undefined {
  if (field.kind !== "several" || isLeftOut(field, entry)) return undefined;
  if (field.min !== undefined && entry.length < field.min) return { is: "few", bound: field.min };
  return field.max !== undefined && entry.length > field.max ? { is: "many", bound: field.max } : undefined;
}

function isEmpty(entry: Entry): boolean {
  return typeof entry === "string" ? entry.trim() === "" : entry.length === 0;
}

function isLeftOut(field: Field, entry: Entry): boolean {
  return isEmpty(entry) && !field.isRequired;
}

/** The value of an entry without a problem, as JSON. */
function valueOf(field: Field, entry: Entry): string {
  switch (field.kind) {
    case "text":
      return JSON.stringify(field.format === "date-time" ? instantOf(field, String(entry)) : entry);
    case "number":
      return field.isWhole ? withoutZeros(String(entry).trim()) : String(entry).trim();
    case "choice":
      return JSON.stringify(field.options[Number(entry)]?.value);
    case "several":
      return JSON.stringify([...entry].map((at) => field.options[Number(at)]?.value));
    case "flag":
    case "json":
      return String(entry).trim();
  }
}

/** A whole number as JSON has it: `007` is `7`. */
function withoutZeros(digits: string): string {
  return digits.replace(/^(-?)0+(?=\d)/, "$1");
}

/** A time with its zone in the form of a field for a time: in the zone of this device, to the second. */
function localTime(instant: string): string | undefined {
  const at = new Date(instant);
  const year = at.getFullYear();
  if (!(year >= 1000 && year <= 9999)) return undefined;
  const two = (value: number) => String(value).padStart(2, "0");
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  return `${year}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${time}`;
}

/** The instant of a field for a time. A default that nobody has changed stays as the server wrote it. */
function instantOf(field: TextField, entry: string): string {
  return entry === localTime(field.default) ? field.default : new Date(entry).toISOString().replace(".000Z", "Z");
}

/** Whether a text is the JSON of an object: a whole answer. */
export function isAnswer(json: string): boolean {
  return isJson(json) && isObject(JSON.parse(json));
}

function isJson(json: string): boolean {
  try {
    JSON.parse(json);
    return true;
  } catch {
    return false;
  }
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The texts of a list; empty when one of its members is no text. */
function list(value: unknown): string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value : [];
}

/** A bound that JavaScript has not rounded. The gateway checks the other ones. */
function bound(value: unknown): number | undefined {
  return typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : undefined;
}

function size(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
