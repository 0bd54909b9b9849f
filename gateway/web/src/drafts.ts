/**
 * What was written and not sent, for each conversation. A tab keeps drafts for as long as it is open, over reloads, too. Files are
 * uploaded while somebody looks at another conversation.
 */

/** Drafts that a tab keeps. Past it, the one that was changed first is forgotten. */
const MOST = 50;

/** Characters of all drafts together. */
const MOST_CHARACTERS = 500_000;

const KEY = "everturn-drafts";

/** A file of a message that is being written. */
export interface DraftFile {
  /** The file's own number in the tab. */
  readonly number: number;
  readonly name: string;
  readonly bytes: number;
  /** There when the file was uploaded. */
  readonly blobId?: string;
  /** Why the upload failed. */
  readonly error?: unknown;
  /** The page was loaded anew before the file was uploaded. */
  readonly isLost?: boolean;
  /** Ends the upload. */
  readonly upload?: AbortController;
}

export interface Draft {
  readonly text: string;
  readonly files: readonly DraftFile[];
}

/** What a reload leaves of a file. */
type StoredFile = Pick<DraftFile, "name" | "bytes" | "blobId">;

const EMPTY: Draft = { text: "", files: [] };

let lastNumber = 0;
const drafts = read();
const listeners = new Set<() => void>();

/** A number for a file. */
export function nextNumber(): number {
  return ++lastNumber;
}

/** The draft of a conversation, by the conversation's id; the draft of a new conversation has the id "". */
export function draftOf(id: string): Draft {
  return drafts.get(id) ?? EMPTY;
}

/** Calls the listener after each change. Returns what ends that. */
export function followDrafts(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Changes a draft. An empty draft is forgotten, and the upload of a file that is not in the draft any more ends. */
export function changeDraft(id: string, change: Partial<Draft>): void {
  const before = draftOf(id);
  const draft = { ...before, ...change };
  for (const file of before.files) if (!draft.files.some(({ number }) => number === file.number)) file.upload?.abort();
  drafts.delete(id);
  if (draft.text !== "" || draft.files.length > 0) drafts.set(id, draft);
  keepToLimits(id);
  write();
  for (const listener of listeners) listener();
}

/** Forgets the draft of a conversation whose message was sent, or that was removed. */
export function forgetDraft(id: string): void {
  changeDraft(id, EMPTY);
}

/** Forgets all drafts: somebody else may sign in. */
export function forgetDrafts(): void {
  for (const id of [...drafts.keys()]) forgetDraft(id);
}

/** Forgets the drafts that were changed first, but not `changed`. */
function keepToLimits(changed: string): void {
  let characters = 0;
  for (const { text } of drafts.values()) characters += text.length;
  for (const [oldest, { text, files }] of drafts) {
    if ((drafts.size <= MOST && characters <= MOST_CHARACTERS) || oldest === changed) break;
    for (const file of files) file.upload?.abort();
    drafts.delete(oldest);
    characters -= text.length;
  }
}

function read(): Map<string, Draft> {
  try {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as [string, { text: string; files: StoredFile[] }][];
    const file = (kept: StoredFile) => ({ ...kept, number: ++lastNumber, isLost: kept.blobId === undefined });
    return new Map(stored.map(([id, { text, files }]) => [id, { text, files: files.map(file) }]));
  } catch {
    return new Map();
  }
}

/** A browser without room keeps drafts until the next reload. */
function write(): void {
  const file = ({ name, bytes, blobId }: DraftFile) => ({ name, bytes, blobId });
  const stored = Array.from(drafts, ([id, { text, files }]) => [id, { text, files: files.map(file) }]);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(stored));
  } catch {
    // Drafts are in memory.
  }
}
