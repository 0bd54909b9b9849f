/** A turn on a time axis: a table whose rows have bars, so that it can also be read without seeing it. */

import type { Item, ModelWait, TurnRow, TurnRows } from "everturn-client";
import { useState } from "preact/hooks";
import { refusedText, waitOf } from "../refused";
import { brief, visible } from "../shown";
import { texts } from "../texts";
import { labelOf, took, tokenText } from "./format";
import { JsonBlock } from "./json";
import { type Facts, factsOf, type Records } from "./records";
import { callKey } from "./times";

/** Milliseconds of waiting for a worker that are worth a word; a bar shows shorter ones, too. */
const WORTH_SAYING_MS = 100;
/** Rows that are drawn at first, and again with each step backwards: the newest ones. */
const SHOWN = 200;
/** Places on the axis that have their time. */
const MARKS = [0, 25, 50, 75, 100];

interface WaterfallProps {
  turn: TurnRows;
  items: readonly Item[];
  now: number;
  records: Records | undefined;
  firstTexts: ReadonlyMap<string, number>;
  /** The calls that wait for their provider now. */
  waits: readonly ModelWait[] | undefined;
}

export function Waterfall({ turn, items, now, records, firstTexts, waits }: WaterfallProps) {
  const [count, setCount] = useState(SHOWN);
  const words = texts.developer;
  const axis = { from: turn.started, until: Math.max(turn.ended ?? now, turn.started + 1) };
  const hidden = Math.max(0, turn.rows.length - count);
  const span = axis.until - axis.from;
  return (
    <>
      {hidden > 0 && (
        <button type="button" class="quiet" onClick={() => setCount(count + SHOWN)}>{words.earlierRows(Math.min(hidden, SHOWN))}</button>
      )}
      <div class="wide" tabIndex={0} role="region" aria-label={words.waterfall}>
        <table class="waterfall" aria-label={words.waterfall}>
          <thead>
            <tr>
              <th scope="col">{words.what}</th>
              <th scope="col">{words.starts}</th>
              <th scope="col" class="axis">
                <span class="unseen">{words.time}</span>
                <span class="marks" aria-hidden="true">
                  {MARKS.map((at) => <span key={at} style={{ left: `${at}%` }}>{took((span * at) / 100)}</span>)}
                </span>
              </th>
              <th scope="col">{words.takes}</th>
              <th scope="col">{words.details}</th>
            </tr>
          </thead>
          <tbody>
            {turn.rows.slice(hidden).map((row, at) => {
              const first = firstTexts.get(callKey(row));
              const facts = factsOf(row, records);
              // An LLM call that goes on is the same row when it has ended.
              const key = row.kind === "llm_call" ? `llm-${callKey(row)}` : (row.item ?? `row-${hidden + at}`);
              const wait = waitOf(row, turn.rows, waits);
              const refused = wait ? refusedText(wait, now) : "";
              return <Row key={`${row.kind}/${key}`} row={row} axis={axis} facts={facts} items={items} firstText={first} refused={refused} />;
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

interface Axis {
  readonly from: number;
  readonly until: number;
}

interface RowProps {
  row: TurnRow;
  axis: Axis;
  facts: Facts;
  items: readonly Item[];
  firstText: number | undefined;
  /** Why the call waits, and until when; `""` for a call that does not wait. */
  refused: string;
}

function Row({ row, axis, facts, items, firstText, refused }: RowProps) {
  const [isOpen, setOpen] = useState(false);
  const ended = row.ended ?? axis.until;
  const item = isOpen ? items.find((it) => it.id === row.item) : undefined;
  const isNote = row.kind === "note";
  return (
    <>
      <tr class={`kind-${row.kind} ${row.state}`} data-kind={row.kind} data-depth={row.depth} data-state={row.state}>
        <th scope="row" style={{ paddingLeft: `${0.4 + row.depth}rem` }}>
          <button type="button" class="quiet row-label" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{labelOf(row)}</button>
        </th>
        <td class="number">{took(row.started - axis.from)}</td>
        <td class="axis"><Bar row={row} axis={axis} ended={ended} /></td>
        <td class="number">{isNote ? "" : took(ended - row.started)}</td>
        <td class="remark">{[refused, ...remarks(row, ended, facts, firstText, items)].filter(Boolean).join(" · ")}</td>
      </tr>
      {isOpen && (
        <tr class="row-details">
          <td colSpan={5}><JsonBlock value={{ ...row, ...(item && { item }), ...facts }} /></td>
        </tr>
      )}
    </>
  );
}

/** The bar of a row: light while it waited, full while it ran. */
function Bar({ row, axis, ended }: { row: TurnRow; axis: Axis; ended: number }) {
  const place = (moment: number) => Math.min(100, Math.max(0, ((moment - axis.from) / (axis.until - axis.from)) * 100));
  const part = (name: string, from: number, until: number) => (
    <span class={`bar-part ${name}`} style={{ left: `${place(from)}%`, width: `${place(until) - place(from)}%` }} />
  );
  const ranFrom = row.ranFrom ?? ended;
  return (
    <div class="track" aria-hidden="true">
      {ranFrom > row.started && part("waited", row.started, ranFrom)}
      {row.ranFrom !== undefined && part("ran", ranFrom, ended)}
    </div>
  );
}

/** What else is to be said of a row: how it stands, what it waited for, tokens, cost and tries. */
function remarks(row: TurnRow, ended: number, facts: Facts, firstText: number | undefined, items: readonly Item[]): string[] {
  const words = texts.developer;
  if (row.kind === "note") return [noteText(items.find((item) => item.id === row.item))];
  const { step, tries, tool } = facts;
  const waitedFor = words.waited[row.waitsFor ?? ""] ?? "";
  const waitedMs = (row.ranFrom ?? row.started) - row.started;
  const isWorthSaying = waitedMs > 0 && (row.waitsFor !== "worker" || waitedMs >= WORTH_SAYING_MS);
  const hasFirst = row.kind === "llm_call" && firstText !== undefined && firstText >= row.started && firstText <= ended + 1;
  const parts = [
    stateText(row, waitedFor),
    isWorthSaying ? words.waitedFor(took(waitedMs), waitedFor) : "",
    tries !== undefined && tries > 1 ? words.tries(tries) : "",
    tool && tool.attempts > 1 ? words.attempts(tool.attempts) : "",
    hasFirst ? words.firstText(took(firstText - row.started)) : "",
    visible(step?.model ?? ""),
    tokenText(step?.usage as never),
    step?.cost_usd ? `$${step.cost_usd}` : "",
  ];
  return parts.filter((part) => part !== "");
}

function stateText({ state, ranFrom }: TurnRow, waitsFor: string): string {
  if (state === "done") return "";
  return state === "running" && ranFrom === undefined ? texts.developer.waitsFor(waitsFor) : texts[state];
}

function noteText(item: Item | undefined): string {
  if (item?.type !== "note") return "";
  const { from, to, code, skill_name: skill } = item.data;
  if (item.event === "model_fallback") return brief(`${from} → ${to} (${code})`);
  return typeof skill === "string" ? brief(skill) : "";
}
