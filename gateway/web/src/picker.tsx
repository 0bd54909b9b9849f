/** Where a conversation begins: which agent it has, and messages to begin with. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Agent, Agents } from "./agents";
import { Search } from "./search";
import { Fault, visible } from "./shown";
import { texts } from "./texts";

/** So many agents are found at a glance; more have a search. */
const AT_A_GLANCE = 6;

/** Names of tools that are shown of an agent. */
const MOST_TOOLS = 8;

interface WelcomeProps {
  agents: Agents;
  /** Begins with this message. */
  onSend: (sample: string) => void;
}

export function Welcome({ agents, onSend }: WelcomeProps) {
  const { list, error, chosen } = agents;
  if (error !== undefined) return <div class="welcome"><p role="alert"><Fault error={error} /></p></div>;
  if (!list) return <div class="welcome"><p>{texts.loading}</p></div>;
  const alone = visible(list[0]?.description ?? "") || texts.empty;
  const sentence = list.length > 1 ? texts.choose : list.length === 1 ? alone : texts.noAgents;
  return (
    <div class="welcome">
      <h2>{texts.hello}</h2>
      <p><bdi>{sentence}</bdi></p>
      {list.length > 1 && <Picker agents={agents} list={list} />}
      {chosen && <About agent={chosen} />}
      {chosen && chosen.samples.length > 0 && <Samples samples={chosen.samples} onSend={onSend} />}
    </div>
  );
}

/** One choice of many: arrows go from card to card, as in each group of radio buttons. */
function Picker({ agents: { chosen, choose }, list }: { agents: Agents; list: readonly Agent[] }) {
  const [search, setSearch] = useState("");
  const cards = useRef<HTMLDivElement>(null);
  // The agent that is chosen may be further down, also where a search ends.
  const isWhole = search === "";
  useEffect(() => cards.current?.querySelector(".card:has(:checked)")?.scrollIntoView({ block: "nearest" }), [isWhole]);
  const words = search.toLowerCase().split(/\s+/);
  const shown = list.filter((agent) => words.every((word) => saidOf(agent).includes(word)));
  return (
    <fieldset class="agents">
      <legend>{texts.agents}</legend>
      {list.length > AT_A_GLANCE && (
        <>
          <Search label={texts.searchAgents} value={search} onSearch={setSearch} />
          <p class="hint" role="status">{texts.agentsShown(shown.length, list.length)}</p>
        </>
      )}
      <div class="cards" ref={cards}>
        {shown.map((agent) => <Card key={agent.name} agent={agent} isChosen={agent === chosen} onChoose={() => choose(agent.name)} />)}
      </div>
    </fieldset>
  );
}

function Card({ agent, isChosen, onChoose }: { agent: Agent; isChosen: boolean; onChoose: () => void }) {
  return (
    <label class="card">
      <input type="radio" name="agent" value={agent.name} checked={isChosen} onChange={onChoose} />
      <strong><bdi>{visible(agent.name)}</bdi></strong>
      {agent.description !== "" && <span><bdi>{visible(agent.description)}</bdi></span>}
    </label>
  );
}

/** What the agent works with. */
function About({ agent: { model, tools } }: { agent: Agent }) {
  if (model === null && tools.length === 0) return null;
  return (
    <div class="about-agent">
      {model !== null && <span>{texts.model} <code>{visible(model)}</code></span>}
      {tools.length > 0 && (
        <span>
          {texts.tools}{" "}
          {tools.slice(0, MOST_TOOLS).flatMap(({ name }) => [<code key={name}>{visible(name)}</code>, " "])}
          {tools.length > MOST_TOOLS && texts.andMore(tools.length - MOST_TOOLS)}
        </span>
      )}
    </div>
  );
}

function Samples({ samples, onSend }: { samples: readonly string[]; onSend: (sample: string) => void }) {
  return (
    <>
      <h3 id="samples">{texts.samples}</h3>
      <ul class="samples" aria-labelledby="samples">
        {samples.map((sample) => (
          <li key={sample}><button type="button" onClick={() => onSend(sample)}><bdi>{visible(sample)}</bdi></button></li>
        ))}
      </ul>
    </>
  );
}

/** What a search looks in. */
function saidOf({ name, description, model, tools }: Agent): string {
  return [name, description, model ?? "", ...tools.map((tool) => tool.name)].join(" ").toLowerCase();
}
