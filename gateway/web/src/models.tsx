/** The model of new messages, where an agent has several. */

import type { Conversation } from "everturn-client";
import { useState } from "preact/hooks";
import type { Agent } from "./agents";
import { visible } from "./shown";
import { texts } from "./texts";

/** The models of an agent, and the choice among them. */
export interface ModelChoice {
  /** The names, the agent's own model first. */
  readonly names: readonly string[];
  readonly chosen: string;
  readonly choose: (name: string) => Promise<unknown>;
}

/** The choice of a new conversation; undefined where there is nothing to choose. */
export function useNewChoice(agent: Agent | undefined): ModelChoice | undefined {
  const [wanted, setWanted] = useState<string>();
  const choose = async (name: string) => setWanted(name);
  return choiceOf(agent, wanted, choose);
}

/** The choice of a conversation, which the gateway keeps; undefined where there is nothing to choose. */
export function useChoice(chat: Conversation, agent: Agent | undefined, kept: string | null | undefined): ModelChoice | undefined {
  const [wanted, setWanted] = useState<string>();
  const choose = async (name: string) => {
    setWanted(name);
    try {
      await chat.chooseModel(name);
    } catch (error) {
      setWanted(undefined);
      throw error;
    }
  };
  return choiceOf(agent, wanted ?? kept ?? undefined, choose);
}

function choiceOf(agent: Agent | undefined, wanted: string | undefined, choose: ModelChoice["choose"]): ModelChoice | undefined {
  const names = agent?.models ?? [];
  const [own] = names;
  if (own === undefined || names.length < 2) return undefined;
  return { names, chosen: names.find((name) => name === wanted) ?? own, choose };
}

export function ModelPicker({ choice, onError }: { choice: ModelChoice; onError: (error: unknown) => void }) {
  const onChange = (event: { currentTarget: HTMLSelectElement }) => {
    onError(undefined);
    choice.choose(event.currentTarget.value).catch(onError);
  };
  return (
    <select class="model" aria-label={texts.model} value={choice.chosen} onChange={onChange}>
      {choice.names.map((name) => <option key={name} value={name}>{visible(name)}</option>)}
    </select>
  );
}
