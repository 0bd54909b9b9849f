/** The sources that a text cites. */

import type { Citation } from "everturn-client";
import { useKept } from "./kept";
import { Link } from "./markdown";
import { visible } from "./shown";
import { texts } from "./texts";

/** The numbered list below a text: some models write the numbers of the list into their text. */
export function Sources({ of, citations }: { of: string; citations: readonly Citation[] | undefined }) {
  const [isOpen, setOpen] = useKept(`sources ${of}`, false);
  if (citations === undefined || citations.length === 0) return null;
  return (
    <details class="item thought sources" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{texts.sources(citations.length)}</summary>
      <ol>
        {citations.map(({ url, title, text }, at) => (
          <li key={at}>
            <Link href={url ?? ""}><bdi>{visible(title ?? url ?? "")}</bdi></Link>
            {text !== undefined && <> — <q>{visible(text)}</q></>}
          </li>
        ))}
      </ol>
    </details>
  );
}
