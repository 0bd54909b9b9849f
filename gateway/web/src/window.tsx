/**
 * A long list of which only the rows in sight are in the document, with some around them; gaps stand for the others. The rows
 * lie in the normal flow, so they have any height, and may change it. After each change the view is moved so that what was
 * in sight is where it was: whatever is above it may come, go or grow.
 */

import type { ComponentChildren, RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Keyed, Places, type View } from "./places";

/** How far around the view rows are in the document: a part of the view's height. */
const AROUND = 0.75;

/** Pixels from the end within which a view that goes down counts as being there. */
const NEAR = 80;

/** Milliseconds without a scroll after which a browser scrolls no more. */
const REST_MS = 150;

/** How often in a row rows are added, at the most, until those that are in the document fill the view. */
const MOST_REDRAWS = 8;

interface RowWindowProps<Row extends Keyed> {
  /** What scrolls. */
  box: RefObject<HTMLElement | null>;
  rows: readonly Row[];
  /** Pixels of a row that was never in the document. */
  estimate: (row: Row) => number;
  /** Rows that stay in the document wherever the view is. */
  isKept: (row: Row) => boolean;
  /** The view is at the end, and stays there whatever comes. */
  isAtEnd: RefObject<boolean>;
  /** There are rows before these ones. */
  isCut: boolean;
  isBusy: boolean;
  /** The view has moved. `isAtEnd` says where to. */
  onMove: () => void;
  nameOf: (row: Row) => string;
  children: (row: Row) => ComponentChildren;
}

export function RowWindow<Row extends Keyed>(props: RowWindowProps<Row>) {
  const { rows, nameOf, children, isAtEnd } = props;
  const { list, shown, places } = useWindow(props);
  // Whoever opens something wants to read it from its beginning.
  const onClick = (event: Event) => {
    if ((event.target as Element).closest("summary, [data-opens]")) isAtEnd.current = false;
  };
  const gap = (from: number, to: number) => {
    const height = places.height(from, to);
    const key = from === 0 ? "gap-first" : to === rows.length ? "gap-last" : `gap-${from}`;
    return height > 0 && <div key={key} style={{ height: `${height}px` }} />;
  };
  return (
    <div role={rows.length > 0 ? "feed" : undefined} aria-busy={props.isBusy} ref={list} onClickCapture={onClick}>
      {shown.flatMap((at, nth) => {
        const row = rows[at]!;
        return [
          gap(nth === 0 ? 0 : shown[nth - 1]! + 1, at),
          <article
            key={row.key}
            class="row"
            data-row={row.key}
            aria-label={nameOf(row)}
            aria-posinset={at + 1}
            aria-setsize={props.isCut ? -1 : rows.length}
          >
            {children(row)}
          </article>,
        ];
      })}
      {gap(shown.length === 0 ? 0 : shown.at(-1)! + 1, rows.length)}
    </div>
  );
}

