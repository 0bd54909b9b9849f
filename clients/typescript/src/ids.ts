/** Ids that a client makes. */

/** Makes an id that nobody else makes. (`crypto.randomUUID` is missing on pages without TLS.) */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
