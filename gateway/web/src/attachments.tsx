/** Files that go with the next message. They are uploaded when they are chosen. */

import type { PendingMessage } from "everturn-client";
import { useEffect, useRef, useState } from "preact/hooks";
import type { UploadedFile } from "./drafts";
import { everturn } from "./everturn";
import { Fault, visible } from "./shown";
import { texts } from "./texts";

/** The most files of a message, as the API has it. */
const MOST = 10;
/** What a file is when the browser does not know: the gateway looks at its bytes anyway. */
const UNKNOWN_TYPE = "text/plain";

/** A file that was uploaded, as a message names it. */
export type Ready = NonNullable<PendingMessage["attachments"]>[number];

interface Attachment {
  readonly number: number;
  readonly name: string;
  readonly bytes: number;
  /** There when it was uploaded. */
  readonly blobId?: string;
  readonly error?: unknown;
}

export interface Attachments {
  readonly files: readonly Attachment[];
  /** False while one is being uploaded, or could not be. */
  readonly areReady: boolean;
  readonly uploaded: readonly UploadedFile[];
  readonly ready: () => Ready[];
  readonly add: (files: FileList) => void;
  readonly remove: (file: Attachment) => void;
  readonly clear: () => void;
}

/** `first` were uploaded before, for the same message. */
export function useAttachments(first: readonly UploadedFile[]): Attachments {
  const [files, setFiles] = useState<readonly Attachment[]>(() => first.map((file, at) => ({ ...file, number: at + 1 })));
  const last = useRef(first.length);
  const uploads = useRef(new Map<number, AbortController>());
  useEffect(() => () => uploads.current.forEach((upload) => upload.abort()), []);
  const change = (number: number, now: Partial<Attachment>) =>
    setFiles((known) => known.map((file) => (file.number === number ? { ...file, ...now } : file)));
  const upload = (file: File) => {
    const number = ++last.current;
    const stop = new AbortController();
    uploads.current.set(number, stop);
    everturn
      .upload(file, { mediaType: file.type || UNKNOWN_TYPE, fileName: file.name, signal: stop.signal })
      .then((blob) => change(number, { blobId: blob.blob_id }))
      .catch((error: unknown) => change(number, { error }))
      .finally(() => uploads.current.delete(number));
    return { number, name: file.name, bytes: file.size };
  };
  const uploaded = files.flatMap(({ name, bytes, blobId }) => (blobId === undefined ? [] : [{ name, bytes, blobId }]));
  return {
    files,
    uploaded,
    areReady: files.every((file) => file.blobId !== undefined),
    ready: () => uploaded.map(({ blobId }) => ({ blob_id: blobId })),
    add: (chosen) => {
      const added = [...chosen].slice(0, Math.max(0, MOST - files.length)).map(upload);
      setFiles((known) => [...known, ...added]);
    },
    remove: ({ number }) => {
      uploads.current.get(number)?.abort();
      setFiles((known) => known.filter((file) => file.number !== number));
    },
    clear: () => setFiles([]),
  };
}

export function AttachmentList({ attachments }: { attachments: Attachments }) {
  if (attachments.files.length === 0) return null;
  return (
    <ul class="attachments" aria-label={texts.attachments}>
      {attachments.files.map((file) => (
        <li key={file.number} data-attachment={file.error !== undefined ? "failed" : file.blobId ? "ready" : "uploading"}>
          <bdi>{visible(file.name)}</bdi> <span class="hint">{size(file.bytes)}</span>{" "}
          {file.error !== undefined && <span role="alert"><Fault error={file.error} /></span>}
          {file.error === undefined && file.blobId === undefined && <span role="status">{texts.uploading}</span>}
          <button type="button" class="quiet" aria-label={texts.removeFile(visible(file.name))} onClick={() => attachments.remove(file)}>
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

function size(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
