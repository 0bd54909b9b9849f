/** The progress of running tools, in words. */

import type { ToolProgress } from "everturn-client";
import { brief } from "./shown";

/** The amounts and the words of a report: `3/10 copying`. */
export function progressText({ progress, total, message }: ToolProgress): string {
  const amounts = progress === undefined ? "" : total === undefined ? `${progress}` : `${progress}/${total}`;
  return [amounts, brief(message)].filter((words) => words !== "").join(" ");
}
