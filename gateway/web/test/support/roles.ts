/** A worker and two gateways as processes of their own, with what is behind them, so that one can be killed alone. */

import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer, connect, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

/** What has not answered by then will not: it has ended, or something else has its port. */
const READY_WITHIN_MS = 60_000;

/** Processes of an installation. */
export interface Roles {
  /** The address that browsers know: what is in front of the gateways, and goes to one that lives. */
  readonly url: string;
  killWorker(): Promise<void>;
  startWorker(): void;
  /** Kills a gateway; connections go to the other one from now on. */
  killGateway(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts them with this configuration. `temporal` and `everturn` are the binaries. */
export async function startRoles(folder: string, config: string, temporal: string, everturn: string): Promise<Roles> {
  writeFileSync(`${folder}/everturn.toml`, config);
  const [engine, redis, first, second] = await Promise.all([port(), port(), port(), port()]);
  const running = new Set<ChildProcess>();
  const environment = {
    ...process.env,
    TEMPORAL_ADDRESS: `127.0.0.1:${engine}`,
    EVERTURN_REDIS: `redis://127.0.0.1:${redis}`,
    EVERTURN_DATA_DIR: folder,
  };
  const start = (command: string, args: readonly string[]) => {
    const child = spawn(command, args, { cwd: folder, env: environment, stdio: "ignore" });
    running.add(child);
    child.on("exit", () => running.delete(child));
    return child;
  };
  start(temporal, ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", `${engine}`, "--log-level", "error"]);
  start("redis-server", ["--bind", "127.0.0.1", "--port", `${redis}`, "--save", "", "--appendonly", "no"]);
  await Promise.all([engine, redis].map(accepts));
  const gateways = [first, second].map((at) => start(everturn, ["gateway", "--listen", `127.0.0.1:${at}`]));
  const startWorker = () => start(everturn, ["worker"]);
  let worker = startWorker();
  await Promise.all([first, second].map(isReady));
  const front = await startFront([first, second]);
  return {
    url: `http://127.0.0.1:${front.port}`,
    killWorker: () => killed(worker),
    startWorker: () => void (worker = startWorker()),
    killGateway: async () => {
      front.leave();
      const gateway = gateways.shift();
      if (gateway) await killed(gateway);
    },
    stop: async () => {
      front.server.close();
      await Promise.all([...running].map(killed));
    },
  };
}

/** Passes connections on to the first of the gateways that was not left. */
async function startFront(gateways: number[]): Promise<{ port: number; server: Server; leave: () => void }> {
  const server = createServer((client) => {
    const gateway = connect(gateways[0] ?? 0, "127.0.0.1");
    const end = (one: Socket, other: Socket) => one.on("error", () => other.destroy()).on("close", () => other.destroy());
    end(client, gateway);
    end(gateway, client);
    client.pipe(gateway).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, server, leave: () => void gateways.shift() };
}

function killed(child: ChildProcess): Promise<void> {
  const gone = new Promise<void>((resolve) => child.on("exit", () => resolve()));
  child.kill("SIGKILL");
  return child.exitCode === null && child.signalCode === null ? gone : Promise.resolve();
}

/** A port below those that connections get, so that none of them takes it until a server listens there. */
async function port(): Promise<number> {
  for (;;) {
    const chosen = 21_000 + Math.floor(10_000 * Math.random());
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.on("error", () => resolve(false));
      server.listen(chosen, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (isFree) return chosen;
  }
}

async function accepts(at: number): Promise<void> {
  const isOpen = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(at, "127.0.0.1", () => (socket.destroy(), resolve(true)));
      socket.on("error", () => resolve(false));
    });
  await until(isOpen, `port ${at}`);
}

async function isReady(at: number): Promise<void> {
  const answers = () => fetch(`http://127.0.0.1:${at}/readyz`, { signal: AbortSignal.timeout(READY_WITHIN_MS) }).then((response) => response.ok, () => false);
  await until(answers, `the gateway on port ${at}`);
}

/** Waits until something answers. `name` says what, in the error. */
async function until(answers: () => Promise<boolean>, name: string): Promise<void> {
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!(await answers())) {
    if (Date.now() > deadline) throw new Error(`${name} does not answer within ${READY_WITHIN_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