/** Which rows are in the document. */
function useWindow<Row extends Keyed>({ box, rows, estimate, isKept, isAtEnd, onMove }: RowWindowProps<Row>) {
  const list = useRef<HTMLDivElement>(null);
  const places = useMemo(() => new Places(estimate), []);
  places.take(rows);
  const view = (): View => {
    const { scrollTop = 0, clientHeight = innerHeight } = box.current ?? {};
    return { scrollTop, clientHeight, base: list.current?.offsetTop ?? 0 };
  };
  const now = view();
  const [first, end] = places.range(isAtEnd.current ? places.end(now) : places.target(now), now, AROUND * now.clientHeight);
  const focused = document.activeElement?.closest<HTMLElement>("[data-row]")?.dataset["row"];
  const shown: number[] = [];
  rows.forEach((row, at) => {
    if ((at >= first && at < end) || row.key === focused || isKept(row)) shown.push(at);
  });

  /** Measures the rows, moves the view, and says whether rows are missing in it. */
  const settle = (isMoving: boolean): boolean => {
    const [scrolled, rowsInDocument] = [box.current, list.current];
    if (!scrolled || !rowsInDocument) return false;
    places.measure(rowsInDocument);
    hold(scrolled, rowsInDocument, isAtEnd.current ? undefined : places.target(view()) + view().base, isMoving);
    if (distanceFromEnd(scrolled) < 1) isAtEnd.current = true;
    const there = new Set(shown);
    const settled = view();
    places.remember(settled, (at) => there.has(at));
    const [from, until] = places.range(settled.scrollTop - settled.base, settled, (AROUND / 2) * settled.clientHeight);
    for (let at = from; at < until; at++) if (!there.has(at)) return true;
    return false;
  };
  const move = (): boolean => {
    // Something that comes at the end makes the way there longer, too. But only who goes up leaves it, by however little.
    const [way, distance] = [places.movedBy(view()), distanceFromEnd(box.current!)];
    if (way !== 0) isAtEnd.current = distance < 1 || (way > 0 && distance < NEAR);
    onMove();
    return way !== 0;
  };
  useSettling(box, list, settle, move);
  return { list, shown, places };
}

/**
 * Moves the view to a place, or to the end. That would stop a browser that is scrolling smoothly, so the list is moved against
 * the view meanwhile, as long as the view is far enough from the beginning to show no empty space before it.
 */
function hold(view: HTMLElement, list: HTMLElement, place: number | undefined, isMoving: boolean): void {
  const shift = Number.parseFloat(list.style.marginTop) || 0;
  const needed = place === undefined ? 0 : view.scrollTop - (place - shift);
  if (place !== undefined && isMoving && Math.abs(needed) < view.scrollTop / 2) {
    if (Math.abs(needed - shift) >= 1) list.style.marginTop = `${needed}px`;
    return;
  }
  if (shift !== 0) list.style.marginTop = "";
  const to = place === undefined ? view.scrollHeight - view.clientHeight : place - shift;
  if (Math.abs(view.scrollTop - to) >= 1) view.scrollTop = to;
}

/** Settles after each change: after a rendering, a scroll, and when rows or the view have another height. */
function useSettling(
  box: RefObject<HTMLElement | null>,
  list: RefObject<HTMLElement | null>,
  settle: (isMoving: boolean) => boolean,
  move: () => boolean,
) {
  const [, redraw] = useState({});
  const redraws = useRef(0);
  const isMoving = useRef(false);
  const latest = useRef({ settle, move });
  latest.current = { settle, move };
  useLayoutEffect(() => {
    const isMissing = latest.current.settle(isMoving.current);
    redraws.current = isMissing ? redraws.current + 1 : 0;
    if (isMissing && redraws.current <= MOST_REDRAWS) redraw({});
  });
  // Not `useEffect`, which cleans up only after the next frame: the browser may report a scroll of a view that has gone by then.
  useLayoutEffect(() => {
    const scrolled = box.current!;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const rest = () => {
      isMoving.current = false;
      if (latest.current.settle(false)) redraw({});
    };
    const onScroll = () => {
      redraws.current = 0;
      if (latest.current.move()) {
        isMoving.current = true;
        clearTimeout(timer);
        timer = setTimeout(rest, REST_MS);
      }
      if (latest.current.settle(isMoving.current)) redraw({});
    };
    // A picture has come, or something was opened. What is drawn now is drawn in the next frame: observers must not nest.
    const observer = new ResizeObserver(() => {
      if (latest.current.settle(isMoving.current)) requestAnimationFrame(() => redraw({}));
    });
    scrolled.addEventListener("scroll", onScroll, { passive: true });
    observer.observe(scrolled);
    observer.observe(list.current!);
    return () => {
      clearTimeout(timer);
      scrolled.removeEventListener("scroll", onScroll);
      observer.disconnect();
    };
  }, []);
}

function distanceFromEnd(view: Element): number {
  return view.scrollHeight - view.scrollTop - view.clientHeight;
}
