/** Files that go with the next message. They are uploaded when they are chosen, wherever somebody goes meanwhile. */

import type { PendingMessage } from "everturn-client";
import { changeDraft, type Draft, type DraftFile, draftOf, nextNumber } from "./drafts";
import { everturn } from "./everturn";
import { Fault, visible } from "./shown";
import { texts } from "./texts";

/** The most files of a message, as the API has it. */
const MOST = 10;
/** What a file is when the browser does not know: the gateway looks at its bytes anyway. */
const UNKNOWN_TYPE = "text/plain";

/** A file that was uploaded, as a message names it. */
export type Ready = NonNullable<PendingMessage["attachments"]>[number];

export interface Attachments {
  readonly files: readonly DraftFile[];
  /** False while one is being uploaded, or could not be. */
  readonly areReady: boolean;
  readonly ready: () => Ready[];
  readonly add: (files: FileList) => void;
  readonly remove: (file: DraftFile) => void;
}

/** The files of a draft, by the id of the draft's conversation. */
export function attachmentsOf(id: string, { files }: Draft): Attachments {
  return {
    files,
    areReady: files.every((file) => file.blobId !== undefined),
    ready: () => files.flatMap(({ blobId }) => (blobId === undefined ? [] : [{ blob_id: blobId }])),
    add: (chosen) => {
      const added = [...chosen].slice(0, Math.max(0, MOST - files.length)).map((file) => upload(id, file));
      changeDraft(id, { files: [...files, ...added] });
    },
    remove: ({ number }) => changeDraft(id, { files: files.filter((file) => file.number !== number) }),
  };
}

/** Begins to upload a file, which the draft learns the end of. */
function upload(id: string, file: File): DraftFile {
  const [number, stop] = [nextNumber(), new AbortController()];
  const change = (now: Partial<DraftFile>) => {
    const { files } = draftOf(id);
    if (!stop.signal.aborted) changeDraft(id, { files: files.map((known) => (known.number === number ? { ...known, ...now } : known)) });
  };
  everturn
    .upload(file, { mediaType: file.type || UNKNOWN_TYPE, fileName: file.name, signal: stop.signal })
    .then((blob) => change({ blobId: blob.blob_id }), (error: unknown) => change({ error }));
  return { number, name: file.name, bytes: file.size, upload: stop };
}

export function AttachmentList({ attachments }: { attachments: Attachments }) {
  if (attachments.files.length === 0) return null;
  return (
    <ul class="attachments" aria-label={texts.attachments}>
      {attachments.files.map((file) => (
        <li key={file.number} data-attachment={stateOf(file)}>
          <bdi>{visible(file.name)}</bdi> <span class="hint">{size(file.bytes)}</span>{" "}
          {file.error !== undefined && <span role="alert"><Fault error={file.error} /></span>}
          {file.isLost && <span role="alert">{texts.uploadLost}</span>}
          {stateOf(file) === "uploading" && <span role="status">{texts.uploading}</span>}
          <button type="button" class="quiet" aria-label={texts.removeFile(visible(file.name))} onClick={() => attachments.remove(file)}>
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

function stateOf({ error, isLost, blobId }: DraftFile): "failed" | "ready" | "uploading" {
  if (error !== undefined || isLost) return "failed";
  return blobId === undefined ? "uploading" : "ready";
}

function size(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
