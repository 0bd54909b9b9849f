/** The fields of an event, read without trust: one that is missing or of another type is never an error. */

import type { Json, JsonObject } from "./state.js";

/** True for an object that is no array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A text; `""` when there is none. */
export function text(data: JsonObject, name: string): string {
  const value = data[name];
  return typeof value === "string" ? value : "";
}

/** A text that is not empty. */
export function id(data: JsonObject, name: string): string | undefined {
  return text(data, name) || undefined;
}

/** A number that is whole and not negative. */
export function count(data: JsonObject, name: string): number | undefined {
  const value = data[name];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** True or false; undefined when it is neither. */
export function flag(data: JsonObject, name: string): boolean | undefined {
  const value = data[name];
  return typeof value === "boolean" ? value : undefined;
}

/** A value of any type; `null` counts as missing. */
export function value(data: JsonObject, name: string): Json | undefined {
  return data[name] ?? undefined;
}

/** The object without its fields that are undefined, so that absent means absent. */
export function present<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return extended<T, object>({}, fields);
}

type Omitted<T, Names> = Pick<T, Exclude<keyof T, Names>>;

/** Adds to an object those fields that are not undefined. (A copy for each would be most of what an event costs.) */
export function extended<T extends Base, Base extends object>(
  base: Base,
  fields: { [K in keyof Omitted<T, keyof Base>]: T[K] | undefined } & Partial<Base>,
): T {
  const target = base as Record<string, unknown>;
  const given = fields as Record<string, unknown>;
  for (const name in given) {
    if (given[name] !== undefined) target[name] = given[name];
  }
  return base as unknown as T;
}
