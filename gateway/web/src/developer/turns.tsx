/** The turns of a conversation, and the one that is chosen. */

import {
  type Conversation,
  eventData,
  type Item,
  Reducer,
  type TurnRows,
  turnRows,
  type Update,
} from "everturn-client";
import { memo } from "preact/compat";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useNow } from "../clock";
import { PAGE } from "../everturn";
import { More } from "../more";
import { addressOf } from "../route";
import { brief, Fault } from "../shown";
import { texts } from "../texts";
import { Executions } from "./executions";
import { amountsOf, outcomeOf, took, wholeTurns } from "./format";
import { useRecords } from "./records";
import { useFirstTexts } from "./times";
import { Waterfall } from "./waterfall";

/** Turns that the list shows at first, and again with each step backwards. */
const SHOWN = 50;
/** Pages of events of a turn that is not among those that are known; 1000 events each. */
const MAX_PAGES = 10;
/** Milliseconds between two drawings of a turn that runs. */
const TICK_MS = 500;

interface TurnsProps {
  chat: Conversation;
  update: Update;
  /** The number of the first event of the chosen turn; by default the newest turn. */
  chosen: number | undefined;
}

export function Turns({ chat, update, chosen }: TurnsProps) {
  const { state, hasOlder, connection } = update;
  const items = useUnchanged(state.items);
  const turns = useMemo(() => wholeTurns(turnRows(items, state.turn), items), [items, state.turn]);
  const known = chosen === undefined ? turns.at(-1) : turns.find((turn) => turn.sequenceNumber === chosen);
  const isLoaded = items.length > 0 || connection.status === "open";
  const found = useOldTurn(chat, isLoaded && !known ? chosen : undefined);
  const turn = known ?? found.turn;
  // A turn may be longer than what is read at first.
  useOlder(chat, isLoaded && turns.length === 0 && hasOlder && connection.status === "open");
  return (
    <div class="developer-body">
      <TurnList chat={chat} turns={turns} hasOlder={hasOlder} chosen={turn?.sequenceNumber} />
      {found.error !== undefined && <p role="alert"><Fault error={found.error} /></p>}
      {found.isMissing && <p role="alert">{texts.developer.noTurn}</p>}
      {!turn && (found.isReading || !isLoaded) && <p class="hint">{texts.loading}</p>}
      {isLoaded && turns.length === 0 && !hasOlder && !turn && !found.isMissing && <p class="hint">{texts.developer.noTurns}</p>}
      {turn && <Turn key={turn.id} chat={chat} turn={turn} items={known ? items : found.items} update={update} />}
    </div>
  );
}

/** One turn: what it cost, its waterfall, and its agent executions. */
function Turn({ chat, turn, items, update }: { chat: Conversation; turn: TurnRows; items: readonly Item[]; update: Update }) {
  const last = items.findLast((item) => item.turn === turn.id)?.sequenceNumber ?? 0;
  const { records, error } = useRecords(chat, turn.id, `${last}/${turn.rows.length}/${turn.ended ?? ""}`);
  const firstTexts = useFirstTexts(update, turn);
  const now = Math.max(useNow(turn.ended === undefined, TICK_MS), items.at(-1)?.timestamp ?? 0);
  const root = records?.executions.find((execution) => execution.depth === 0);
  const parts = [outcomeOf(turn), took((turn.ended ?? now) - turn.started), ...amountsOf(turn)];
  return (
    <article class="turn" data-turn={turn.sequenceNumber} data-message={turn.id}>
      <h3><bdi>{brief(turn.said ?? turn.id)}</bdi></h3>
      <p class="hint turn-about">
        {parts.join(" · ")}{" "}
        {root?.workflow_url && <a href={root.workflow_url} target="_blank" rel="noopener">{texts.developer.temporal}</a>}
      </p>
      <Waterfall turn={turn} items={items} now={now} records={records} firstTexts={firstTexts} waits={update.state.waits} />
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      {records && <Executions chat={chat} records={records} now={now} />}
    </article>
  );
}

interface ListProps {
  chat: Conversation;
  turns: readonly TurnRows[];
  hasOlder: boolean;
  chosen: number | undefined;
}

