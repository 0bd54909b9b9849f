/** Files of messages and of results: pictures as pictures, everything else as a link that saves it. */

import type { Json } from "everturn-client";
import { useEffect, useRef, useState } from "preact/hooks";
import { everturn } from "./everturn";
import { bytes, visible } from "./shown";
import { texts } from "./texts";

/** Types that browsers show as a picture and never run. SVG is a document with scripts: it is saved, and not shown. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** A larger picture is loaded when somebody asks for it. */
const MOST_BYTES = 4 * 1024 * 1024;

/** Files of one message or result that are shown. */
const MOST_FILES = 20;

/** How deep in a result files are looked for, and in how many values. */
const MOST_DEPTH = 8;
const MOST_VALUES = 5000;

/** A file that the gateway has. */
export interface FileRef {
  readonly blobId: string;
  readonly mediaType: string;
  readonly name: string;
  readonly bytes?: number;
}

/** The files that are named somewhere in a value. */
export function filesOf(value: Json | undefined): FileRef[] {
  const found = new Map<string, FileRef>();
  let values = 0;
  const look = (at: Json | undefined, depth: number): void => {
    if (typeof at !== "object" || at === null || depth > MOST_DEPTH || found.size >= MOST_FILES) return;
    if (++values > MOST_VALUES) return;
    const file = Array.isArray(at) ? undefined : fileOf(at);
    if (file) found.set(file.blobId, file);
    else for (const inner of Object.values(at)) look(inner, depth + 1);
  };
  look(value, 0);
  return [...found.values()];
}

function fileOf(value: { [name: string]: Json }): FileRef | undefined {
  const { blob_id: blobId, file_name: name, bytes } = value;
  if (typeof blobId !== "string" || !/^[\w-]{1,128}$/.test(blobId)) return undefined;
  const type = value["media_type"] ?? value["type"];
  const mediaType = typeof type === "string" ? type : "";
  return { blobId, mediaType, name: typeof name === "string" ? name : "", ...(typeof bytes === "number" && { bytes }) };
}

export function Files({ files }: { files: readonly FileRef[] }) {
  if (files.length === 0) return null;
  return (
    <ul class="files" aria-label={texts.files}>
      {files.map((file) => (
        <li key={file.blobId}>{PICTURES.has(file.mediaType) ? <Picture file={file} /> : <FileLink file={file} />}</li>
      ))}
    </ul>
  );
}

/** A picture of the gateway's own. It is loaded when it comes into sight. */
function Picture({ file }: { file: FileRef }) {
  const [isAsked, setAsked] = useState(false);
  const [isBroken, setBroken] = useState(false);
  const link = useRef<HTMLAnchorElement>(null);
  // The button that asked for it is gone.
  useEffect(() => {
    if (isAsked) link.current?.focus();
  }, [isAsked]);
  if (isBroken) return <><FileLink file={file} /> <span class="hint">{texts.brokenPicture}</span></>;
  if (!isAsked && (file.bytes ?? 0) > MOST_BYTES) {
    return (
      <>
        <FileLink file={file} />{" "}
        <button type="button" class="quiet" data-opens onClick={() => setAsked(true)}>{texts.showPicture}</button>
      </>
    );
  }
  const name = nameOf(file);
  return (
    <a class="picture" ref={link} href={everturn.blobUrl(file.blobId)} target="_blank" rel="noopener" title={name}>
      <img src={everturn.blobUrl(file.blobId)} alt={name} loading="lazy" decoding="async" onError={() => setBroken(true)} />
    </a>
  );
}

function FileLink({ file }: { file: FileRef }) {
  return (
    <a class="file" href={everturn.blobUrl(file.blobId)} download={nameOf(file)}>
      <bdi>{nameOf(file)}</bdi>
      {file.bytes !== undefined && ` · ${bytes(file.bytes)}`}
    </a>
  );
}

function nameOf({ name, mediaType }: FileRef): string {
  return visible(name || mediaType || texts.file);
}
