/** A model that answers as a test says, as a server of OpenAI's wire. */

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the model answers: texts as they come, where a promise is waited for, and then calls of tools. */
export interface Reply {
  readonly texts?: readonly (string | Promise<unknown>)[];
  /** Of a refusal; by default the request is answered. */
  readonly status?: number;
  readonly calls?: readonly Call[];
  /** The sources of the text, as a search model names them. */
  readonly citations?: readonly object[];
  /** The connection breaks after the texts. */
  readonly isCut?: boolean;
}

/** A call of a tool. The model writes the second half of its arguments after `pause`. */
export interface Call {
  readonly name: string;
  /** The arguments. A text is sent as it is. */
  readonly input: object | string;
  readonly pause?: Promise<unknown>;
}

/** Answers the LLM call `step` of a turn, which is made the `attempt`th time; both from 0. `results` are those of its calls. */
export type Script = (step: number, attempt: number, results: readonly string[]) => Reply;

/** A promise that a test resolves. */
export function gate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

interface Message {
  readonly role: string;
  readonly content: unknown;
}

/** Starts a model that looks for a script by the beginning of the last message of the user. */
export async function startModel() {
  const scripts = new Map<string, Script>();
  const attempts = new Map<string, number>();
  const models: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (data) => (body += data));
    request.on("end", () => {
      const { model, messages } = JSON.parse(body) as { model: string; messages: Message[] };
      models.push(model);
      const at = messages.findLastIndex((message) => message.role === "user");
      const turn = messages.slice(at);
      const step = turn.filter((message) => message.role === "assistant").length;
      const results = turn.filter((message) => message.role === "tool").map((message) => String(message.content));
      const asked = JSON.stringify(messages[at]?.content);
      // A message after a turn without an answer is a part of one message with the message before it.
      const found = [...scripts.keys()].filter((start) => asked.includes(start));
      const name = found.reduce((last, next) => (asked.lastIndexOf(next) > asked.lastIndexOf(last) ? next : last), found[0] ?? "");
      const key = `${asked}/${step}`;
      const attempt = attempts.get(key) ?? 0;
      attempts.set(key, attempt + 1);
      void send(response, scripts.get(name)?.(step, attempt, results) ?? { texts: [`You said ${asked}.`] });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`,
    /** Messages that contain this are answered so. */
    on: (start: string, script: Script) => void scripts.set(start, script),
    /** The models of the requests so far. */
    models,
    stop: () => (server.closeAllConnections(), void server.close()),
  };
}

async function send(response: ServerResponse, { status = 200, texts = [], calls = [], citations = [], isCut = false }: Reply): Promise<void> {
  if (status !== 200) return void response.writeHead(status).end("{}");
  response.writeHead(200, { "content-type": "text/event-stream" });
  const choice = (delta: object, finish: string | null = null) =>
    response.write(frame({ choices: [{ index: 0, delta, finish_reason: finish }] }));
  for (const text of texts) {
    if (typeof text === "string") choice({ content: text });
    else await text;
  }
  if (isCut) return void response.destroy();
  if (citations.length > 0) choice({ annotations: citations });
  for (const [index, { name, input, pause }] of calls.entries()) {
    const written = typeof input === "string" ? input : JSON.stringify(input);
    const half = pause ? written.length / 2 : written.length;
    const call = { name, arguments: written.slice(0, half) };
    choice({ tool_calls: [{ index, id: `call-${name}-${index}-${Date.now()}`, type: "function", function: call }] });
    await pause;
    choice({ tool_calls: [{ index, function: { arguments: written.slice(half) } }] });
  }
  choice({}, calls.length > 0 ? "tool_calls" : "stop");
  response.write(frame({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } }));
  response.end("data: [DONE]\n\n");
}

function frame(fields: object): string {
  return `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", ...fields })}\n\n`;
}
