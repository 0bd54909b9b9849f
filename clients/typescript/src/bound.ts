/** Methods that know their object. */

/**
 * Binds every method of an object to the object, so that a method may be passed around alone, as in
 * `useSyncExternalStore(chat.subscribe, chat.getSnapshot)` or `const { post } = chat`.
 */
export function bindMethods(object: object): void {
  for (let from = Object.getPrototypeOf(object); from !== Object.prototype; from = Object.getPrototypeOf(from)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(from))) {
      const isMethod = typeof value === "function" && name !== "constructor" && !Object.hasOwn(object, name);
      if (isMethod) Object.defineProperty(object, name, { value: value.bind(object), writable: true, configurable: true });
    }
  }
}
