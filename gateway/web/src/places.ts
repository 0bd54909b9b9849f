/**
 * Where the rows of a long list are. Heights are those that rows had when they were last in the document, and estimates
 * before.
 */

/** A row has a name of its own. */
export interface Keyed {
  readonly key: string;
}

/** What of the list is in sight: pixels. */
export interface View {
  /** How far what scrolls has been scrolled. */
  readonly scrollTop: number;
  readonly clientHeight: number;
  /** Where the list begins in what scrolls. */
  readonly base: number;
}

export class Places<Row extends Keyed> {
  readonly #estimate: (row: Row) => number;
  readonly #heights = new Map<string, number>();
  #rows: readonly Row[] = [];
  #indexes: ReadonlyMap<string, number> = new Map();
  /** Where each row begins in the list, and where the list ends. */
  #tops = new Float64Array(1);
  /** Rows that were in sight, and how far below the top of the view: the ones that were in the document come first. */
  #seen: readonly { readonly key: string; readonly top: number }[] = [];
  /** How far had been scrolled then. */
  #seenAt = 0;

  constructor(estimate: (row: Row) => number) {
    this.#estimate = estimate;
  }

  /** Takes the rows of now. */
  take(rows: readonly Row[]): void {
    if (rows !== this.#rows) {
      this.#rows = rows;
      this.#indexes = new Map(rows.map((row, at) => [row.key, at]));
      this.#forgetOthers();
    }
    this.#add();
  }

  /** Takes the heights of the rows that are in the document. */
  measure(list: Element): void {
    for (const element of list.children) {
      const key = (element as HTMLElement).dataset["row"];
      if (key !== undefined) this.#heights.set(key, element.getBoundingClientRect().height);
    }
    this.#add();
  }

  /** The height of the rows from one to before another. */
  height(from: number, to: number): number {
    return this.#tops[to]! - this.#tops[from]!;
  }

  /** Where the view is to be in the list: where the first row that was in sight is where it was. */
  target({ scrollTop, base }: View): number {
    const held = this.#seen.find(({ key }) => this.#indexes.has(key));
    if (!held) return scrollTop - base;
    return this.#tops[this.#indexes.get(held.key)!]! - held.top + scrollTop - this.#seenAt;
  }

  /** Where the view is to be to have the end of the list in sight. */
  end({ clientHeight }: View): number {
    return Math.max(0, this.height(0, this.#rows.length) - clientHeight);
  }

  /** The rows, from one to before another, that a view at this place has in sight, with this many pixels around. */
  range(at: number, { clientHeight }: View, around: number): [number, number] {
    return [this.#indexAt(at - around), Math.min(this.#rows.length, this.#indexAt(at + clientHeight + around) + 1)];
  }

  /** Remembers what is in sight. Some of it is not in the document yet when somebody goes fast: the rest holds the place. */
  remember(view: View, isThere: (at: number) => boolean): void {
    const at = view.scrollTop - view.base;
    const [from, to] = this.range(at, view, 0);
    const places = this.#rows.slice(from, to).map(({ key }, nth) => ({ key, top: this.#tops[from + nth]! - at, nth }));
    const first = places.filter(({ nth }) => isThere(from + nth));
    this.#seen = [...first, ...places];
    this.#seenAt = view.scrollTop;
  }

  /** How far the view has moved since it was remembered: down, or up when it is negative. */
  movedBy({ scrollTop }: View): number {
    return scrollTop - this.#seenAt;
  }

  #add(): void {
    const tops = new Float64Array(this.#rows.length + 1);
    this.#rows.forEach((row, at) => (tops[at + 1] = tops[at]! + (this.#heights.get(row.key) ?? this.#estimate(row))));
    this.#tops = tops;
  }

  /** The row at this height of the list. */
  #indexAt(height: number): number {
    let [low, high] = [0, Math.max(0, this.#rows.length - 1)];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#tops[middle]! <= height) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Forgets the heights of rows that are gone, once they are as many as those that are there. */
  #forgetOthers(): void {
    if (this.#heights.size < 2 * this.#indexes.size) return;
    for (const key of this.#heights.keys()) if (!this.#indexes.has(key)) this.#heights.delete(key);
  }
}