/** The newest turn comes first. */
function TurnList({ chat, turns, hasOlder, chosen }: ListProps) {
  const [count, setCount] = useState(SHOWN);
  const [isReading, setReading] = useState(false);
  const shown = turns.slice(-count).reverse();
  const readOlder = () => {
    setCount(count + SHOWN);
    if (turns.length >= count + SHOWN || !hasOlder) return;
    setReading(true);
    void chat.older(PAGE).catch(() => undefined).finally(() => setReading(false));
  };
  return (
    <nav class="turn-list" aria-label={texts.developer.turns} tabIndex={0}>
      <ol reversed>
        {shown.map((turn) => <TurnLine key={turn.id} id={chat.id} turn={turn} isChosen={turn.sequenceNumber === chosen} />)}
      </ol>
      {(hasOlder || turns.length > count) && (
        <More isBusy={isReading} onMore={readOlder}>{isReading ? texts.loading : texts.earlier}</More>
      )}
    </nav>
  );
}

const TurnLine = memo(function TurnLine({ id, turn, isChosen }: { id: string; turn: TurnRows; isChosen: boolean }) {
  const time = turn.ended === undefined ? [] : [took(turn.ended - turn.started)];
  const parts = [outcomeOf(turn), ...time, ...amountsOf(turn)];
  const state = turn.end?.outcome ?? (turn.ended === undefined ? "running" : "");
  return (
    <li>
      <a href={addressOf(id, { part: "turns", turn: turn.sequenceNumber })} aria-current={isChosen ? "true" : undefined}>
        <span class={`dot ${state}`} />
        <bdi>{brief(turn.said ?? turn.id)}</bdi>
        <span class="hint">{parts.join(" · ")}</span>
      </a>
    </li>
  );
});

/** The same array for as long as its items are the same: texts that are written change none of them. */
function useUnchanged(items: readonly Item[]): readonly Item[] {
  const before = useRef(items);
  const isSame = before.current.length === items.length && items.every((item, at) => item === before.current[at]);
  if (!isSame) before.current = items;
  return before.current;
}

/** Reads older events, a page at a time, while that is needed. */
function useOlder(chat: Conversation, isNeeded: boolean): void {
  const isReading = useRef(false);
  useEffect(() => {
    if (!isNeeded || isReading.current) return;
    isReading.current = true;
    void chat.older().catch(() => undefined).finally(() => (isReading.current = false));
  });
}

interface OldTurn {
  readonly turn?: TurnRows | undefined;
  readonly items: readonly Item[];
  readonly isReading?: boolean;
  readonly isMissing?: boolean;
  readonly error?: unknown;
}

/** Reads a turn that is not among those that are known: its own events, and none between it and them. */
function useOldTurn(chat: Conversation, first: number | undefined): OldTurn {
  const [found, setFound] = useState<OldTurn & { first?: number | undefined }>({ items: [] });
  useEffect(() => {
    if (first === undefined) return undefined;
    const stop = new AbortController();
    setFound({ first, items: [], isReading: true });
    readTurn(chat, first, stop.signal).then(
      (read) => !stop.signal.aborted && setFound({ first, ...read }),
      (error: unknown) => !stop.signal.aborted && setFound({ first, items: [], error }),
    );
    return () => stop.abort();
  }, [chat, first]);
  return found.first === first && first !== undefined ? found : { items: [], isReading: first !== undefined };
}

async function readTurn(chat: Conversation, first: number, signal: AbortSignal): Promise<OldTurn> {
  const reducer = new Reducer({ cursor: String(Math.max(0, first - 1)) });
  let next = first;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { events, has_more } = await chat.events({ fromSequence: next, signal });
    for (const event of events) reducer.apply({ data: eventData(event) });
    next = reducer.lastSequence + 1;
    if (!has_more || turnsOf(reducer)[0]?.end) break;
  }
  const { items } = reducer.state;
  const found = wholeTurns(turnsOf(reducer), items)[0];
  return found?.sequenceNumber === first ? { turn: found, items } : { items, isMissing: true };
}

function turnsOf({ state }: Reducer): TurnRows[] {
  return turnRows(state.items, state.turn);
}
