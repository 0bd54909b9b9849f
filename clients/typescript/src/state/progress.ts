/** The progress of running tools: rule 11 of the shared transcripts. */

import { text } from "./fields.js";
import type { JsonObject, ToolProgress } from "./state.js";

/** Past so many reports, the oldest is dropped. */
const MAX_REPORTS = 256;

/** The latest reports of running tools: of each tool execution at most one step and one line. */
export class Reports {
  #reports: readonly ToolProgress[] = [];

  /** The reports, the newest last. The array changes only with the reports. */
  get shown(): readonly ToolProgress[] {
    return this.#reports;
  }

  /** Takes a report. True when something changed. */
  apply(data: JsonObject): boolean {
    const executionId = text(data, "execution_id");
    if (!executionId) return false;
    const [progress, total, level] = [number(data, "progress"), number(data, "total"), text(data, "level")];
    const report: ToolProgress = {
      executionId,
      agentExecutionId: text(data, "agent_execution_id"),
      toolName: text(data, "tool_name"),
      ...(progress !== undefined && { progress }),
      ...(total !== undefined && { total }),
      message: text(data, "message"),
      ...(level && { level }),
      messageId: text(data, "message_id"),
    };
    const isReplaced = (other: ToolProgress) =>
      other.executionId === executionId && (other.level === undefined) === (report.level === undefined);
    this.#reports = [...this.#reports.filter((other) => !isReplaced(other)), report].slice(-MAX_REPORTS);
    return true;
  }

  /** Drops the reports of a tool execution that has ended. */
  drop(executionId: string): void {
    this.#keep(this.#reports.filter((report) => report.executionId !== executionId));
  }

  /** Drops the reports of an agent execution that has ended. */
  dropOfAgent(agentExecutionId: string): void {
    this.#keep(this.#reports.filter((report) => report.agentExecutionId !== agentExecutionId));
  }

  /** Drops all reports. True when there were some. */
  clear(): boolean {
    return this.#keep([]);
  }

  #keep(left: readonly ToolProgress[]): boolean {
    const hasChanged = left.length < this.#reports.length;
    if (hasChanged) this.#reports = left;
    return hasChanged;
  }
}

function number(data: JsonObject, name: string): number | undefined {
  const value = data[name];
  return typeof value === "number" ? value : undefined;
}
