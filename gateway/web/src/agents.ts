/** The agents that conversations may have, and the agent that somebody chose last. */

import type { api } from "everturn-client";
import { useEffect, useState } from "preact/hooks";
import { everturn } from "./everturn";

/** Where a browser keeps the name of the agent that was chosen last. */
const KEY = "everturn-agent";

export type Agent = api.AgentList["agents"][number];

/** What is known of the agents. */
export interface Agents {
  /** The agents by their names; undefined until they are known. */
  readonly list: readonly Agent[] | undefined;
  readonly error: unknown;
  /** The agent of a new conversation; undefined while no agent is known. */
  readonly chosen: Agent | undefined;
  readonly choose: (name: string) => void;
}

/** Reads the agents at first, and again where each new conversation begins: a configuration may have changed. */
export function useAgents(isNew: boolean): Agents {
  const [known, setKnown] = useState<api.AgentList>();
  const [error, setError] = useState<unknown>();
  const [name, setName] = useState(kept);
  useEffect(() => {
    if (!isNew && known) return;
    everturn.agents().then((found) => (setKnown(found), setError(undefined)), setError);
  }, [isNew]);
  const find = (wanted: string | null) => known?.agents.find((agent) => agent.name === wanted);
  const choose = (wanted: string) => {
    setName(wanted);
    keep(wanted);
  };
  const chosen = find(name) ?? find(known?.default_agent ?? null) ?? known?.agents[0];
  return { list: known?.agents, error, chosen, choose };
}

function kept(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** A browser that keeps nothing has the choice until the next reload. */
function keep(name: string): void {
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // The choice is in memory.
  }
}
