/** A real gateway with everything behind it: `everturn dev` on free ports, in a folder of its own. */

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";

/** How long a start may take on a busy machine: less than a test, so that the test says what it waits for. */
const READY_WITHIN_MS = 60_000;

/** A gateway that runs. */
export interface RealGateway {
  readonly url: string;
  /** Ends it in order. */
  stop(): void;
  /** Kills it, and waits until it is gone. */
  kill(): Promise<void>;
  /** Starts it again, on the same ports and with the same data. */
  restart(): Promise<RealGateway>;
}

/** Starts `everturn dev` with this configuration, and waits until it answers. */
export async function startGateway(folder: string, config: string): Promise<RealGateway> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/everturn.toml`, config);
  return start(folder, ...(await freePorts()));
}

async function start(folder: string, port: number, temporalPort: number): Promise<RealGateway> {
  const address = `127.0.0.1:${port}`;
  const options = ["--listen", address, "--temporal-port", `${temporalPort}`, "--data-dir", "data"];
  const running = spawn(process.env["EVERTURN_BIN"] ?? "", ["dev", "--config", "everturn.toml", ...options], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const gone = new Promise<void>((resolve) => running.on("exit", () => resolve()));
  let printed = "";
  running.stdout.on("data", (data) => (printed += data));
  running.stderr.on("data", (data) => (printed += data));
  const url = `http://${address}`;
  const deadline = AbortSignal.timeout(READY_WITHIN_MS);
  const isReady = () => fetch(`${url}/readyz`, { signal: deadline }).then((response) => response.ok, () => false);
  while (!(await isReady())) {
    if (running.exitCode !== null) throw new Error(`everturn dev has ended:\n${printed}`);
    if (deadline.aborted) {
      running.kill("SIGKILL");
      throw new Error(`everturn dev is not ready after ${READY_WITHIN_MS} ms:\n${printed}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    url,
    stop: () => void running.kill("SIGTERM"),
    kill: () => (running.kill("SIGKILL"), gone),
    restart: () => start(folder, port, temporalPort),
  };
}

/**
 * Two ports, for the gateway and for Temporal, whose web page takes the one 1000 above. They are below those that connections
 * get, so that none of them takes one until a server listens there.
 */
async function freePorts(): Promise<[number, number]> {
  for (;;) {
    const port = 10_000 + 2_000 * Math.floor(5 * Math.random()) + 2 * Math.floor(500 * Math.random());
    const areFree = await Promise.all([port, port + 1, port + 1_001].map(isFree));
    if (areFree.every(Boolean)) return [port, port + 1];
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.on("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
