/** A raw HTTP server that plays a gateway: each connection does what its test says. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import type { Frame } from "../../src/state/reducer.js";

/** One request that came. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: any;
}

/** Answers a request that is no stream; undefined leaves it unanswered. */
export type Answer = (request: Seen) => { status?: number; json?: unknown; headers?: Record<string, string>; cut?: true } | undefined;

/** A gateway that a test plays. It is closed with the test. */
export class FakeGateway {
  url = "";
  readonly requests: Seen[] = [];
  /** The cursors that streams were opened with. */
  readonly cursors: string[] = [];
  answer: Answer = () => ({ status: 404, json: problem("not_found", 404) });
  #streams: ((stream: FakeStream) => void)[] = [];
  readonly #server: Server;
  #open = 0;

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(t: TestContext): Promise<FakeGateway> {
    const gateway = new FakeGateway();
    await new Promise<void>((resolve) => gateway.#server.listen(0, "127.0.0.1", resolve));
    gateway.url = `http://127.0.0.1:${(gateway.#server.address() as AddressInfo).port}`;
    t.after(() => {
      gateway.#server.closeAllConnections();
      gateway.#server.close();
    });
    return gateway;
  }

  /** What the streams do that are opened, one after the other. Those past the last are cut. */
  onStream(...streams: ((stream: FakeStream) => void)[]): void {
    this.#streams = streams;
  }

  /** Waits until no stream is open. */
  async untilIdle(): Promise<void> {
    while (this.#open > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  /** A frame on the wire. */
  static frame({ id, data }: Frame): string {
    return `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const url = new URL(request.url ?? "/", this.url);
    const body = text === "" ? undefined : JSON.parse(text);
    const seen = { method: request.method ?? "", path: url.pathname + url.search, headers: request.headers, body };
    this.requests.push(seen);
    if (url.pathname.endsWith("/events/stream")) {
      this.cursors.push(url.searchParams.get("cursor") ?? "");
      this.#open++;
      response.on("close", () => this.#open--);
      const stream = new FakeStream(response);
      return (this.#streams.shift() ?? ((none) => void none.cut()))(stream);
    }
    const answer = this.answer(seen);
    if (!answer) return;
    if (answer.cut) return void response.destroy();
    response.writeHead(answer.status ?? 200, { "content-type": "application/json", ...answer.headers });
    response.end(answer.json === undefined ? "" : JSON.stringify(answer.json));
  }
}

/** A problem as the API has it. */
export function problem(code: string, status: number): object {
  const [title, detail] = ["A title", "A sentence for people."];
  return { type: `/docs/errors/${code}`, title, status, detail, code, instance: "/", request_id: "r" };
}

/** One stream, as its test writes it. */
export class FakeStream {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  #begin(): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, { "content-type": "text/event-stream" });
    this.frames({ data: { type: "replay" } });
  }

  retry(ms: number): this {
    return this.bytes(Buffer.from(`retry: ${ms}\n\n`));
  }

  frames(...frames: Frame[]): this {
    return this.bytes(Buffer.from(frames.map((frame) => FakeGateway.frame(frame)).join("")));
  }

  bytes(bytes: Buffer): this {
    this.#begin();
    this.#response.write(bytes);
    return this;
  }

  /** Sends so many comments, one each `everyMs`, and goes on. */
  comments(everyMs: number, count: number, then: () => void): this {
    if (count === 0) then();
    else setTimeout(() => this.bytes(Buffer.from(": still here\n\n")).comments(everyMs, count - 1, then), everyMs);
    return this;
  }

  /** Ends the response in order. */
  close(): void {
    this.#begin();
    this.#response.end();
  }

  /** Cuts the connection once what was written is sent. */
  cut(): void {
    if (!this.#response.headersSent) return void this.#response.destroy();
    this.#response.write("", () => this.#response.destroy());
  }

  problem(status: number, code: string, headers: Record<string, string> = {}): void {
    this.#response.writeHead(status, { "content-type": "application/problem+json", ...headers });
    this.#response.end(JSON.stringify(problem(code, status)));
  }

  status(status: number, text: string): void {
    this.#response.writeHead(status, { "content-type": "text/html" });
    this.#response.end(text);
  }
}
