/** Icons, as paths in a field of 24 by 24. They are hidden from readers of the screen: the text beside an icon says the same. */

const PATHS = {
  attach: "M12 5v14M5 12h14",
  check: "M5 12.5l4.5 4.5L19 7",
  close: "M6 6l12 12M18 6L6 18",
  cross: "M7 7l10 10M17 7L7 17",
  dot: "M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8z",
  question: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.5",
  list: "M4 7h16M4 12h16M4 17h16",
  search: "M11 4a7 7 0 1 0 0 14a7 7 0 0 0 0-14zM16 16l4 4",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  write: "M12 20h8M4 20l1-4L16 5l3 3L8 19z",
} as const;

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return <svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d={PATHS[name]} /></svg>;
}

/** The name of the product, with its mark. */
export function Brand() {
  return (
    <h1 class="brand">
      <svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="3" /></svg>
      Everturn
    </h1>
  );
}
