/** An address that a foreign server wants a person to open. */

export interface SafeLink {
  /** The address as the browser opens it. */
  readonly href: string;
  /** The host in ASCII: letters of another script cannot look like another host. */
  readonly host: string;
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * The link of an address with https, or with http to this device. Undefined for any other address, and for an address with a
 * name or a password, which may look like a host: `https://bank.example@evil.example`.
 */
export function safeLink(address: string): SafeLink | undefined {
  if (!URL.canParse(address)) return undefined;
  const { protocol, hostname, host, href, username, password } = new URL(address);
  const isSafe = protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname));
  return isSafe && username === "" && password === "" ? { href, host } : undefined;
}
