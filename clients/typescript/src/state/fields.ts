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
  const entries = Object.entries(fields).filter(([, field]) => field !== undefined);
  return Object.fromEntries(entries) as T;
}
