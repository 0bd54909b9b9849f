/**
 * What was written and not sent, for each conversation. A tab keeps drafts for as long as it is open, over reloads, too.
 */

/** Drafts that a tab keeps. Past it, the one that was changed first is forgotten. */
const MOST = 50;

/** Characters of all drafts together. */
const MOST_CHARACTERS = 500_000;

const KEY = "everturn-drafts";

/** A file that was uploaded for a message. */
export interface UploadedFile {
  readonly name: string;
  readonly bytes: number;
  readonly blobId: string;
}

export interface Draft {
  readonly text: string;
  readonly files: readonly UploadedFile[];
}

const EMPTY: Draft = { text: "", files: [] };

const drafts = read();

/** The draft of a conversation, by the conversation's id; the draft of a new conversation has the id "". */
export function draftOf(id: string): Draft {
  return drafts.get(id) ?? EMPTY;
}

/** Keeps a draft. An empty draft is forgotten. */
export function keepDraft(id: string, draft: Draft): void {
  drafts.delete(id);
  if (draft.text !== "" || draft.files.length > 0) drafts.set(id, draft);
  let characters = 0;
  for (const { text } of drafts.values()) characters += text.length;
  for (const [oldest, { text }] of drafts) {
    if (drafts.size <= MOST && characters <= MOST_CHARACTERS) break;
    drafts.delete(oldest);
    characters -= text.length;
  }
  write();
}

/** Forgets the draft of a conversation whose message was sent, or that was removed. */
export function forgetDraft(id: string): void {
  keepDraft(id, EMPTY);
}

/** Forgets all drafts: somebody else may sign in. */
export function forgetDrafts(): void {
  drafts.clear();
  write();
}

function read(): Map<string, Draft> {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(KEY) ?? "[]") as [string, Draft][]);
  } catch {
    return new Map();
  }
}

/** A browser without room keeps drafts until the next reload. */
function write(): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...drafts]));
  } catch {
    // Drafts are in memory.
  }
}
